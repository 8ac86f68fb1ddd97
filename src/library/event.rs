//! Events outside of turns.

use super::chunk::Chunk;
use acpipe_core::client::Notice;
use acpipe_host::SentChunk;
use acpipe_protocol::wire::{ActivityParams, AgentStateParams, StateParams};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::broadcast::{self, error::RecvError};

/// Number of events that a slow reader may be behind before it misses some.
const QUEUE: usize = 256;

/// Event outside of the stream of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The running tool of a session changed, or the session waits for something for long.
    Activity(ActivityParams),
    /// Modes, models, options, commands, title or queue of a session changed.
    Session(StateParams),
    /// The state of an agent changed, or its start is slow.
    Agent(AgentStateParams),
    /// Output of an agent that belongs to no turn of this program.
    Output {
        /// Id of the session.
        session_id: String,
        /// The chunk.
        chunk: Chunk,
    },
}

impl Event {
    /// Converts a notification. `None` for those about other clients, and those that only clients which speak ACP
    /// get.
    pub(super) fn of(notice: Notice) -> Option<Self> {
        Some(match notice {
            Notice::Activity(params) => Self::Activity(params),
            Notice::SessionState(params) => Self::Session(params),
            Notice::AgentState(params) => Self::Agent(params),
            Notice::Presence(_)
            | Notice::UserMessage(_)
            | Notice::Acp(_)
            | Notice::Restored(..)
            | Notice::PolicyWarning(..) => return None,
        })
    }
}

/// Receiver of [`Event`]s. One that reads slowly misses the oldest.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// Waits for the next event; `None` once acpipe was shut down. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            match self.0.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Sender of events.
#[derive(Debug)]
pub struct EventBroadcast {
    sender: Arc<broadcast::Sender<Event>>,
    /// Number of the last chunk sent of each session, since several handles of a session receive it.
    sent: BTreeMap<Arc<str>, u64>,
}

/// Source of receivers, which does not keep the channel open.
#[derive(Debug, Clone)]
pub struct EventSource(std::sync::Weak<broadcast::Sender<Event>>);

impl EventBroadcast {
    /// Creates a sender without receivers.
    pub fn new() -> Self {
        Self {
            sender: Arc::new(broadcast::Sender::new(QUEUE)),
            sent: BTreeMap::new(),
        }
    }

    /// Returns the source of this sender's receivers.
    pub fn source(&self) -> EventSource {
        EventSource(Arc::downgrade(&self.sender))
    }

    /// Sends an event, if anybody receives it.
    pub fn send(&self, event: Event) {
        // Fails only without receivers.
        let _ = self.sender.send(event);
    }

    /// Sends a chunk, once.
    pub fn send_chunk(&mut self, chunk: SentChunk) {
        if self.sender.receiver_count() == 0 {
            return;
        }
        let sent = self.sent.entry(chunk.session.clone()).or_default();
        if chunk.seq > *sent {
            *sent = chunk.seq;
            self.send(Event::Output {
                session_id: chunk.session.to_string(),
                chunk: Chunk::parse(chunk.seq, chunk.json),
            });
        }
    }
}

impl EventSource {
    /// Returns a receiver of the events from now on.
    pub fn subscribe(&self) -> Events {
        let sender = self.0.upgrade();
        Events(sender.map_or_else(
            || broadcast::Sender::new(1).subscribe(),
            |sender| sender.subscribe(),
        ))
    }
}
