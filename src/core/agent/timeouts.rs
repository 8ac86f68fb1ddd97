//! Times of an agent: its start, its end, sign-in, questions, and how long it may be idle.

use super::connection::{Connection, Phase};
use super::cx::AgentCx;
use super::process::Process;
use super::{AgentMachine, State};
use crate::core::client::Notice;
use crate::core::client_sink::ClientSinks;
use crate::core::dialect::Child;
use crate::core::dialects::traits;
use crate::core::error::Error;
use crate::core::known::acp_command;
use crate::core::launcher::launcher;
use crate::core::limits::{Limits, Wait};
use crate::core::silence::{Silence, in_words};
use crate::core::timeout_error::{TimedOut, last_of_stderr, waiting};
use crate::proto::wire::{AgentState, AgentStateParams, Party, Waiting};
use std::time::{Duration, Instant};

/// When a start is reported as slow for the first time.
const SLOW_START: Duration = Duration::from_secs(2);

/// A process or agent whose time is over: the error, and the process where the agent may go on without it.
pub struct Overdue {
    pub error: Error,
    pub process: Option<Child>,
}

impl AgentMachine {
    /// When [`AgentMachine::tick`] is due next, and why.
    #[must_use]
    pub fn deadline(&self, limits: &Limits) -> Option<(Instant, &'static str)> {
        let start = match self.connection().map(|connection| &connection.phase) {
            Some(Phase::Starting { idle, .. }) => start_due(idle),
            _ => None,
        };
        let process = self.connection().and_then(|c| c.process_due(limits));
        let restart = self.restart_due().map(|at| (at, "restart"));
        let sign_in = self.sign_in.deadline().map(|at| (at, "authenticate"));
        let question = self.question_due().map(|at| (at, "answer"));
        let all = [start, process, restart, sign_in, question];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Extends all waits: nobody listened to the agent for this long.
    pub fn postpone(&mut self, by: Duration) {
        if let Some(connection) = self.connection_mut() {
            connection.postpone(by);
        }
        self.sign_in.postpone(by);
        self.postpone_questions(by);
    }

    /// Extends the waits for a sign-in: the user is asked something meanwhile.
    pub fn wait_for_user(&mut self, by: Duration) {
        self.sign_in.postpone(by);
    }

    /// Does what is due; returns the processes that did not start, and the agent that did not answer the handshake.
    pub fn tick<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) -> Vec<Overdue> {
        let mut overdue = self.tick_processes(cx);
        overdue.extend(self.tick_handshake(cx));
        if overdue.is_empty() {
            self.tick_slow_start(cx);
        }
        overdue
    }

