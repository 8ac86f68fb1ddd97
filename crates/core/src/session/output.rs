//! Output of a session: its log, and the clients that follow it.
//!
//! Owns the log, the subscribers, the questions of the agent that clients have not answered, the chunks held back for
//! subscribers that are behind, the wait for the disk, and the updates for clients that speak ACP. Every record and everything that a client receives of the session passes through
//! here, so that no client receives a chunk that the log may lose. Knows neither turns nor the agent: the machine says
//! which turn a chunk belongs to, and decides what follows from a log that cannot be written.

mod acp;
mod coalesce;
mod disk_wait;
mod lagging;
mod merged;
mod sink;

use crate::acp_updates::AcpUpdates;
use crate::client::{ClientId, Notice, Reply, Token};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_requests::ClientRequests;
use crate::client_sink::ClientSinks;
use crate::log::{Log, Record};
use crate::metrics::Counters;
use crate::subscribers::Subscribers;
pub use acp::{UpdateOrigin, UpdateTurn, pass_early_updates};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_protocol::wire::ClientCapabilities;
use coalesce::CoalescedChunks;
use disk_wait::DiskWait;
pub use sink::SessionSink;
use std::sync::Arc;

/// Log of a session and the clients that follow it.
#[derive(Debug)]
pub struct SessionOutput {
    /// The client's id of the session.
    session: Box<str>,
    log: Log,
    /// Chunks without a number yet, held for coalescing while the clients lag behind.
    coalesced: CoalescedChunks,
    subscribers: Subscribers,
    /// Open client requests: permission requests and questions.
    requests: ClientRequests,
    /// State of the ACP updates; `None` without a client that speaks ACP.
    acp_updates: Option<Box<AcpUpdates>>,
    /// Number of the last chunk when the last update was sent to clients that speak ACP.
    acp_seq: u64,
    /// Number of the last chunk that is part of the counters.
    counted_seq: u64,
    /// Set while the disk does not answer.
    disk_wait: Option<DiskWait>,
    /// `true` after a panic interrupted writing chunks.
    broken: bool,
}

impl SessionOutput {
    #[must_use]
    pub fn new(session: &str, log: Log) -> Self {
        Self {
            session: session.into(),
            counted_seq: log.seq(),
            log,
            coalesced: CoalescedChunks::default(),
            subscribers: Subscribers::default(),
            requests: ClientRequests::default(),
            acp_updates: None,
            acp_seq: 0,
            disk_wait: None,
            broken: false,
        }
    }

