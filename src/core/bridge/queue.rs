//! Prompts: those that go to the agent at once, and those that wait for their turn. An agent never gets two
//! prompts of one session at a time.

use super::Bridge;
use super::commands::{STOPPING, invalid, out_of_order};
use super::turns::prompt_parts;
use crate::core::client::{Outlet, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::session::{Queued, Session, Stage};
use crate::proto::wire::{self, Strategy};
use std::time::Instant;

/// The longest id of a turn that a client may give, in bytes: each record of the turn has it.
const LONGEST_TURN_ID: usize = 256;

impl Bridge {
    /// Begins a turn, or keeps the prompt until it can begin.
    pub(super) fn prompt(
        &mut self,
        token: Token,
        p: wire::PromptParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        // What is wrong with it is told now, not when its turn comes.
        prompt_parts(Some(&p.message.parts))?;
        if p.timeout_ms == Some(0) {
            return Err(invalid("timeoutMs", "it must be at least 1"));
        }
        let id = &self.session_id(p.session_id.as_deref())?;
        if let Some(given) = &p.turn_id {
            if given.len() > LONGEST_TURN_ID {
                return Err(invalid("turnId", "256 bytes at most"));
            }
            self.session(id)?.must_not_have(given)?;
            if self.told_before(id, given, &p.message.parts, p.rerun, token)? {
                return Ok(());
            }
        }
        // Where nobody wished the end of the agent, the next one takes the prompt.
        let stopping = self.is_stopping() && self.crashed.is_none();
        let held = self.is_held(token);
        let session = self.session(id)?;
        session.takes_prompt(p.when_busy)?;
        if stopping && !held {
            return Err(out_of_order(STOPPING));
        }
        let goes = !held && session.is_free() && session.queue.is_empty();
        let turn_id = p.turn_id.clone();
        let queued = Queued {
            token,
            turn_id: turn_id.unwrap_or_else(|| self.next_id("turn")),
            prompt: p,
        };
        if goes {
            self.begin_turn(id, queued, now, outlet)
        } else {
            self.wait_for_turn(id, queued, now, outlet)
        }
    }

    /// Keeps a prompt until its turn comes, and sees to it that it will.
    fn wait_for_turn(
        &mut self,
        id: &str,
        queued: Queued,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let session = self.sessions.get(id);
        let resting = session.is_some_and(|s| matches!(s.stage, Stage::Resting));
        let broke = self.is_stopping() && self.crashed.is_some();
        let resting = resting && !broke;
        if resting {
            self.make_room(id, now, outlet)?;
            self.need_agent_for(id, now, outlet)?;
        }
        if let Some(session) = self.sessions.get_mut(id) {
            session.queue.push(queued);
            session.tell_queue(outlet);
            if resting {
                session.begin_opening(Strategy::Auto, Vec::new());
                self.climb(id, now, outlet);
            }
        }
        Ok(())
    }

    /// Goes on with the sessions that have become free.
    pub(super) fn next_prompts(&mut self, now: Instant, outlet: &mut impl Outlet) {
        for id in std::mem::take(&mut self.freed) {
            self.next_prompt(&id, now, outlet);
        }
    }

    /// Sends the next prompt of a session that can take one; where its agent is lost brings it back for that.
    pub(super) fn next_prompt(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let lost = |s: &Session| matches!(s.stage, Stage::Resting) && !s.queue.is_empty();
        if self.sessions.get(id).is_some_and(lost) && !self.is_stopping() {
            let room = self.make_room(id, now, outlet);
            if let Err(error) = room.and_then(|()| self.need_agent_for(id, now, outlet)) {
                self.fail_queue(id, &error, outlet);
            } else if let Some(session) = self.sessions.get_mut(id) {
                session.begin_opening(Strategy::Auto, Vec::new());
                self.climb(id, now, outlet);
            }
            return;
        }
        // One that cannot be sent makes room for the one behind it.
        while let Some(session) = self.sessions.get_mut(id).filter(|s| s.is_free()) {
            let renewal = self.renewal.as_ref();
            let goes = |token| !renewal.is_some_and(|renewal| renewal.holds(token));
            let Some(queued) = session.queue.next_if(goes) else {
                return;
            };
            session.tell_queue(outlet);
            let token = queued.token;
            let begun = self.caught(now, outlet, |bridge, outlet| {
                bridge.begin_turn(id, queued, now, outlet)
            });
            if let Err(error) = begun.unwrap_or_else(|panic| Err(panic.error)) {
                outlet.reply(token, Err(error));
            }
        }
    }

    /// Takes out one prompt that waits: that of this turn, or without one the first where no turn runs; true
    /// when there is one.
    pub(super) fn cancel_waiting(
        &mut self,
        id: &str,
        turn_id: Option<&str>,
        outlet: &mut impl Outlet,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        if turn_id.is_none() && session.running.is_some() {
            return false;
        }
        let Some(queued) = session.queue.take(turn_id) else {
            return false;
        };
        session.tell_queue(outlet);
        let message = "the prompt was cancelled before its turn began";
        outlet.reply(queued.token, Err(Error::new(ErrorKind::Cancelled, message)));
        true
    }

    /// None of the prompts that wait will have its turn: all are told why.
    pub(super) fn fail_queue(&mut self, id: &str, error: &Error, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let tokens = session.queue.take_all();
        if tokens.is_empty() {
            return;
        }
        session.tell_queue(outlet);
        for token in tokens {
            outlet.reply(token, Err(error.clone()));
        }
    }
}
