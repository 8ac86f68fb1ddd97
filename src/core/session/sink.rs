//! Where the chunks of a session go: into its log, then to the clients that are subscribed.

use super::SessionMachine;
use super::unsent::Unsent;
use crate::core::client_sink::{ChunkAddress, ClientSink, ClientSinks};
use crate::core::log::{LARGE, Log};
use crate::core::profile::Profile;
use crate::core::subscribers::{Subscriber, Subscribers};
use crate::core::view::chunks::ChunkSink;
use crate::proto::chunk::Chunk;

/// Logs the chunks of a session, with a number each, and hands them on; while the clients are behind, those that can be
/// merged wait for their numbers.
///
/// Profiles share the numbers: what stands for one chunk has one number, what stands for none leaves it out.
pub struct Numbered<'a, C> {
    pub(super) session: &'a str,
    pub(super) turn: Option<&'a str>,
    pub(super) log: &'a mut Log,
    pub(super) unsent: &'a mut Unsent,
    pub(super) broken: &'a mut bool,
    pub(super) subscribers: &'a mut Subscribers,
    pub(super) clients: &'a mut C,
}

/// As with a mutex: a panic while the session is written to marks it.
impl<C> Drop for Numbered<'_, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.broken = true;
        }
    }
}

impl<C: ClientSinks> ChunkSink for Numbered<'_, C> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.unsent.bytes() > 0 || self.subscribers.are_behind(self.clients) {
            self.merge_or_number(chunk);
        } else {
            self.number(chunk);
        }
    }
}

impl<C: ClientSinks> Numbered<'_, C> {
    #[cold]
    fn merge_or_number(&mut self, chunk: &Chunk<'_>) {
        let behind = self.subscribers.are_behind(self.clients);
        if behind && self.wait(chunk) {
            return;
        }
        self.number_unsent();
        if !(behind && self.wait(chunk)) {
            self.number(chunk);
        }
    }

    fn number(&mut self, chunk: &Chunk<'_>) {
        if chunk.weight() > LARGE {
            return self.number_large(chunk);
        }
        let (seq, json) = self.log.chunk(self.turn, chunk);
        let address = ChunkAddress {
            session: self.session,
            turn: self.turn,
            seq,
        };
        // Not through `hand_on`: its closure costs instructions for every chunk.
        for subscriber in self.subscribers.iter_mut() {
            if let Some(sink) = subscriber.sink(seq, self.clients) {
                match subscriber.subscription.profile {
                    Profile::V7 => sink.chunk(address, chunk, json),
                    older => send_adapted(older, address, chunk, sink),
                }
            }
        }
    }

    /// Like `number`, without a copy between the agent's line, the file and what the clients get.
    #[cold]
    fn number_large(&mut self, chunk: &Chunk<'_>) {
        let seq = self.log.large_chunk(self.turn, chunk);
        self.hand_on(seq, |subscriber, address, sink| {
            let profile = subscriber.subscription.profile;
            profile.adapt(chunk, |chunk| sink.large_chunk(address, chunk));
        });
    }

    fn number_json(&mut self, json: &[u8]) {
        let seq = self.log.json_chunk(self.turn, json);
        self.hand_on(seq, |subscriber, address, sink| {
            let profile = subscriber.subscription.profile;
            profile.adapt_json(json, |json| sink.json_chunk(address, json));
        });
    }

    fn hand_on(
        &mut self,
        seq: u64,
        mut hand: impl FnMut(&Subscriber, ChunkAddress<'_>, &mut C::Sink),
    ) {
        let address = ChunkAddress {
            session: self.session,
            turn: self.turn,
            seq,
        };
        for subscriber in self.subscribers.iter_mut() {
            if let Some(sink) = subscriber.sink(seq, self.clients) {
                hand(subscriber, address, sink);
            }
        }
    }

    /// Whether the chunk can wait; then it does.
    fn wait(&mut self, chunk: &Chunk<'_>) -> bool {
        let before = self.unsent.bytes();
        let waits = self.unsent.take(self.turn, chunk);
        self.note_unsent(before);
        waits
    }

    /// Numbers all that waits.
    #[cold]
    fn number_unsent(&mut self) {
        let before = self.unsent.bytes();
        let (turn, waiting) = self.unsent.take_all();
        self.note_unsent(before);
        let mut sink = Numbered {
            session: self.session,
            turn: turn.as_deref(),
            log: &mut *self.log,
            unsent: &mut *self.unsent,
            broken: &mut *self.broken,
            subscribers: &mut *self.subscribers,
            clients: &mut *self.clients,
        };
        for waiting in waiting {
            waiting.show(&mut sink, Numbered::number, Numbered::number_json);
        }
    }

    /// Accounts for the bytes that wait now to the client that the session works for, where there were so many before.
    fn note_unsent(&mut self, before: usize) {
        let leader = self.subscribers.leader();
        if let Some(sink) = leader.and_then(|leader| self.clients.sink(leader)) {
            sink.set_unsent(sink.unsent() + self.unsent.bytes() - before);
        }
    }
}

/// Sends what stands for a chunk in an older profile.
#[cold]
fn send_adapted(
    profile: Profile,
    address: ChunkAddress<'_>,
    chunk: &Chunk<'_>,
    sink: &mut impl ClientSink,
) {
    profile.adapt(chunk, |chunk| {
        let mut json = Vec::new();
        chunk.write(&mut json);
        sink.chunk(address, chunk, &json);
    });
}

impl SessionMachine {
    /// Whether something waits for clients that are behind.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.unsent.bytes() > 0
    }

    /// Numbers what waits for clients that are behind.
    pub fn number_unsent(&mut self, clients: &mut impl ClientSinks) {
        if self.has_unsent() {
            self.sink(None, clients).number_unsent();
        }
    }

    /// Numbers what waits, unless all clients are still behind and the one that the session works for has room.
    pub fn number_unsent_if_read(&mut self, clients: &mut impl ClientSinks) {
        let leader = self.subscribers.leader();
        let is_full = leader.is_some_and(|leader| clients.is_client_full(leader));
        if self.has_unsent() && (is_full || !self.subscribers.are_behind(clients)) {
            self.number_unsent(clients);
        }
    }

    /// How many bytes wait for clients that are behind.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.bytes()
    }

    /// What waits is forgotten: the disk did not take what was before it.
    pub fn forget_unsent(&mut self, clients: &mut impl ClientSinks) {
        if self.has_unsent() {
            let mut sink = self.sink(None, clients);
            let before = sink.unsent.bytes();
            sink.unsent.take_all();
            sink.note_unsent(before);
        }
    }
}
