//! Renewal: the replacement of an agent process by one with another environment.
//!
//! A renewal interrupts no turn: it waits for the running turns and for the prompts that were queued before
//! it. Later prompts wait for the new agent process. The sessions are restored at the new process; then every
//! waiting call is answered.

use super::cx::AgentCx;
use super::{AgentMachine, Phase, State};
use crate::core::client::{Reply, Token};
use crate::core::error::Error;
use crate::proto::wire::{BroughtBack, Recovery, UpdateEnvironmentResult};
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
    /// Returns `true` if a prompt has to wait for the new process.
    #[must_use]
    pub fn holds(&self, prompt: Token) -> bool {
        !self.started && !self.ahead.contains(&prompt)
    }

    /// Returns `true` if a queued prompt goes to the old process.
    #[must_use]
    pub fn is_ahead(&self, prompt: Token) -> bool {
        self.ahead.contains(&prompt)
    }

    /// Returns `true` if the new process was started.
    #[must_use]
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

impl AgentMachine {
    /// The pending renewal, if any.
    #[must_use]
    pub fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_ref()
    }

    /// Returns `true` if the connected agent process is to be replaced.
    #[must_use]
    pub fn is_renewing(&self) -> bool {
        self.renewal.as_ref().is_some_and(|r| !r.started)
    }

    /// Returns `true` if a prompt has to wait for the new process.
    #[must_use]
    pub fn holds(&self, prompt: Token) -> bool {
        self.renewal.as_ref().is_some_and(|r| r.holds(prompt))
    }

    /// Begins a renewal, or begins it again if the new process already lacks a change. `ahead` are the queued
    /// prompts.
    pub(super) fn begin_renewal(&mut self, is_stale: bool, ahead: Vec<Token>) -> &mut Renewal {
        let renewal = self.renewal.get_or_insert_default();
        // With several waiting calls, the first determines which prompts were queued before.
        if renewal.waiters.is_empty() || (is_stale && renewal.started) {
            renewal.started = false;
            renewal.ahead = ahead;
        }
        renewal
    }

    /// Begins to replace the connected process by one with the same environment. All queued prompts go to the
    /// new process.
    pub fn renew_now(&mut self) {
        let renewal = self.renewal.get_or_insert_default();
        renewal.started = false;
        renewal.ahead.clear();
    }

    /// Stops the agent; it is started again when it has ended. Returns `true` if it has already ended.
    pub fn replace(&mut self, cx: &mut AgentCx<'_>) -> bool {
        let Some(connection) = self.connection_mut() else {
            return false;
        };
        let waiters = match &mut connection.phase {
            Phase::Stopping { .. } => return false,
            Phase::Starting { waiters, .. } => std::mem::take(waiters),
            Phase::Ready(_) => Vec::new(),
        };
        let next = Some((Box::new(self.spec.clone()), waiters));
        self.begin_stopping(next, None, cx)
    }

    /// Records that the session was live at the old process, so that its outcome is part of the answer.
    pub fn note_renewed_session(&mut self, session: &str) {
        if let Some(renewal) = &mut self.renewal {
            renewal.sessions.insert(session.to_owned(), None);
        }
    }

    /// Records the outcome of a session's restore.
    pub fn note_restored(&mut self, session: &str, outcome: Result<&Recovery, &Error>) {
        let sessions = self.renewal.as_mut().map(|renewal| &mut renewal.sessions);
        if let Some(known) = sessions.and_then(|sessions| sessions.get_mut(session)) {
            *known = Some(outcome.cloned().map_err(Error::clone));
        }
    }

    /// Records the start of the new process.
    pub(super) fn renewal_started(&mut self, now: std::time::Instant) {
        if let (Some(renewal), State::Connected(_)) = (&mut self.renewal, &self.state) {
            renewal.started = true;
            // If the start fails, the next prompt tries again.
            self.allow_restart(now);
        }
    }

    /// Answers every waiting call once the new process is ready and none of its sessions is being opened.
    pub fn answer_renewal(&mut self, is_opening: impl Fn(&str) -> bool, cx: &mut AgentCx<'_>) {
        let done = |renewal: &mut Renewal| !renewal.sessions.keys().any(|id| is_opening(id));
        if self.is_ready()
            && let Some(renewal) = self.renewal.take_if(done)
        {
            for (token, changed) in &renewal.waiters {
                let result = UpdateEnvironmentResult {
                    changed: *changed,
                    restarted: true,
                    sessions: renewal.outcomes(),
                };
                cx.reply(*token, Reply::UpdateEnvironment(result));
            }
        }
    }

    /// Fails every waiting call, since there will be no new process. The environment stays changed.
    pub fn renewal_failed(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        self.fail_pending_sign_ins(error, cx);
        let waiters = self.renewal.take().map(|renewal| renewal.waiters);
        let waiters = waiters.unwrap_or_default().into_iter();
        cx.fail(waiters.map(|(token, _)| token), error);
    }
}