    /// Does what is due after the processes: restart, sign-in, questions.
    pub fn tick_waits<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) {
        self.tick_restart(cx);
        self.tick_questions(cx);
        self.tick_sign_in(cx);
    }

    fn tick_processes<C>(&mut self, cx: &mut AgentCx<'_, C>) -> Vec<Overdue> {
        let limits = cx.shared.settings.limits;
        let command = self.spec.command.clone();
        let Some(connection) = self.connection_mut() else {
            return Vec::new();
        };
        for process in &mut connection.processes {
            if let Some(step) = process.stop.as_mut().and_then(|stop| stop.tick(cx.now)) {
                cx.effects.push(process.effect(step));
            }
        }
        let due = |process: &&Process| process.start_due(&limits).is_some_and(|at| at <= cx.now);
        let late = connection.processes.iter().filter(due);
        let overdue = |process: &Process| Overdue {
            error: TimedOut {
                wait: Wait::Spawn,
                limit: limits.of(Wait::Spawn).unwrap_or_default(),
                what: &format!("{command} did not start"),
                advice: "is it on a disk that does not answer, or the system overloaded?",
                heard: None,
                stderr: "",
            }
            .error(),
            process: Some(process.child),
        };
        late.map(overdue).collect()
    }

    fn tick_handshake<C>(&mut self, cx: &AgentCx<'_, C>) -> Option<Overdue> {
        let connection = self.connection()?;
        let Phase::Starting { idle, .. } = &connection.phase else {
            return None;
        };
        if idle.until().is_none_or(|at| at > cx.now) {
            return None;
        }
        let process = connection.first_process();
        let error = TimedOut {
            wait: Wait::Initialize,
            limit: cx.shared.settings.limits.of(Wait::Initialize)?,
            what: &format!("{} did not answer initialize", self.spec.command),
            advice: &format!(
                "is it an agent that speaks {}, and does its command line start it as one?{}",
                connection.dialect.name(),
                self.acp_hint()
            ),
            heard: process.and_then(|p| p.last_output(cx.now)),
            stderr: &stderr(process),
        }
        .error();
        Some(Overdue {
            error,
            process: None,
        })
    }

    /// Reports that the start is slow, when that is due.
    fn tick_slow_start<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) {
        let now = cx.now;
        let phase = self
            .connection_mut()
            .map(|connection| &mut connection.phase);
        let Some(Phase::Starting { idle, .. }) = phase else {
            return;
        };
        if idle.tell_at(SLOW_START).is_none_or(|at| at > now) {
            return;
        }
        idle.note_told(SLOW_START, now);
        let notice = Notice::AgentState(AgentStateParams {
            agent: self.name.clone(),
            state: AgentState::Starting,
            reason: None,
            waiting_for: self.start_wait(now),
        });
        cx.shared.notify_all(&notice, cx.clients);
    }

    /// What the agent's start waits for; `None` unless it is starting.
    #[must_use]
    pub fn start_wait(&self, now: Instant) -> Option<Waiting> {
        let connection = self.connection()?;
        let Phase::Starting { idle, .. } = &connection.phase else {
            return None;
        };
        let process = connection.first_process();
        let (stage, what) = match process {
            Some(process) if process.pid.is_some() => {
                (Wait::Initialize, "the agent's answer to initialize")
            }
            _ => (Wait::Spawn, "the agent's process to start"),
        };
        let lasted = idle.lasted(now);
        let launcher = launcher(&self.spec.command, &self.spec.args);
        let note = format!(
            "waiting for {what}, {}{}{}{}",
            in_words(lasted),
            self.acp_hint(),
            launcher.map_or_else(String::new, |launcher| format!("; {launcher}")),
            last_of_stderr(&stderr(process))
        );
        Some(waiting(stage.name(), Party::Agent, lasted, note))
    }

    /// The command line that starts the agent's program as an ACP agent, where its own is known not to do that.
    pub(super) fn acp_hint(&self) -> String {
        let spec = Some(&self.spec).filter(|spec| traits(spec.protocol).may_lack_argument);
        let meant = spec.and_then(|spec| acp_command(&spec.command, &spec.args));
        meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }

    /// The agent did not sign in, or out, in time.
    pub(super) fn sign_in_timeout<C>(&self, signs_in: bool, cx: &AgentCx<'_, C>) -> Error {
        let method = if signs_in { "authenticate" } else { "logout" };
        let process = self.connection().and_then(Connection::first_process);
        TimedOut {
            wait: Wait::Authenticate,
            limit: cx
                .shared
                .settings
                .limits
                .of(Wait::Authenticate)
                .unwrap_or_default(),
            what: &format!("the agent did not answer {method}"),
            advice: "call again; --timeout authenticate=… gives it more time",
            heard: process.and_then(|p| p.last_output(cx.now)),
            stderr: &stderr(process),
        }
        .error()
    }

    /// When the agent was last used, if it is connected.
    #[must_use]
    pub fn used(&self) -> Option<Instant> {
        self.connection().map(|connection| connection.used)
    }

    /// Stops an agent that had no use for `limit`; a call that needs it starts it again. True when it has ended
    /// already.
    pub fn stop_idle<C: ClientSinks>(&mut self, limit: Duration, cx: &mut AgentCx<'_, C>) -> bool {
        let Some(connection) = self.connection() else {
            return false;
        };
        if !self.sign_in.is_empty() {
            self.note_use(cx.now);
            return false;
        }
        let is_ready = connection.ready().is_some();
        if !is_ready || connection.processes.is_empty() || connection.used + limit > cx.now {
            return false;
        }
        self.allow_restart(cx.now);
        let why = "nobody used it for a while: it is started again when somebody does";
        self.begin_stopping(None, Some(why.to_owned()), cx)
    }

    /// Whether the agent is being stopped without the client having asked for it.
    #[must_use]
    pub fn is_stopping_by_itself(&self) -> bool {
        let phase = self.connection().map(|connection| &connection.phase);
        matches!(phase, Some(Phase::Stopping { why: Some(_), .. }))
    }

    /// Shortens the time that ending processes get.
    pub fn expedite<C>(&mut self, cx: &mut AgentCx<'_, C>) {
        let State::Connected(connection) = &mut self.state else {
            return;
        };
        for process in &mut connection.processes {
            if let Some(stop) = &mut process.stop {
                let step = stop.hurry(cx.now);
                cx.effects.push(process.effect(step));
            }
        }
    }
}

/// When a start is given up or reported as slow, and which of these.
fn start_due(idle: &Silence) -> Option<(Instant, &'static str)> {
    let given_up = idle.until().map(|at| (at, "initialize"));
    let reported = idle.tell_at(SLOW_START).map(|at| (at, "slow start"));
    given_up.into_iter().chain(reported).min()
}

fn stderr(process: Option<&Process>) -> String {
    process.map(|p| p.health.stderr.text()).unwrap_or_default()
}
