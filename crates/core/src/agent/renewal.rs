//! Renewal: the replacement of an agent process by one with another environment.
//!
//! Owns what a pending renewal waits for: the calls to answer, the prompts that the old process still gets, and the sessions to
//! restore with their outcomes. It may not stop or start processes, restore sessions or answer clients: it says which prompts
//! have to wait and with what the calls are answered.
//!
//! A renewal interrupts no turn: it waits for the running turns and for the prompts that were queued before
//! it. Later prompts wait for the new agent process. The sessions are restored at the new process; then every
//! waiting call is answered.

use crate::client::Token;
use acpipe_model::error::Error;
use acpipe_protocol::wire::{BroughtBack, Recovery, UpdateEnvironmentResult};
use std::collections::BTreeMap;

/// Pending replacement of an agent process by one with another environment.
#[derive(Default)]
pub struct Renewal {
    /// Calls to answer, and whether each changed the environment.
    waiters: Vec<(Token, bool)>,
    /// Prompts that were queued before the renewal; the old process gets them.
    ahead: Vec<Token>,
    /// Whether the old process has ended and the new one was started.
    started: bool,
    /// Sessions to restore, and the outcome of each.
    sessions: BTreeMap<String, Option<Result<Recovery, Error>>>,
}

impl Renewal {
    /// Begins a renewal, or begins it again if the new process already lacks a change. `ahead` are the queued
    /// prompts.
    pub(super) fn begin(
        pending: &mut Option<Self>,
        lacks_change: bool,
        ahead: Vec<Token>,
    ) -> &mut Self {
        let renewal = pending.get_or_insert_default();
        // With several waiting calls, the first determines which prompts were queued before.
        if renewal.waiters.is_empty() || (lacks_change && renewal.started) {
            renewal.started = false;
            renewal.ahead = ahead;
        }
        renewal
    }

    /// Begins to replace the connected process by one with the same environment. All queued prompts go to the
    /// new process.
    pub fn begin_now(pending: &mut Option<Self>) {
        let renewal = pending.get_or_insert_default();
        renewal.started = false;
        renewal.ahead.clear();
    }

    /// Returns `true` if a prompt has to wait for the new process.
    pub fn holds(&self, prompt: Token) -> bool {
        !self.started && !self.ahead.contains(&prompt)
    }

    /// Returns `true` if a queued prompt goes to the old process.
    pub fn is_ahead(&self, prompt: Token) -> bool {
        self.ahead.contains(&prompt)
    }

    /// Returns `true` if the connected agent process is still to be replaced.
    pub fn is_pending(&self) -> bool {
        !self.started
    }

    /// Returns `true` if the new process was started.
    pub fn has_started(&self) -> bool {
        self.started
    }

    /// Returns the sessions to restore.
    pub fn sessions(&self) -> impl Iterator<Item = &String> {
        self.sessions.keys()
    }

    pub(super) fn wait(&mut self, token: Token, changed: bool) {
        self.waiters.push((token, changed));
    }

    pub(super) fn note_start(&mut self) {
        self.started = true;
    }

    /// Records that the session was live at the old process, so that its outcome is part of the answer.
    pub fn note_session(&mut self, session: &str) {
        self.sessions.insert(session.to_owned(), None);
    }

    pub fn note_restored(&mut self, session: &str, outcome: Result<&Recovery, &Error>) {
        if let Some(known) = self.sessions.get_mut(session) {
            *known = Some(outcome.cloned().map_err(Error::clone));
        }
    }

    pub(super) fn results(&self) -> impl Iterator<Item = (Token, UpdateEnvironmentResult)> {
        self.waiters.iter().map(|(token, changed)| {
            let result = UpdateEnvironmentResult {
                changed: *changed,
                restarted: true,
                sessions: self.outcomes(),
            };
            (*token, result)
        })
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = Token> {
        self.waiters.iter().map(|(token, _)| *token)
    }

    fn outcomes(&self) -> Vec<BroughtBack> {
        let outcomes = self.sessions.iter().filter_map(|(id, outcome)| {
            let outcome = outcome.as_ref()?;
            Some(BroughtBack {
                session_id: id.clone(),
                recovery: outcome.as_ref().ok().cloned(),
                error: outcome.as_ref().err().map(Into::into),
            })
        });
        outcomes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::error::ErrorKind;

    #[test]
    fn prompts_that_were_queued_before_are_ahead_until_it_begins_again() {
        let mut pending = None;
        let [first, second] = [Token::first(1), Token::first(2)];
        Renewal::begin(&mut pending, true, vec![first]).wait(Token::first(9), true);
        let renewal = Renewal::begin(&mut pending, true, vec![first, second]);
        assert!(!renewal.holds(first) && renewal.holds(second));
        renewal.note_start();
        assert!(!renewal.holds(second));
        let renewal = Renewal::begin(&mut pending, true, vec![first, second]);
        assert!(!renewal.has_started() && renewal.is_ahead(second));
        Renewal::begin_now(&mut pending);
        assert!(pending.unwrap().holds(first));
    }

    #[test]
    fn a_waiting_call_gets_the_outcomes_of_the_noted_sessions() {
        let mut pending = None;
        let renewal = Renewal::begin(&mut pending, true, Vec::new());
        renewal.wait(Token::first(1), true);
        for session in ["a", "b"] {
            renewal.note_session(session);
        }
        let error = Error::new(ErrorKind::Cancelled, "no");
        renewal.note_restored("b", Err(&error));
        renewal.note_restored("c", Err(&error));
        let results: Vec<_> = renewal.results().collect();
        let [(_, result)] = &results[..] else {
            panic!("{results:?}");
        };
        let ids: Vec<&str> = result
            .sessions
            .iter()
            .map(|s| s.session_id.as_str())
            .collect();
        assert_eq!(ids, ["b"]);
    }
}
