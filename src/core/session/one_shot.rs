//! Sessions that serve one `execute` call: the call is tried again after a crash of its agent.

use super::{SessionMachine, SessionRequest, Stage};
use crate::core::cx::Cx;
use crate::core::dialects::traits;
use crate::core::error::{Error, ErrorKind};
use crate::core::retry::Pause;
use crate::core::turn_ending::Ending;
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::Protocol;
use serde_json::json;
use std::time::{Duration, Instant};
use tracing::info;

/// Pauses before the second and the third attempt (row H-X1 of the demands).
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Attempts at an `execute` call.
#[derive(Debug)]
pub struct OneShot {
    /// Whether the call is tried again.
    retries: bool,
    /// Number of attempts that failed.
    failures: usize,
    /// When the session is opened for the next attempt.
    pub(super) reopen_at: Option<Instant>,
}

impl OneShot {
    /// Creates the state of a call that was not tried yet.
    #[must_use]
    pub fn new(retries: bool) -> Self {
        Self {
            retries,
            failures: 0,
            reopen_at: None,
        }
    }

    /// Returns the pause before the next attempt, and counts the failed one. `None` if the call fails.
    fn pause_after(&mut self, error: &Error) -> Option<Duration> {
        let may = self.retries && is_retried(error.kind);
        let pause = PAUSES.get(self.failures).copied().filter(|_| may)?;
        self.failures += 1;
        Some(pause)
    }
}

/// Returns `true` if another attempt may succeed: the agent process or its output failed, not its work.
fn is_retried(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::AgentStart
            | ErrorKind::AgentExited
            | ErrorKind::Streaming
            | ErrorKind::Malformed
    )
}

impl SessionMachine {
    /// Returns `true` if the session serves one `execute` call.
    #[must_use]
    pub fn is_one_shot(&self) -> bool {
        self.one_shot.is_some()
    }

    /// Returns `true` if the call of the session is answered, so that the session can be removed.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.is_one_shot()
            && self.talk.must_be_idle().is_ok()
            && !self.talk.output.subscribers().are_lagging()
    }

    /// When the session is opened for the next attempt; `None` if its call is answered meanwhile.
    pub(super) fn reopen_at(&self) -> Option<Instant> {
        let is_awaited = !self.talk.queue.is_empty() || self.is_between_sessions();
        self.one_shot.as_ref().filter(|_| is_awaited)?.reopen_at
    }

    /// Ends the pause before the next attempt.
    pub(super) fn reopen_for_attempt(&mut self, cx: &mut Cx<'_>) {
        if let Some(one_shot) = &mut self.one_shot {
            one_shot.reopen_at = None;
            cx.requests.push(SessionRequest::NextPrompt);
        }
    }

    /// Handles a malformed answer, or the failure of an agent whose process serves one prompt. Returns the pause
    /// before the prompt is sent again, `None` if it is not.
    pub(super) fn pause_after_answer(
        &mut self,
        ending: &Ending,
        protocol: Protocol,
    ) -> Option<Duration> {
        // The loss of another agent is handled apart from the answer (`survives_loss`).
        let is_whole = !traits(protocol).remembers;
        let error = ending
            .error()
            .filter(|e| is_whole || e.kind == ErrorKind::Malformed)?;
        self.one_shot.as_mut()?.pause_after(error)
    }

    /// Handles the loss of the agent during the turn. Returns `true` if the turn continues with a new session of
    /// the agent.
    pub(super) fn survives_loss(&mut self, error: &Error, cx: &mut Cx<'_>) -> bool {
        let (Some(running), Some(one_shot)) = (self.talk.turns.prompted_mut(), &mut self.one_shot)
        else {
            return false;
        };
        if running.is_cancelled() || running.timed_out.is_some() {
            return false;
        }
        // The opening of the session for the next attempt fails on its own, if it has begun.
        if matches!(running.attempts.pause, Some(Pause::Stale(_))) {
            return true;
        }
        // A dialect may report the loss as the answer to the prompt first.
        let error = match &running.ended {
            None => error.clone(),
            Some(Ending::Failed(answer)) => answer.clone(),
            Some(Ending::Answered(_)) => return false,
        };
        let Some(pause) = one_shot.pause_after(&error) else {
            return false;
        };
        one_shot.reopen_at = Some(cx.now + pause);
        running.ended = None;
        running.late_output_until = None;
        running.attempts.begin_anew();
        running.attempts.pause = Some(Pause::Stale(error.clone()));
        self.talk.known.forget(&cx.agent.identity());
        let id = &self.talk.id;
        info!(session = id, %error, "trying the call again after the loss of its agent");
        self.talk
            .turns
            .show_terminals(&mut cx.hosting.host, &mut self.talk.output, cx.clients);
        let notice = attempt_notice(&error, pause);
        self.decisions
            .report_open_calls_of_attempt(&mut self.talk, cx);
        self.talk
            .turns
            .with_turn(&mut self.talk.output, cx.clients, |turn, sink| {
                turn.end_attempt(sink);
                sink.chunk(&Chunk::DataNotice {
                    data: Raw(&notice),
                    transient: true,
                });
            });
        true
    }

    /// Handles a failed opening of the session. Returns `true` if it is opened again.
    pub(super) fn retries_opening(&mut self, error: &Error, now: Instant) -> bool {
        let is_awaited = !self.talk.queue.is_empty() || self.is_between_sessions();
        let Some(one_shot) = self.one_shot.as_mut().filter(|_| is_awaited) else {
            return false;
        };
        let pause = one_shot.pause_after(error);
        one_shot.reopen_at = pause.map(|pause| now + pause);
        pause.is_some()
    }

    /// Returns `true` if the running turn waits for a new session of the agent.
    #[must_use]
    pub fn is_between_sessions(&self) -> bool {
        let running = self.talk.turns.prompted();
        running.is_some_and(|r| matches!(r.attempts.pause, Some(Pause::Stale(_))))
    }

    /// Returns `true` if the session is not opened yet for its prompts because the next attempt has to wait.
    pub(super) fn waits_for_attempt(&self) -> bool {
        self.reopen_at().is_some() && matches!(self.talk.stage, Stage::Resting)
    }
}

/// Returns the notice that a call is tried again.
pub(super) fn attempt_notice(error: &Error, pause: Duration) -> Box<serde_json::value::RawValue> {
    let seconds = pause.as_secs();
    to_raw(&json!({
        "severity": "warning",
        "title": format!("The agent failed ({}); trying again in {seconds} s", error.kind.name()),
        "description": error.message,
    }))
}
