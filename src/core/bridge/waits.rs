//! Waits that are given up, and what is said then.

use super::processes::Process;
use super::recovery::{REPEATED_LIMIT, WAY_OUT};
use super::{Agent, Bridge, Phase};
use crate::core::cause::cause_or_last;
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind, clip};
use crate::core::limits::Wait;
use crate::core::printable::printable;
use crate::core::session::{Session, Stage};
use crate::core::silence::in_words;
use crate::core::summary::Ending;
use crate::core::vitals::last_line;
use serde_json::json;
use std::time::{Duration, Instant};

/// What was last heard, and how long ago.
type Heard = Option<(&'static str, Duration)>;

impl Bridge {
    /// Gives up an agent that does not get ready.
    pub(super) fn tick_agent(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &self.agent else { return };
        let Phase::Starting { silence, .. } = &agent.phase else {
            return;
        };
        if silence.until().is_none_or(|at| at > now) {
            return;
        }
        let what = format!("{} did not answer initialize", agent.spec.command);
        let advice = format!(
            "is it an agent that speaks {}, and does its command line start it as one?{}",
            agent.dialect.name(),
            self.acp_hint()
        );
        let process = agent.first_process();
        let heard = process.and_then(|p| p.last_word(now));
        let error = self.gave_up(Wait::Initialize, &what, &advice, process, heard);
        self.agent_broken(&error, now, outlet);
    }

    /// Gives up whatever is due in sessions, or goes on with it.
    pub(super) fn tick_sessions(&mut self, now: Instant, outlet: &mut impl Outlet) {
        self.tick_asks(now, outlet);
        let due = |s: &&Session| s.deadline().is_some_and(|(at, _)| at <= now);
        let due: Vec<String> = self
            .sessions
            .awake()
            .filter(due)
            .map(|s| s.id.clone())
            .collect();
        for id in due {
            self.catch_up(&id, outlet);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.quieten(now, outlet);
            }
            if self.pause_over(&id, now, outlet) {
                continue;
            }
            self.tick_settings(&id, now, outlet);
            self.tick_abandoned(&id, now, outlet);
            self.tick_opening(&id, now, outlet);
            self.tick_turn(&id, now, outlet);
            self.tick_silence(&id, now, outlet);
        }
    }

    /// Not all that an agent says becomes news of a session, but all of it is a sign of life: what its own
    /// process said, or for sessions that have no id yet what came of unknown ones.
    fn catch_up(&mut self, id: &str, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let process = self.process_of(session).filter(|p| p.is_for_one());
        let own = process.and_then(|process| process.heard);
        let early = self.early_at.filter(|_| session.asked().is_some());
        let limit = self.settings.limits.of(Wait::Open);
        if let (Some(at), Some(session)) = (own.max(early), self.sessions.get_mut(id))
            && session.silence.is_some_and(|s| s.is_news(at))
        {
            session.hear(at, "update", outlet);
            session.put_off_opening(at, limit);
        }
    }

    fn tick_opening(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let overlong = |s: &Session| s.opening_out().is_some_and(|(at, _)| at <= now);
        if self.sessions.get(id).is_some_and(overlong) {
            let error = self.opened_too_late(id, now);
            self.opening_failed(id, &error, now, outlet);
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let restores = session.restoring().is_some();
        let Stage::Opening { call, deadline, .. } = session.stage else {
            return;
        };
        if deadline.is_none_or(|at| at > now) {
            return;
        }
        if self.close_overdue(id, now, outlet) {
            return;
        }
        if call.is_none() {
            self.loaded(id, now, outlet);
        } else if restores {
            self.restored_too_late(id, now, outlet);
        } else {
            let what = "the agent did not open the session and said nothing";
            let advice = "call session/ensure again, with strategy \"new\" for a fresh session";
            let error = self.gave_up_session(Wait::Open, id, what, advice, now);
            self.opening_failed(id, &error, now, outlet);
        }
    }

    /// The opening of a session did not end, whatever the agent said meanwhile.
    fn opened_too_late(&self, id: &str, now: Instant) -> Error {
        let stage = self.sessions.get(id).map(|session| &session.stage);
        let Some(Stage::Opening { climb, .. }) = stage else {
            return Error::new(ErrorKind::Timeout, "the session was not opened in time");
        };
        if climb.repeated > REPEATED_LIMIT {
            let message = format!(
                "the agent repeated more than {} MiB of the session's history: {WAY_OUT}",
                REPEATED_LIMIT >> 20
            );
            return Error::new(ErrorKind::Overloaded, message);
        }
        let what = match (&climb.opened, &climb.replay) {
            (Some(_), _) => "the agent loaded the session, but went on repeating its history",
            (None, Some(_)) if climb.repeated > 0 => {
                "the agent repeated the session's history, but did not finish loading it"
            }
            _ => "the agent did not open the session",
        };
        let advice = format!("{WAY_OUT}, or allow more time with --timeout restore=…");
        self.gave_up_session(Wait::Restore, id, what, &advice, now)
    }

    /// Gives up a turn whose agent is silent, and one whose cancel it does not answer.
    fn tick_turn(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let due = |at: Option<(Instant, &str)>| at.is_some_and(|(at, _)| at <= now);
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        if due(session.cancel_given_up()) {
            let advice = "the next prompt waits until it has, or until the session is brought back without it";
            let what = "the agent did not answer session/cancel";
            let error = self.gave_up_session(Wait::Cancel, id, what, advice, now);
            let running = self.sessions.get_mut(id).and_then(|s| s.running.as_mut());
            if let Some(silent) = running.and_then(|r| r.timed_out.as_mut()) {
                silent.message = format!("{}; {}", silent.message, error.message);
            }
            self.abandon_turn(id, error, now, outlet);
        } else if due(session.turn_out()) {
            self.cancel_overlong(id, now, outlet);
        } else if due(session.silent_out()) {
            self.cancel_silent(id, now, outlet);
        }
    }

    /// Cancels a turn in which the agent is silent, as a client would; it ends with the reason.
    fn cancel_silent(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let running = self.sessions.get(id).and_then(|s| s.running.as_ref());
        let Some(running) = running else { return };
        let turn_id = running.turn_id.clone();
        let advice = match running.turn.activity() {
            Some(tool) => format!("it runs tool {}; the turn was cancelled", tool.tool_name),
            None => "the turn was cancelled".to_owned(),
        };
        let what = "the agent said nothing";
        let error = self.gave_up_session(Wait::Prompt, id, what, &advice, now);
        self.cancel_for(id, &turn_id, error, now, outlet);
    }

    /// Cancels the turns that have reached the limit of their whole length.
    pub fn tick_turn_limits(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let due = |s: &&Session| s.turn_out().is_some_and(|(at, _)| at <= now);
        let due = self.sessions.awake().filter(due).map(|s| s.id.clone());
        for id in due.collect::<Vec<_>>() {
            self.mending(now, outlet, |bridge, outlet| {
                bridge.cancel_overlong(&id, now, outlet);
            });
        }
    }

    /// Cancels a turn that has lasted for too long, as a client would; it ends with the reason.
    fn cancel_overlong(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let session = self.sessions.get(id);
        let running = session.and_then(|s| s.running.as_ref());
        let Some((running, limit)) = running.and_then(|r| Some((r, r.limit?.1))) else {
            return;
        };
        let turn_id = running.turn_id.clone();
        let advice = match running.turn.activity() {
            Some(tool) => format!("it runs tool {}; the turn was cancelled", tool.tool_name),
            None => "the turn was cancelled; prompt again to continue".to_owned(),
        };
        let heard = session.and_then(|s| s.silence?.heard(now));
        let process = session.and_then(|session| self.process_of(session));
        let what = "the turn did not end";
        let error = gave_up(Wait::Turn, limit, what, &advice, process, heard);
        self.cancel_for(id, &turn_id, error, now, outlet);
    }

    /// Cancels a turn for a reason of acpipe's own: the turn ends with this error, whatever the agent answers.
    fn cancel_for(
        &mut self,
        id: &str,
        turn_id: &str,
        error: Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let running = self.sessions.get_mut(id).and_then(|s| s.running.as_mut());
        if let Some(running) = running {
            // A turn whose prompt is not with the agent ends at once.
            running.timed_out = Some(error.clone());
        }
        if !self.cancel(id, Some(turn_id), now, outlet) {
            self.end_turn(id, Ending::Failed(error), now, outlet);
        }
    }

    /// The agent did not set something in time.
    pub(super) fn set_too_late(&self, id: &str, now: Instant) -> Error {
        let what = "the agent did not answer the call to set it";
        let advice = "session/state will tell if it does so after all";
        self.gave_up_session(Wait::Set, id, what, advice, now)
    }

    /// The agent did not sign in, or out, in time.
    pub(super) fn signed_too_late(&self, signs_in: bool, now: Instant) -> Error {
        let method = if signs_in { "authenticate" } else { "logout" };
        let process = self.agent.as_ref().and_then(Agent::first_process);
        let heard = process.and_then(|p| p.last_word(now));
        let what = format!("the agent did not answer {method}");
        let advice = "call again; --timeout authenticate=… gives it more time";
        self.gave_up(Wait::Authenticate, &what, advice, process, heard)
    }

    /// A process did not start in time.
    pub(super) fn not_started(&self) -> Error {
        let command = self.agent.as_ref().map_or("", |a| a.spec.command.as_str());
        let what = format!("{command} did not start");
        let advice = "is it on a disk that does not answer, or the system overloaded?";
        self.gave_up(Wait::Spawn, &what, advice, None, None)
    }

    pub(super) fn process_of(&self, session: &Session) -> Option<&Process> {
        self.agent.as_ref()?.process_of(session)
    }

    fn gave_up_session(
        &self,
        wait: Wait,
        id: &str,
        what: &str,
        advice: &str,
        now: Instant,
    ) -> Error {
        let session = self.sessions.get(id);
        let process = session.and_then(|session| self.process_of(session));
        let heard = session.and_then(|s| s.silence?.heard(now));
        self.gave_up(wait, what, advice, process, heard)
    }

    /// What is said of a wait that was given up: which, how long, what was last heard, the last of stderr.
    fn gave_up(
        &self,
        wait: Wait,
        what: &str,
        advice: &str,
        process: Option<&Process>,
        heard: Heard,
    ) -> Error {
        let waited = self.settings.limits.of(wait).unwrap_or_default();
        gave_up(wait, waited, what, advice, process, heard)
    }
}

/// The error of a wait that was given up: which, how long, what was last heard, the last of stderr.
fn gave_up(
    wait: Wait,
    waited: Duration,
    what: &str,
    advice: &str,
    process: Option<&Process>,
    heard: Heard,
) -> Error {
    let words = match heard {
        Some((what, ago)) => format!("last heard: {what}, {} ago", in_words(ago)),
        None => "nothing was heard".to_owned(),
    };
    let stderr = process.map(|p| p.vitals.stderr()).unwrap_or_default();
    // A start that fails in silence may have said why; later the last line tells what the agent is at.
    let last = match wait {
        Wait::Initialize | Wait::Spawn => cause_or_last(&stderr),
        _ => last_line(&stderr).map(|last| clip(&printable(last))),
    };
    let last = last.map_or_else(String::new, |last| format!("; its stderr says: {last}"));
    let time = in_words(waited);
    let time = match wait {
        Wait::Open | Wait::Prompt => format!("for {time}"),
        _ => format!("within {time}"),
    };
    let message = format!("{what} {time} ({words}): {advice}{last}");
    let heard = heard.map(|(what, ago)| json!({ "what": what, "agoMs": ms(ago) }));
    let error = Error::new(ErrorKind::Timeout, message)
        .with("stage", wait.name())
        .with("waitedMs", ms(waited))
        .with("lastHeard", heard);
    if stderr.is_empty() {
        return error;
    }
    error.with_end("stderr", &stderr)
}

/// Milliseconds, as they are told.
pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
