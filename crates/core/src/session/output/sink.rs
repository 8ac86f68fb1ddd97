//! Sink for the chunks of a session: its log first, then the subscribed clients.

use super::SessionOutput;
use crate::client_sink::{ChunkAddress, ClientSink, ClientSinks};
use crate::deltas::Deltas;
use crate::log::LARGE;
use crate::profile::Profile;
use crate::subscribers::Subscriber;
use crate::view::chunks::ChunkSink;
use acpipe_protocol::chunk::Chunk;

/// Numbers and logs the chunks of a session and passes them on. While the clients are behind, mergeable
/// chunks are held back without a number.
///
/// All profiles share the numbers. Every chunk that a profile makes of a numbered one has that number; a
/// profile that omits a chunk skips its number.
pub struct SessionSink<'a> {
    turn: Option<&'a str>,
    output: &'a mut SessionOutput,
    clients: &'a mut dyn ClientSinks,
}

/// Marks the session as broken if a panic occurs while it is written to, like a poisoned mutex.
impl Drop for SessionSink<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.output.broken = true;
        }
    }
}

impl ChunkSink for SessionSink<'_> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.output.coalesced.bytes() > 0 || self.output.subscribers.are_behind(self.clients) {
            self.merge_or_number(chunk);
        } else {
            self.number(chunk);
        }
    }

    fn deltas(&mut self, deltas: Deltas<'_>) {
        let waits =
            self.output.coalesced.bytes() > 0 || self.output.subscribers.are_behind(self.clients);
        // All profiles but those of JSON have the same deltas.
        let is_of_json = |s: &Subscriber| s.subscription.profile.is_of_json();
        if waits || self.output.subscribers.iter().any(is_of_json) {
            for delta in deltas.iter() {
                delta.with_chunk(|chunk| self.chunk(chunk));
            }
            return;
        }
        let begin = deltas.begin();
        for delta in deltas.iter() {
            let parts = [&begin, delta.text, Deltas::END];
            let (seq, json) = self.output.log.delta(self.turn, parts);
            let address = ChunkAddress {
                session: &self.output.session,
                turn: self.turn,
                seq,
            };
            for subscriber in self.output.subscribers.iter_mut() {
                if let Some(sink) = subscriber.sink(seq, self.clients) {
                    sink.delta(address, delta, json);
                }
            }
        }
    }
}

