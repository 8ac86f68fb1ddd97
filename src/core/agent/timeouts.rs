//! Handlers of an agent's timers: timeouts of starts and sign-ins, notices of a slow start, the stop of an
//! idle agent.

use super::connection::{Connection, Phase};
use super::cx::AgentCx;
use super::process::Process;
use super::{AgentMachine, State};
use crate::core::builtin_agents::hints::acp_command;
use crate::core::client::{Notice, Token};
use crate::core::dialect::Child;
use crate::core::dialects::traits;
use crate::core::error::Error;
use crate::core::idle_timer::format_duration;
use crate::core::limits::Timeout;
use crate::core::package_runner::package_runner;
use crate::core::secret::Secrets;
use crate::core::timeout_error::{MORE_TIME, TimedOut, last_of_stderr, waiting};
use crate::proto::wire::{AgentState, AgentStateParams, FoundBy, Party, Program, Waiting};
use std::time::{Duration, Instant};

/// Time after which a start is first reported as slow.
pub(super) const SLOW_START: Duration = Duration::from_secs(2);

/// A process or agent that reached its time limit.
pub struct TimeoutFailure {
    /// Error of the timeout.
    pub error: Error,
    /// Process that timed out, if the agent may continue without it.
    pub process: Option<Child>,
}

impl AgentMachine {
    /// Performs the next step of the stop of each process that did not exit in time.
    pub(super) fn continue_stops(&mut self, cx: &mut AgentCx<'_>) {
        let Some(connection) = self.connection_mut() else {
            return;
        };
        for process in &mut connection.processes {
            if let Some(step) = process.stop.as_mut().and_then(|stop| stop.tick(cx.now)) {
                cx.effects.push(process.effect(step));
            }
        }
    }

    /// Returns the processes that did not start in time.
    pub(super) fn overdue_processes(&self, cx: &AgentCx<'_>) -> Vec<TimeoutFailure> {
        let limits = self.limits(&cx.shared.settings);
        let command = &self.spec.command;
        let Some(connection) = self.connection() else {
            return Vec::new();
        };
        let is_late = |p: &&Process| p.start_limit(limits).is_some_and(|at| at <= cx.now);
        let late = connection.processes.iter().filter(is_late);
        let overdue = |process: &Process| TimeoutFailure {
            error: TimedOut {
                wait: Timeout::Spawn,
                limit: limits.of(Timeout::Spawn).unwrap_or_default(),
                what: &format!("{command} did not start"),
                advice: "the disk may not respond, or the system may be overloaded",
                last_activity: None,
                stderr: "",
            }
            .error(),
            process: Some(process.child),
        };
        late.map(overdue).collect()
    }

    /// Returns the agent if it did not answer the handshake in time.
    pub(super) fn overdue_handshake(&self, cx: &AgentCx<'_>) -> Option<TimeoutFailure> {
        let connection = self.connection()?;
        let process = connection.first_process();
        let error = TimedOut {
            wait: Timeout::Initialize,
            limit: self.limits(&cx.shared.settings).of(Timeout::Initialize)?,
            what: &format!("{} did not answer initialize", self.spec.command),
            advice: &format!(
                "check that the command starts an agent that speaks {}{}",
                connection.facts().name,
                self.acp_hint()
            ),
            last_activity: process.and_then(|p| p.last_output(cx.now)),
            stderr: &stderr(process, &cx.shared.settings.secrets),
        }
        .error();
        Some(TimeoutFailure {
            error,
            process: None,
        })
    }

    /// Returns `true` if a call waits for the agent to start.
    #[must_use]
    pub fn awaits(&self, token: Token) -> bool {
        let connection = self.connection();
        connection.is_some_and(|connection| match &connection.phase {
            Phase::Starting { waiters, .. } => waiters.contains(&token),
            Phase::Stopping { next, .. } => {
                let next = next.as_ref();
                next.is_some_and(|(_, waiters)| waiters.contains(&token))
            }
            Phase::Ready(_) => false,
        })
    }

    /// Fails a call that has waited for the agent to start until the call's own limit. The agent starts on.
    pub fn end_call(&mut self, token: Token, limit: Duration, cx: &mut AgentCx<'_>) {
        let error = self.start_timeout(limit, &cx.shared.settings.secrets, cx.now);
        let waiters = self
            .connection_mut()
            .and_then(|connection| match &mut connection.phase {
                Phase::Starting { waiters, .. } => Some(waiters),
                Phase::Stopping { next, .. } => next.as_mut().map(|(_, waiters)| waiters),
                Phase::Ready(_) => None,
            });
        if let (Some(error), Some(waiters)) = (error, waiters) {
            waiters.retain(|waiter| *waiter != token);
            cx.fail([token], &error);
        }
    }

