//! The message of what an agent says unasked, while no prompt runs.

use super::{Numbered, Session};
use crate::core::client::Outlet;
use crate::core::error::Error;
use crate::core::event::TurnEnd;
use crate::core::turn::Turn;
use std::time::Instant;

/// A message that nobody asked for.
#[derive(Debug)]
pub struct Unprompted {
    pub turn: Turn,
    pub turn_id: String,
    /// When it is over, if nothing happens until then; `None` while a tool runs.
    pub quiet_at: Option<Instant>,
    /// Whether the client cancelled it.
    pub cancelled: bool,
}

impl Session {
    /// When the message that nobody asked for is over.
    pub(super) fn quiet(&self) -> Option<(Instant, &'static str)> {
        let at = self.unprompted.as_ref()?.quiet_at?;
        Some((at, "quiet"))
    }

    /// Does `act` to the message that nobody asked for, which may be open beside a prompt's turn.
    pub fn with_unprompted<O: Outlet>(
        &mut self,
        outlet: &mut O,
        act: impl FnOnce(&mut Turn, &mut Numbered<'_, O>),
    ) {
        if self.running.is_none() {
            self.with_turn(outlet, act);
        } else if let Some(u) = &mut self.unprompted {
            let mut sink = Numbered {
                session: &self.id,
                turn: Some(&u.turn_id),
                log: &mut self.log,
                unsent: &mut self.unsent,
                broken: &mut self.broken,
                view: self.view,
                outlet,
            };
            act(&mut u.turn, &mut sink);
        }
    }

    /// Ends the message that nobody asked for, if there is one.
    pub fn end_unprompted(&mut self, error: Option<&Error>, outlet: &mut impl Outlet) {
        if self.unprompted.is_none() {
            return;
        }
        self.with_unprompted(outlet, |turn, sink| match error {
            None => turn.finish_unasked(sink),
            Some(error) => turn.fail(error, sink),
        });
        self.forget_unprompted();
    }

    /// The agent begins with the prompt that waited.
    pub fn begin_prompt(&mut self, outlet: &mut impl Outlet) {
        self.end_unprompted(None, outlet);
        if let Some(running) = &mut self.running {
            running.waits = false;
        }
    }

    /// The agent says that it is over, and how.
    pub fn finish_unprompted(&mut self, end: &TurnEnd, outlet: &mut impl Outlet) {
        let cancelled = self.unprompted.as_ref().is_some_and(|u| u.cancelled);
        self.with_unprompted(outlet, |turn, sink| turn.finish(end, cancelled, sink));
        self.forget_unprompted();
        self.cost = end.cost.or(self.cost);
        self.begin_prompt(outlet);
    }

    fn forget_unprompted(&mut self) {
        if let Some(mut over) = self.unprompted.take() {
            self.remember(&mut over.turn, over.cancelled);
        }
    }
}
