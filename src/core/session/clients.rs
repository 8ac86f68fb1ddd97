//! Clients of a session: subscribing, lagging, catching up and leaving.

use super::SessionMachine;
use super::merged::MergedChunk;
use crate::core::client::ClientId;
use crate::core::client_requests::is_open;
use crate::core::client_sink::{ChunkAddress, ClientSink, ClientSinks};
use crate::core::cx::Cx;
use crate::proto::wire::{OnDisconnect, Role};
use std::collections::BTreeSet;
use tracing::warn;

/// Maximum number of chunks read from the log at once for a lagging client.
const PAGE: usize = 1000;

/// Maximum number of pages sent to a lagging client when a session is closed or cleared. A page is at most 1
/// MiB of the log, or one chunk.
const PAGES_AT_END: usize = 4;

impl SessionMachine {
    /// Subscribes a client unless it is subscribed already. It receives chunks from now on, and the open
    /// requests.
    pub fn join(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        let Some(declaration) = cx.shared.clients.get(client) else {
            return;
        };
        if self.subscribers.has(client) {
            return;
        }
        // The client receives only whole chunks created after this.
        self.number_unsent(cx.clients);
        let participation = declaration.participation();
        self.subscribers
            .add(client, declaration.subscription, participation);
        self.follow_acp_clients(cx.agent.protocol_name());
        if participation.role == Role::Controller {
            self.send_open_requests(client, cx);
        }
        self.notify_presence(Some(client), cx);
    }

    /// Sets whether a client receives chunks.
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

    /// Handles a client's departure: its prompts are cancelled, unless they are to go on, and its requests left
    /// to other clients. `usual` applies to a client that is not subscribed.
    pub fn client_left(&mut self, client: ClientId, usual: OnDisconnect, cx: &mut Cx<'_>) {
        self.number_unsent(cx.clients);
        let own = self.subscribers.participation(client);
        if own.map_or(usual, |own| own.on_disconnect) == OnDisconnect::Cancel {
            self.cancel_prompts_of(client, cx);
        }
        self.remove_subscriber(client, cx);
    }

    /// Cancels the running turn and the queued prompts of a client.
    fn cancel_prompts_of(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        while self.queue.take_from_client(client) {
            self.notify_queue(cx.clients);
        }
        let running = self.running.as_ref();
        let own = running.filter(|r| r.token.client == client && r.ended.is_none());
        if let Some(turn_id) = own.map(|running| running.turn_id.clone()) {
            self.cancel(Some(&turn_id), cx);
        }
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
    /// room for.
    fn send_missed(&mut self, pages: Option<usize>, clients: &mut dyn ClientSinks) {
        let Self {
            id,
            log,
            subscribers,
            open_requests,
            ..
        } = self;
        let is_open = |question: &str| is_open(open_requests, question);
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
                        warn!(session = id, %error, "cannot read the stored chunks for a client that lags behind");
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
                        session: id,
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
                warn!(session = id, ?client, "the client misses chunks");
            }
        }
    }
}