    /// Returns the error of a call that has waited for the agent to start until the call's own limit; `None` if the
    /// agent is ready.
    #[must_use]
    pub fn start_timeout(&self, limit: Duration, secrets: &Secrets, now: Instant) -> Option<Error> {
        let command = &self.spec.command;
        let connection = self.connection();
        if connection.is_some_and(|connection| connection.ready().is_some()) {
            return None;
        }
        let process = connection.and_then(Connection::first_process);
        let (wait, what) = match process {
            Some(process) if process.pid.is_some() => {
                (Timeout::Initialize, "did not answer initialize")
            }
            _ => (Timeout::Spawn, "did not start"),
        };
        let error = TimedOut {
            wait,
            limit,
            what: &format!("the call used up its time: {command} {what}"),
            advice: &format!("{MORE_TIME}{}", self.acp_hint()),
            last_activity: process.and_then(|p| p.last_output(now)),
            stderr: &stderr(process, secrets),
        };
        Some(error.error())
    }

    /// Notifies the clients that the start is slow, and of the step that it waits for.
    pub(super) fn notify_slow_start(&mut self, cx: &mut AgentCx<'_>) {
        let now = cx.now;
        let connection = self.connection_mut();
        if let Some(idle_timer) = connection.and_then(Connection::start_silence_mut) {
            idle_timer.note_notice(SLOW_START, now);
        }
        let notice = Notice::AgentState(AgentStateParams {
            agent: self.definition.name.clone(),
            state: AgentState::Starting,
            reason: None,
            waiting_for: self.start_wait(&cx.shared.settings.secrets, now),
        });
        cx.shared.notify_all(&notice, cx.clients);
    }

    /// Describes the step that the agent's start waits for; `None` unless it is starting.
    #[must_use]
    pub fn start_wait(&self, secrets: &Secrets, now: Instant) -> Option<Waiting> {
        let connection = self.connection()?;
        let elapsed = connection.start_silence()?.elapsed(now);
        let process = connection.first_process();
        let (stage, what) = match process {
            Some(process) if process.pid.is_some() => {
                (Timeout::Initialize, "the agent's response to initialize")
            }
            _ => (Timeout::Spawn, "the agent's process to start"),
        };
        // A package runner that was started in place of a program that is not installed downloads it.
        let is_fallback = |program: &Program| program.found_by == FoundBy::PackageRunner;
        let fallback = self.spec.fallback.as_ref();
        let fallback = fallback.filter(|_| connection.program.as_ref().is_some_and(is_fallback));
        let (command, args) = fallback.map_or((&self.spec.command, &self.spec.args), |fallback| {
            (&fallback.command, &fallback.args)
        });
        let package_runner = package_runner(command, args);
        let note = format!(
            "waiting for {what}, {}{}{}{}",
            format_duration(elapsed),
            self.acp_hint(),
            package_runner.map_or_else(String::new, |package_runner| format!("; {package_runner}")),
            last_of_stderr(&stderr(process, secrets))
        );
        Some(waiting(stage.name(), Party::Agent, elapsed, note))
    }

    /// Suggests the command line that starts the agent's program as an ACP agent; empty if the agent's own
    /// command line is not known to be wrong.
    pub(super) fn acp_hint(&self) -> String {
        let spec = Some(&self.spec).filter(|spec| traits(spec.protocol).may_lack_argument);
        let meant = spec.and_then(|spec| acp_command(&spec.command, &spec.args));
        meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
    }

    /// Returns the error for a sign-in or sign-out that the agent did not answer in time.
    pub(super) fn sign_in_timeout(&self, signs_in: bool, cx: &AgentCx<'_>) -> Error {
        let method = if signs_in { "authenticate" } else { "logout" };
        let process = self.connection().and_then(Connection::first_process);
        TimedOut {
            wait: Timeout::Authenticate,
            limit: self
                .limits(&cx.shared.settings)
                .of(Timeout::Authenticate)
                .unwrap_or_default(),
            what: &format!("the agent did not answer {method}"),
            advice: "call again; to allow more time, use --timeout authenticate=…",
            last_activity: process.and_then(|p| p.last_output(cx.now)),
            stderr: &stderr(process, &cx.shared.settings.secrets),
        }
        .error()
    }

    /// Returns when the agent was last used, if it is connected.
    #[must_use]
    pub fn used(&self) -> Option<Instant> {
        self.connection().map(|connection| connection.used)
    }

    /// Stops an agent that was not used for `limit`. The next call that needs it restarts it. Returns `true`
    /// if it has already ended.
    pub fn stop_idle(&mut self, limit: Duration, cx: &mut AgentCx<'_>) -> bool {
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
        let why = "stopped after the idle timeout; it starts again when it is needed";
        self.begin_stopping(None, Some(why.to_owned()), cx)
    }

    /// Returns `true` if the agent is being stopped without a request of the client.
    #[must_use]
    pub fn is_stopping_by_itself(&self) -> bool {
        let phase = self.connection().map(|connection| &connection.phase);
        matches!(phase, Some(Phase::Stopping { why: Some(_), .. }))
    }

    /// Shortens the time that processes get to stop.
    pub fn expedite(&mut self, cx: &mut AgentCx<'_>) {
        let State::Connected(connection) = &mut self.state else {
            return;
        };
        for process in &mut connection.processes {
            if let Some(stop) = &mut process.stop {
                let step = stop.expedite(cx.now);
                cx.effects.push(process.effect(step));
            }
        }
    }
}

fn stderr(process: Option<&Process>, secrets: &Secrets) -> String {
    let stderr = process.map(|p| p.health.stderr_text(secrets));
    stderr.unwrap_or_default()
}