    /// The client's id of the session.
    pub fn session(&self) -> &str {
        &self.session
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn requests(&self) -> &ClientRequests {
        &self.requests
    }

    pub fn requests_mut(&mut self) -> &mut ClientRequests {
        &mut self.requests
    }

    pub fn subscribers(&self) -> &Subscribers {
        &self.subscribers
    }

    pub fn record(&mut self, record: &Record<'_>) {
        self.log.append(record);
    }

    /// Appends a message, given as its JSON, to the log.
    pub fn record_message(&mut self, at: &str, message: &[u8]) {
        self.log.append_message(at, message);
    }

    /// Writes the pending records. In contrast to [`Self::commit`], a disk that does not answer is an error.
    ///
    /// # Errors
    /// `storage`.
    pub fn write(&mut self) -> Result<(), Error> {
        self.log.write()
    }

    /// Begins to write the pending records of a log that no client waits for.
    ///
    /// # Errors
    /// `storage`.
    pub fn begin_write(&mut self) -> Result<(), Error> {
        self.log.commit().map(|_| ())
    }

    /// Waits for an append that the disk has not answered yet.
    ///
    /// # Errors
    /// `storage`.
    pub fn wait_for_append(&mut self) -> Result<(), Error> {
        self.log.wait_for_append()
    }

    /// Makes the disk keep what is written. Returns `true` if the store reports the end under this ticket.
    pub fn sync(&mut self, ticket: u64) -> bool {
        self.log.sync(ticket)
    }

    /// Describes the session for listings, and makes the disk keep what is written. Returns `true` if the store reports
    /// the end under this ticket.
    pub fn save(&mut self, ticket: u64) -> bool {
        self.log.describe();
        self.log.sync(ticket)
    }

    /// Removes the messages from the log, and describes the session for listings.
    ///
    /// # Errors
    /// `storage`.
    pub fn clear(&mut self, at: &str, archive: bool) -> Result<(), Error> {
        self.log.clear(at, archive)?;
        self.log.describe();
        Ok(())
    }

    /// Removes the file of the log.
    ///
    /// # Errors
    /// `storage`.
    pub fn remove(&mut self, archive: bool) -> Result<(), Error> {
        self.log.remove(archive)
    }

    /// Lets the clients receive the pending records even if the disk rejects them.
    pub fn release_pending(&mut self) {
        self.log.release_pending();
    }

    /// Takes the error that caused chunks to be dropped.
    pub fn take_drop_error(&mut self) -> Option<Error> {
        self.log.take_drop_error()
    }

    pub fn is_written(&self) -> bool {
        self.log.is_written() && !self.has_unsent()
    }

    /// Returns `true` if a panic interrupted writing chunks.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Removes incomplete records from the log after a panic, and retracts their chunks from the clients.
    pub fn mend(&mut self, clients: &mut dyn ClientSinks) {
        self.broken = false;
        self.log.mend();
        self.retract(clients);
    }

    /// Retracts the chunks that the log does not have from the clients.
    pub fn retract(&mut self, clients: &mut dyn ClientSinks) {
        let seq = self.log.seq();
        self.subscribers.retract(&self.session, seq, clients);
    }

    /// Counts the chunks since the last call.
    pub fn count_chunks(&mut self, counters: &mut Counters) {
        let seq = self.log.seq();
        counters.chunks += seq.saturating_sub(self.counted_seq);
        self.counted_seq = seq;
    }

    pub fn notify(&mut self, notice: &Notice, clients: &mut dyn ClientSinks) {
        self.subscribers.notify(self.log.seq(), notice, clients);
    }

    pub fn notify_each(
        &mut self,
        except: Option<ClientId>,
        notice: impl Fn(ClientId) -> Notice,
        clients: &mut dyn ClientSinks,
    ) {
        let seq = self.log.seq();
        self.subscribers.notify_each(seq, except, notice, clients);
    }

    pub fn request(
        &mut self,
        client: ClientId,
        request: (ClientRequestId, &Arc<ClientRequest>),
        clients: &mut dyn ClientSinks,
    ) {
        let seq = self.log.seq();
        self.subscribers.request(client, seq, request, clients);
    }

    pub fn withdraw(
        &mut self,
        client: ClientId,
        request: ClientRequestId,
        by: &DecisionSource,
        clients: &mut dyn ClientSinks,
    ) {
        self.subscribers.withdraw(client, request, by, clients);
    }

    /// Sends a client the open requests that it can answer and did not receive yet.
    pub fn send_open_requests(
        &mut self,
        client: ClientId,
        can: ClientCapabilities,
        is_unlimited: bool,
        clients: &mut dyn ClientSinks,
    ) {
        let seq = self.log.seq();
        let subscribers = &mut self.subscribers;
        self.requests
            .send_to(client, can, is_unlimited, |id, request| {
                subscribers.request(client, seq, (id, request), clients);
            });
    }

    pub fn withdraw_all_of(
        &mut self,
        client: ClientId,
        by: &DecisionSource,
        clients: &mut dyn ClientSinks,
    ) {
        for open in self.requests.iter() {
            if open.asked.contains(&client) {
                self.subscribers.withdraw(client, open.id, by, clients);
            }
        }
    }

    /// Answers a call, after the chunks that its client has not received yet.
    pub fn reply(
        &mut self,
        token: Token,
        answer: Result<Reply, Error>,
        clients: &mut dyn ClientSinks,
    ) {
        if self.log.is_append_abandoned() {
            clients.reply(token, answer);
            return;
        }
        let seq = self.log.seq();
        self.subscribers.reply(seq, token, answer, clients);
    }
}