impl SessionSink<'_> {
    #[cold]
    fn merge_or_number(&mut self, chunk: &Chunk<'_>) {
        let behind = self.output.subscribers.are_behind(self.clients);
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
        let (seq, json) = self.output.log.chunk(self.turn, chunk);
        let address = ChunkAddress {
            session: &self.output.session,
            turn: self.turn,
            seq,
        };
        // `hand_on` is not used here, because its closure costs instructions for every chunk.
        for subscriber in self.output.subscribers.iter_mut() {
            if let Some(sink) = subscriber.sink(seq, self.clients) {
                match subscriber.subscription.profile {
                    Profile::V7 => sink.chunk(address, chunk, json),
                    older => send_adapted(older, address, chunk, sink),
                }
            }
        }
    }

    /// Like `number`, but without copies between the agent's line, the file and the clients' output.
    #[cold]
    fn number_large(&mut self, chunk: &Chunk<'_>) {
        let seq = self.output.log.large_chunk(self.turn, chunk);
        self.hand_on(seq, |subscriber, address, sink| {
            let profile = subscriber.subscription.profile;
            if profile.is_of_json() {
                send_adapted(profile, address, chunk, sink);
            } else {
                profile.adapt(chunk, |chunk| sink.large_chunk(address, chunk));
            }
        });
    }

    fn number_json(&mut self, json: &[u8]) {
        let seq = self.output.log.json_chunk(self.turn, json);
        self.hand_on(seq, |subscriber, address, sink| {
            let profile = subscriber.subscription.profile;
            profile.adapt_json(json, |json| sink.json_chunk(address, json));
        });
    }

    fn hand_on(
        &mut self,
        seq: u64,
        mut hand: impl FnMut(&Subscriber, ChunkAddress<'_>, &mut dyn ClientSink),
    ) {
        let address = ChunkAddress {
            session: &self.output.session,
            turn: self.turn,
            seq,
        };
        for subscriber in self.output.subscribers.iter_mut() {
            if let Some(sink) = subscriber.sink(seq, self.clients) {
                hand(subscriber, address, sink);
            }
        }
    }

    /// Holds a chunk back for coalescing. Returns `false` if it cannot be held.
    fn wait(&mut self, chunk: &Chunk<'_>) -> bool {
        let before = self.output.coalesced.bytes();
        let waits = self.output.coalesced.take(self.turn, chunk);
        self.note_unsent(before);
        waits
    }

    #[cold]
    fn number_unsent(&mut self) {
        let before = self.output.coalesced.bytes();
        let (turn, waiting) = self.output.coalesced.take_all();
        self.note_unsent(before);
        let mut sink = SessionSink {
            turn: turn.as_deref(),
            output: &mut *self.output,
            clients: &mut *self.clients,
        };
        for waiting in waiting {
            waiting.show(&mut sink, SessionSink::number, SessionSink::number_json);
        }
    }

    /// Updates the number of held-back bytes that the leader's sink accounts for; `before` is the session's
    /// previous share.
    fn note_unsent(&mut self, before: usize) {
        let leader = self.output.subscribers.leader();
        if let Some(sink) = leader.and_then(|leader| self.clients.sink(leader)) {
            sink.set_unsent(sink.unsent() + self.output.coalesced.bytes() - before);
        }
    }
}

/// Sends the chunks that an older profile makes of a chunk.
#[cold]
fn send_adapted(
    profile: Profile,
    address: ChunkAddress<'_>,
    chunk: &Chunk<'_>,
    sink: &mut dyn ClientSink,
) {
    if profile.is_of_json() {
        let mut json = Vec::new();
        chunk.write(&mut json);
        let mut adapted = Vec::new();
        profile.adapt_json(&json, |json| adapted.push(json.to_vec()));
        sink.adapted_chunk(address, chunk, &adapted);
        return;
    }
    profile.adapt(chunk, |chunk| {
        let mut json = Vec::new();
        chunk.write(&mut json);
        sink.chunk(address, chunk, &json);
    });
}

impl SessionOutput {
    pub fn sink<'a>(
        &'a mut self,
        turn: Option<&'a str>,
        clients: &'a mut dyn ClientSinks,
    ) -> SessionSink<'a> {
        SessionSink {
            turn,
            output: self,
            clients,
        }
    }

    /// Returns `true` if chunks are held back for clients that are behind.
    pub fn has_unsent(&self) -> bool {
        self.coalesced.bytes() > 0
    }

    pub fn number_unsent(&mut self, clients: &mut dyn ClientSinks) {
        if self.has_unsent() {
            self.sink(None, clients).number_unsent();
        }
    }

    /// Numbers the chunks that are held back, unless all clients are still behind and the leader has room.
    pub fn number_unsent_if_read(&mut self, clients: &mut dyn ClientSinks) {
        let leader = self.subscribers.leader();
        let is_full = leader.is_some_and(|leader| clients.is_client_full(leader));
        if self.has_unsent() && (is_full || !self.subscribers.are_behind(clients)) {
            self.number_unsent(clients);
        }
    }

    /// Size of the chunks that are held back, in bytes.
    pub fn unsent_bytes(&self) -> usize {
        self.coalesced.bytes()
    }

    /// Drops the chunks that are held back, because the disk did not take the ones before them.
    pub fn forget_unsent(&mut self, clients: &mut dyn ClientSinks) {
        if self.has_unsent() {
            let mut sink = self.sink(None, clients);
            let before = sink.output.coalesced.bytes();
            sink.output.coalesced.take_all();
            sink.note_unsent(before);
        }
    }
}
