//! What is waited for while nothing goes on: said now and then, and whenever somebody asks.

use super::processes::Process;
use super::waits::ms;
use super::{Agent, Bridge, Phase};
use crate::core::client::{Notice, Outlet};
use crate::core::error::clip;
use crate::core::event::Exit;
use crate::core::known::acp_command;
use crate::core::launcher::launcher;
use crate::core::limits::Wait;
use crate::core::printable::printable;
use crate::core::retry::Pause;
use crate::core::session::{Session, Stage};
use crate::core::silence::{Silence, in_words};
use crate::core::vitals::last_line;
use crate::proto::wire::{AgentState, AgentStateParams, Party, Protocol, Waiting};
use std::time::{Duration, Instant};

/// When a start is said to be slow for the first time.
const SLOW_START: Duration = Duration::from_secs(2);

/// For how long an agent may not read its stdin before it is said to be stuck there.
const STUCK: Duration = Duration::from_secs(1);

/// When a start is given up or told to be slow, and which of these.
pub(super) fn start_due(silence: &Silence) -> Option<(Instant, &'static str)> {
    let given_up = silence.until().map(|at| (at, "initialize"));
    let told = silence.tell_at(SLOW_START).map(|at| (at, "slow start"));
    given_up.into_iter().chain(told).min()
}

impl Bridge {
    /// Tells that the agent's start is slow, when that is due.
    pub(super) fn tick_start(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let agent = self.agent.as_mut().map(|agent| &mut agent.phase);
        let Some(Phase::Starting { silence, .. }) = agent else {
            return;
        };
        if silence.tell_at(SLOW_START).is_none_or(|at| at > now) {
            return;
        }
        silence.note_told(SLOW_START, now);
        outlet.notify(Notice::AgentState(AgentStateParams {
            state: AgentState::Starting,
            reason: None,
            waiting_for: self.start_waits(now),
        }));
    }

    /// What the agent's start waits for.
    pub(super) fn start_waits(&self, now: Instant) -> Option<Waiting> {
        let agent = self.agent.as_ref()?;
        let Phase::Starting { silence, .. } = &agent.phase else {
            return None;
        };
        let process = agent.first_process();
        let (stage, what) = match process {
            Some(process) if process.pid.is_some() => {
                (Wait::Initialize, "the agent's answer to initialize")
            }
            _ => (Wait::Spawn, "the agent's process to start"),
        };
        let lasted = silence.lasted(now);
        let launcher = launcher(&agent.spec.command, &agent.spec.args);
        let note = format!(
            "waiting for {what}, {}{}{}{}",
            in_words(lasted),
            self.acp_hint(),
            launcher.map_or_else(String::new, |launcher| format!("; {launcher}")),
            said_on_stderr(process)
        );
        Some(waiting(stage.name(), Party::Agent, lasted, note))
    }

    /// How the agent's program is started as an ACP agent, where its command line is known not to do that.
    pub(super) fn acp_hint(&self) -> String {
        let spec = self.agent.as_ref().map(|agent| &agent.spec);
        let spec = spec.filter(|spec| spec.protocol == Protocol::Acp);
        let meant = spec.and_then(|spec| acp_command(&spec.command, &spec.args));
        meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }

    /// What to do about an agent that ended before it was ready; nothing where its stderr says more.
    pub(super) fn start_hint(&self, exit: &Exit) -> String {
        let hint = self.acp_hint();
        let is_acp = |agent: &Agent| agent.spec.protocol == Protocol::Acp;
        let is_silent = exit.code == Some(0) && exit.stderr.is_empty();
        if hint.is_empty() && is_silent && self.agent.as_ref().is_some_and(is_acp) {
            return "; an ACP agent runs until its stdin is closed: many need an argument for that, such as acp or --acp"
                .to_owned();
        }
        hint
    }

    /// Tells that nothing goes on in a session, when that is due.
    pub(super) fn tick_silence(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let told = |s: &Session| s.tells_silence().is_some_and(|(at, _)| at <= now);
        if !self.sessions.get(id).is_some_and(told) {
            return;
        }
        let waiting = self.session_waits(id, now);
        if let Some(session) = self.sessions.get_mut(id) {
            session.note_told(now);
            session.tell_activity(waiting, outlet);
        }
    }

