//! Subscribing and leaving, and clients that lag: they receive the missed chunks from the log.

use super::SessionOutput;
use super::merged::MergedChunk;
use crate::client::{ClientId, Notice};
use crate::client_sink::{ChunkAddress, ClientSink, ClientSinks};
use crate::clients::Clients;
use crate::presence::notify_presence;
use crate::subscribers::{Participation, Subscribers, Subscription};
use acpipe_protocol::wire::{OnDisconnect, PresenceParams};
use std::collections::BTreeSet;
use tracing::warn;

/// Maximum number of chunks read from the log at once for a lagging client.
const PAGE: usize = 1000;

/// Maximum number of pages sent to a lagging client when a session is closed or cleared. A page is at most 1
/// MiB of the log, or one chunk.
const PAGES_AT_END: usize = 4;

impl SessionOutput {
    /// Subscribes a client, or changes its part in the session. It receives whole chunks that are created from now on,
    /// and those after number `after` from the log.
    pub fn subscribe(
        &mut self,
        client: ClientId,
        subscription: Subscription,
        participation: Participation,
        after: Option<u64>,
        clients: &mut dyn ClientSinks,
    ) {
        self.number_unsent(clients);
        let last_seq = self.log.seq();
        self.subscribers.add(client, subscription, participation);
        if let Some(subscriber) = self.subscribers.get_mut(client) {
            subscriber.participation = participation;
            if let Some(after) = after.filter(|_| subscriber.subscription.chunks) {
                subscriber.resume_after(after, last_seq);
            }
        }
    }

    /// Removes a client with its deferred messages. Returns `false` if it was not subscribed.
    pub fn unsubscribe(&mut self, client: ClientId) -> bool {
        let was_there = self.subscribers.has(client);
        self.subscribers.remove(client);
        was_there
    }

    /// Sends a client the messages that wait for chunks which it has not received.
    pub fn send_deferred(&mut self, client: ClientId, clients: &mut dyn ClientSinks) {
        if let Some(subscriber) = self.subscribers.get_mut(client) {
            subscriber.send_deferred(clients);
        }
    }

    pub fn take_subscribers(&mut self) -> Option<Subscribers> {
        std::mem::take(&mut self.subscribers).shrunk()
    }

    pub fn put_subscribers(&mut self, subscribers: Subscribers) {
        self.subscribers = subscribers;
    }

    /// Makes a subscribed client the leader, whose reading the agent waits for.
    pub fn set_leader(&mut self, client: ClientId) {
        self.subscribers.set_leader(client);
    }

    pub fn set_chunks(&mut self, client: ClientId, chunks: bool, clients: &mut dyn ClientSinks) {
        self.number_unsent(clients);
        let Some(subscriber) = self.subscribers.get_mut(client) else {
            return;
        };
        subscriber.subscription.chunks = chunks;
        if !chunks {
            subscriber.end_lag(clients);
        }
    }

    pub fn notify_presence(
        &mut self,
        except: Option<ClientId>,
        known: &Clients,
        clients: &mut dyn ClientSinks,
    ) {
        let seq = self.log.seq();
        for subscriber in self.subscribers.iter_mut() {
            // Of the notifications that follow, only the last one waits for a client that lags.
            let may_lag = subscriber.participation.on_disconnect == OnDisconnect::Continue
                && !subscriber.subscription.updates;
            if may_lag && subscriber.is_live() && clients.is_client_full(subscriber.client) {
                subscriber.begin_lag(seq);
            }
        }
        let session = (&*self.session, seq);
        notify_presence(session, &mut self.subscribers, known, except, clients);
    }

    /// Notifies the clients but `except` that the session is closed, which detaches them.
    pub fn notify_closed(&mut self, except: ClientId, clients: &mut dyn ClientSinks) {
        let session_id = self.session.to_string();
        let closed = |_| {
            Notice::Presence(PresenceParams {
                session_id: session_id.clone(),
                clients: Vec::new(),
            })
        };
        self.notify_each(Some(except), closed, clients);
    }

    /// Makes the leader lag if it is in `full`, so that the agent does not wait for it.
    pub fn lag_leader(&mut self, full: &BTreeSet<ClientId>) {
        let leader = self
            .subscribers
            .leader()
            .filter(|leader| full.contains(leader));
        let seq = self.log.seq();
        if let Some(subscriber) = leader.and_then(|leader| self.subscribers.get_mut(leader))
            && subscriber.is_live()
        {
            subscriber.begin_lag(seq);
        }
    }

    /// Sends lagging clients the missed chunks from the log, as far as they have room.
    pub fn catch_up(&mut self, clients: &mut dyn ClientSinks) {
        if !self.log.is_waiting() {
            self.send_missed(None, clients);
        }
    }

    /// Sends lagging clients the missed chunks regardless of room, because the log is about to be closed or
    /// cleared. A client that is very far behind does not receive all of them.
    pub fn catch_up_at_end(&mut self, clients: &mut dyn ClientSinks) {
        if !self.log.is_waiting() {
            self.send_missed(Some(PAGES_AT_END), clients);
        }
        self.subscribers.end_lags(clients);
    }

    /// Sends each lagging client up to `pages` pages of missed chunks; without a limit, as many as it has
    /// room for. A question that is not open is shown as ended.
    fn send_missed(&mut self, pages: Option<usize>, clients: &mut dyn ClientSinks) {
        let Self {
            session,
            log,
            subscribers,
            requests,
            ..
        } = self;
        let is_open = |question: &str| requests.has_question(question);
        for subscriber in subscribers.iter_mut() {
            let mut left = pages;
            while let Some(sent) = subscriber.lag()
                && left != Some(0)
            {
                left = left.map(|left| left - 1);
                let Some(sink) = clients.sink(subscriber.client) else {
                    break;
                };
                let has_room = |sink: &_| pages.is_some() || !ClientSink::is_full(sink);
                if !has_room(sink) {
                    break;
                }
                let page = match log.page(sent, PAGE) {
                    Ok(page) => page.until(log.released()),
                    Err(error) => {
                        warn!(session = &**session, %error, "cannot read the stored chunks for a client that lags behind");
                        // Replies must not wait for a failing disk.
                        subscriber.send_deferred(clients);
                        break;
                    }
                };
                let profile = subscriber.subscription.profile;
                let (mut last, mut is_all) = (sent, !page.more);
                for merged in MergedChunk::of(&page.chunks) {
                    if !has_room(sink) {
                        is_all = false;
                        break;
                    }
                    let address = ChunkAddress {
                        session,
                        turn: merged.turn,
                        seq: merged.seq,
                    };
                    profile.adapt_missed(&merged.json, is_open, |json| {
                        sink.json_chunk(address, json);
                    });
                    last = merged.seq;
                }
                subscriber.note_sent(last, clients);
                if is_all {
                    if log.released() == log.seq() {
                        subscriber.end_lag(clients);
                    }
                    break;
                }
            }
            if subscriber.lag().is_some() && pages.is_some() {
                let client = subscriber.client;
                warn!(session = &**session, ?client, "the client misses chunks");
            }
        }
    }
}
