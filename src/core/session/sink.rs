//! Where the chunks of a session go: into its log, then to the client.

use super::SessionMachine;
use super::unsent::Unsent;
use crate::core::client::{Outlet, Place};
use crate::core::log::{LARGE, Log};
use crate::core::profile::Profile;
use crate::core::subscription::Subscription;
use crate::core::view::chunks::ChunkSink;
use crate::proto::chunk::Chunk;

/// Takes the chunks of a session down, with a number each, and hands them on; while the client is behind,
/// those that can be merged wait for their numbers.
///
/// Profiles share the numbers: what stands for one chunk has one number, what stands for none leaves it out.
pub struct Numbered<'a, O> {
    pub(super) session: &'a str,
    pub(super) turn: Option<&'a str>,
    pub(super) log: &'a mut Log,
    pub(super) unsent: &'a mut Unsent,
    pub(super) broken: &'a mut bool,
    pub(super) subscription: Subscription,
    pub(super) outlet: &'a mut O,
}

/// As with a mutex: whoever panics with the session in its hands leaves it marked.
impl<O> Drop for Numbered<'_, O> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.broken = true;
        }
    }
}

impl<O: Outlet> ChunkSink for Numbered<'_, O> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        if self.outlet.is_behind() || self.unsent.bytes() > 0 {
            self.merge_or_number(chunk);
        } else {
            self.number(chunk);
        }
    }
}

impl<O: Outlet> Numbered<'_, O> {
    #[cold]
    fn merge_or_number(&mut self, chunk: &Chunk<'_>) {
        let behind = self.outlet.is_behind();
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
        if !self.subscription.chunks {
            return;
        }
        let place = Place {
            session: self.session,
            turn: self.turn,
            seq,
        };
        match self.subscription.profile {
            Profile::V7 => self.outlet.chunk(place, chunk, json),
            older => older.adapt(chunk, |chunk| {
                let mut json = Vec::new();
                chunk.write(&mut json);
                self.outlet.chunk(place, chunk, &json);
            }),
        }
    }

    /// The same without a copy between the agent's line, the file and what the client gets.
    #[cold]
    fn number_large(&mut self, chunk: &Chunk<'_>) {
        let seq = self.log.large_chunk(self.turn, chunk);
        if self.subscription.chunks {
            let place = Place {
                session: self.session,
                turn: self.turn,
                seq,
            };
            let outlet = &mut *self.outlet;
            self.subscription
                .profile
                .adapt(chunk, |chunk| outlet.large_chunk(place, chunk));
        }
    }

    fn number_json(&mut self, json: &[u8]) {
        let seq = self.log.json_chunk(self.turn, json);
        if self.subscription.chunks {
            let place = Place {
                session: self.session,
                turn: self.turn,
                seq,
            };
            let outlet = &mut *self.outlet;
            self.subscription
                .profile
                .adapt_json(json, |json| outlet.json_chunk(place, json));
        }
    }

    /// Whether the chunk can wait; then it does.
    fn wait(&mut self, chunk: &Chunk<'_>) -> bool {
        let before = self.unsent.bytes();
        let waits = self.unsent.take(self.turn, chunk);
        let unsent = self.outlet.unsent() + self.unsent.bytes() - before;
        self.outlet.set_unsent(unsent);
        waits
    }

    /// Numbers all that waits.
    #[cold]
    fn number_unsent(&mut self) {
        let unsent = self.outlet.unsent() - self.unsent.bytes();
        self.outlet.set_unsent(unsent);
        let (turn, waiting) = self.unsent.take_all();
        let mut sink = Numbered {
            session: self.session,
            turn: turn.as_deref(),
            log: &mut *self.log,
            unsent: &mut *self.unsent,
            broken: &mut *self.broken,
            subscription: self.subscription,
            outlet: &mut *self.outlet,
        };
        for waiting in waiting {
            waiting.show(&mut sink, Numbered::number, Numbered::number_json);
        }
    }
}

impl SessionMachine {
    /// Whether something waits for a client that is behind.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.unsent.bytes() > 0
    }

    /// Numbers what waits for a client that is behind.
    pub fn number_unsent(&mut self, outlet: &mut impl Outlet) {
        if self.has_unsent() {
            self.sink(None, outlet).number_unsent();
        }
    }

    /// How many bytes wait for a client that is behind.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.unsent.bytes()
    }

    /// What waits is forgotten: the disk did not take what was before it.
    pub fn forget_unsent(&mut self, outlet: &mut impl Outlet) {
        outlet.set_unsent(outlet.unsent() - self.unsent.bytes());
        self.unsent.take_all();
    }
}