    /// What a session waits for, in its turn or on its way to be live.
    pub(super) fn session_waits(&self, id: &str, now: Instant) -> Option<Waiting> {
        let session = self.sessions.get(id)?;
        let Some(silence) = &session.silence else {
            let opening = matches!(session.stage, Stage::Opening { .. });
            return opening.then(|| self.start_waits(now)).flatten();
        };
        let process = self.process_of(session);
        let lasted = silence.lasted(now);
        let (party, stage, what) = session.waits_for(process.and_then(|p| p.vitals.stuck(now)))?;
        let last = match silence.heard(now) {
            Some((heard, _)) => format!("last heard: {heard}"),
            None => "nothing heard so far".to_owned(),
        };
        let note = format!(
            "waiting for {what}, {} ({last}){}",
            in_words(lasted),
            said_on_stderr(process)
        );
        Some(waiting(stage, party, lasted, note))
    }
}

impl Session {
    /// Who has to go on, which wait that is, and in words; `stuck` is for how long the agent did not read its
    /// stdin.
    fn waits_for(&self, stuck: Option<Duration>) -> Option<(Party, &'static str, String)> {
        let running = self.running.as_ref().filter(|r| r.ended.is_none());
        let agent = |wait: Wait, what: &str| (Party::Agent, wait.name(), what.to_owned());
        let (party, stage, what) = match (&self.stage, running) {
            (Stage::Opening { climb, .. }, _) if climb.held.is_some() => {
                agent(Wait::CloseSession, "the agent to answer session/close")
            }
            (Stage::Opening { call: None, .. } | Stage::Resting, _)
            | (Stage::Live { .. }, None) => {
                return None;
            }
            (Stage::Opening { climb, .. }, _) if climb.restoring.is_some() => agent(
                Wait::Set,
                "the agent to set again what was set in the session",
            ),
            (Stage::Opening { climb, .. }, _)
                if climb.doubted.is_some() || climb.adopting.is_some() =>
            {
                agent(Wait::List, "the agent's list of sessions")
            }
            (Stage::Opening { .. }, _) => agent(Wait::Open, "the agent to open the session"),
            (_, Some(running)) => match &running.attempts.pause {
                Some(Pause::Transient { .. }) => {
                    let what = "the next attempt at the prompt".to_owned();
                    return Some((Party::Acpipe, "retry", what));
                }
                Some(Pause::Doubt { .. }) => agent(Wait::List, "the agent's list of sessions"),
                Some(Pause::Stale(_)) => agent(Wait::Open, "the agent to open the session"),
                None if !self.asks.is_empty() => {
                    let what = "the client's answer to a question of the agent".to_owned();
                    return Some((Party::Client, Wait::Answer.name(), what));
                }
                None if running.is_cancelled() => {
                    agent(Wait::Cancel, "the agent to end the cancelled turn")
                }
                None if self.owed > 0 => {
                    let what = "a file or a command that the agent asked for".to_owned();
                    return Some((Party::Tool, Wait::Prompt.name(), what));
                }
                None => match running.turn.activity() {
                    Some(tool) => {
                        let (name, stage) = (tool.tool_name, Wait::Prompt.name());
                        (Party::Tool, stage, format!("the agent's tool {name}"))
                    }
                    None => agent(Wait::Prompt, "the agent"),
                },
            },
        };
        if stuck.is_some_and(|stuck| stuck >= STUCK) {
            let what = "the agent to read its stdin".to_owned();
            return Some((Party::AgentInput, stage, what));
        }
        Some((party, stage, what))
    }
}

fn waiting(stage: &str, party: Party, silent: Duration, note: String) -> Waiting {
    Waiting {
        party,
        stage: stage.to_owned(),
        silent_ms: ms(silent),
        note,
    }
}

fn said_on_stderr(process: Option<&Process>) -> String {
    let stderr = process.map(|p| p.vitals.stderr()).unwrap_or_default();
    last_line(&stderr).map_or_else(String::new, |last| {
        format!("; the last line of its stderr: {}", clip(&printable(last)))
    })
}
