//! Handle of the loop, which all public handles share.

use super::call::{HandleCall, PromptCall};
use super::error::{Error, Result};
use super::event::EventSource;
use super::turn_queue::UnreadBytes;
use super::wake::{Departure, Wake};
use acpipe_core::client::{ClientId, Command, Reply};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot, watch};

/// Handle of the loop. The loop shuts down once all are dropped.
#[derive(Debug)]
pub struct HubHandle {
    calls: mpsc::Sender<HandleCall>,
    /// Wakes the loop without a place in its queue.
    pub wake: Arc<Wake>,
    /// Source of event receivers.
    pub events: EventSource,
    has_ended: watch::Receiver<bool>,
    clients: AtomicU32,
    turns: AtomicU64,
    /// Prefix that makes the ids of turns unique across runs.
    id_prefix: String,
}

impl HubHandle {
    /// Creates the handle.
    pub fn new(
        calls: mpsc::Sender<HandleCall>,
        wake: Arc<Wake>,
        events: EventSource,
        has_ended: watch::Receiver<bool>,
        id_prefix: String,
    ) -> Self {
        Self {
            calls,
            wake,
            events,
            has_ended,
            clients: AtomicU32::new(ClientId::FIRST.0 + 1),
            turns: AtomicU64::new(1),
            id_prefix,
        }
    }

    /// Sends a command of a client and waits for the reply.
    ///
    /// # Errors
    /// The command failed, or acpipe was shut down.
    pub async fn command(&self, client: ClientId, command: Command) -> Result<Reply> {
        let (sender, reply) = oneshot::channel();
        self.send(HandleCall::Command(client, command, sender))
            .await?;
        reply.await.map_err(|_| Error::shut_down())?
    }

    /// Sends a prompt of a client, and waits until the hub has accepted it.
    ///
    /// # Errors
    /// The hub refused the prompt, or acpipe was shut down.
    pub async fn prompt(
        &self,
        client: ClientId,
        call: PromptCall,
        accepted: oneshot::Receiver<Result<()>>,
    ) -> Result<()> {
        self.send(HandleCall::Prompt(client, Box::new(call)))
            .await?;
        accepted.await.map_err(|_| Error::shut_down())?
    }

    /// Shuts the loop down, and waits until it has ended.
    pub async fn shut_down(&self) {
        // Fails only if the loop has ended.
        let _ = self.send(HandleCall::Shutdown).await;
        let mut has_ended = self.has_ended.clone();
        let _ = has_ended.wait_for(|has_ended| *has_ended).await;
    }

    /// Returns a new id for a turn. The hub, which has the same prefix, names background turns otherwise.
    pub fn new_turn(&self) -> String {
        let number = self.turns.fetch_add(1, Ordering::Relaxed);
        format!("turn-app-{}-{number}", self.id_prefix)
    }

    async fn send(&self, call: HandleCall) -> Result<()> {
        self.calls.send(call).await.map_err(|_| Error::shut_down())
    }
}

/// A client of the hub, which leaves when this is dropped.
#[derive(Debug)]
pub struct LibraryClient {
    /// Handle of the loop.
    pub hub: Arc<HubHandle>,
    /// Id of the client.
    pub id: ClientId,
    /// Number of bytes that the readers of the client's turns have not read.
    pub unread: Arc<UnreadBytes>,
}

impl LibraryClient {
    /// Lets a new client join.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn join(hub: &Arc<HubHandle>) -> Result<Self> {
        let client = Self {
            hub: hub.clone(),
            id: ClientId(hub.clients.fetch_add(1, Ordering::Relaxed)),
            unread: Arc::default(),
        };
        hub.send(HandleCall::Join(client.id, client.unread.clone()))
            .await?;
        Ok(client)
    }

    /// Sends a command of this client and waits for the reply.
    ///
    /// # Errors
    /// The command failed, or acpipe was shut down.
    pub async fn command(&self, command: Command) -> Result<Reply> {
        self.hub.command(self.id, command).await
    }
}

impl Drop for LibraryClient {
    fn drop(&mut self) {
        self.hub.wake.note_departure(Departure::Client(self.id));
    }
}
