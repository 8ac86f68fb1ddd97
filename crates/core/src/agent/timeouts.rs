//! Errors and notices of an agent that does not start or answer in time, or that ended. Functions of the connection and the
//! specification: they own nothing.

use super::connection::{Connection, Phase};
use super::cx::AgentCx;
use super::process::Process;
use crate::agent_spec::AgentSpec;
use crate::timeout_error::{MORE_TIME, TimedOut, last_of, last_of_stderr, waiting};
use acpipe_dialects::traits;
use acpipe_model::builtin_agents::hints::acp_command;
use acpipe_model::dialect::Child;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::Exit;
use acpipe_model::idle_timer::format_duration;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::package_runner::package_runner;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::{FoundBy, Party, Program, Waiting};
use std::time::{Duration, Instant};

/// Time after which a start is first reported as slow.
pub(super) const SLOW_START: Duration = Duration::from_secs(2);

/// A process or agent that reached its time limit.
pub struct TimeoutFailure {
    pub error: Error,
    /// Process that timed out, if the agent may continue without it.
    pub process: Option<Child>,
}

pub(super) fn overdue_processes(
    connection: &Connection,
    spec: &AgentSpec,
    limits: &Limits,
    cx: &AgentCx<'_>,
) -> Vec<TimeoutFailure> {
    let is_late = |p: &&Process| p.start_limit(limits).is_some_and(|at| at <= cx.now);
    let late = connection.processes.iter().filter(is_late);
    let overdue = |process: &Process| TimeoutFailure {
        error: TimedOut {
            wait: Timeout::Spawn,
            limit: limits.of(Timeout::Spawn).unwrap_or_default(),
            what: &format!("{} did not start", spec.command),
            advice: "the disk may not respond, or the system may be overloaded",
            last_activity: None,
            stderr: "",
            stdout: "",
        }
        .error(),
        process: Some(process.child),
    };
    late.map(overdue).collect()
}

/// Returns the agent, which did not answer the handshake in time; `None` if there is no limit.
pub(super) fn overdue_handshake(
    connection: &Connection,
    spec: &AgentSpec,
    limits: &Limits,
    cx: &AgentCx<'_>,
) -> Option<TimeoutFailure> {
    let process = connection.first_process();
    let error = TimedOut {
        wait: Timeout::Initialize,
        limit: limits.of(Timeout::Initialize)?,
        what: &format!("{} did not answer initialize", spec.command),
        advice: &format!(
            "check that the command starts an agent that speaks {}{}",
            connection.facts().name,
            acp_hint(spec)
        ),
        last_activity: process.and_then(|p| p.last_output(cx.now)),
        stderr: &stderr(process, &cx.shared.settings.secrets),
        stdout: &stdout(process, &cx.shared.settings.secrets),
    }
    .error();
    Some(TimeoutFailure {
        error,
        process: None,
    })
}

/// Returns the error of a call that has waited for the agent to start until the call's own limit; `None` if the
/// agent is ready.
pub fn start_timeout(
    connection: Option<&Connection>,
    spec: &AgentSpec,
    limit: Duration,
    secrets: &Secrets,
    now: Instant,
) -> Option<Error> {
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
        what: &format!("the call used up its time: {} {what}", spec.command),
        advice: &format!("{MORE_TIME}{}", acp_hint(spec)),
        last_activity: process.and_then(|p| p.last_output(now)),
        stderr: &stderr(process, secrets),
        stdout: &stdout(process, secrets),
    };
    Some(error.error())
}

/// Describes the step that the agent's start waits for; `None` unless it is starting.
pub fn start_wait(
    connection: Option<&Connection>,
    spec: &AgentSpec,
    secrets: &Secrets,
    now: Instant,
) -> Option<Waiting> {
    let connection = connection?;
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
    let fallback = spec.fallback.as_ref();
    let fallback = fallback.filter(|_| connection.program.as_ref().is_some_and(is_fallback));
    let (command, args) = fallback.map_or((&spec.command, &spec.args), |fallback| {
        (&fallback.command, &fallback.args)
    });
    let package_runner = package_runner(command, args);
    let note = format!(
        "waiting for {what}, {}{}{}{}",
        format_duration(elapsed),
        acp_hint(spec),
        package_runner.map_or_else(String::new, |package_runner| format!("; {package_runner}")),
        last_output(&stderr(process, secrets), &stdout(process, secrets))
    );
    Some(waiting(stage.name(), Party::Agent, elapsed, note))
}

/// Suggests the command line that starts the agent's program as an ACP agent; empty if the agent's own
/// command line is not known to be wrong.
fn acp_hint(spec: &AgentSpec) -> String {
    let spec = Some(spec).filter(|spec| traits(spec.protocol).may_lack_argument);
    let meant = spec.and_then(|spec| acp_command(&spec.command, &spec.args));
    meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"))
}

pub(super) fn sign_in_timeout(
    connection: Option<&Connection>,
    signs_in: bool,
    limits: &Limits,
    cx: &AgentCx<'_>,
) -> Error {
    let method = if signs_in { "authenticate" } else { "logout" };
    let process = connection.and_then(Connection::first_process);
    TimedOut {
        wait: Timeout::Authenticate,
        limit: limits.of(Timeout::Authenticate).unwrap_or_default(),
        what: &format!("the agent did not answer {method}"),
        advice: "call again; to allow more time, use --timeout authenticate=…",
        last_activity: process.and_then(|p| p.last_output(cx.now)),
        stderr: &stderr(process, &cx.shared.settings.secrets),
        stdout: "",
    }
    .error()
}

pub fn exit_error(connection: Option<&Connection>, spec: &AgentSpec, exit: &Exit) -> Error {
    let (kind, when) = match connection.map(|connection| &connection.phase) {
        Some(Phase::Stopping { .. }) => (ErrorKind::Cancelled, "the agent was stopped"),
        Some(Phase::Starting { .. }) => (
            ErrorKind::AgentStart,
            "the agent exited before it was ready",
        ),
        Some(Phase::Ready(_)) | None => (ErrorKind::AgentExited, "the agent exited unexpectedly"),
    };
    let mut error = exit.error(kind, when);
    if kind == ErrorKind::AgentStart {
        error.message += &start_hint(spec, exit);
    }
    error
}

/// Returns advice on an agent that ended before it was ready; empty if its output is more helpful.
fn start_hint(spec: &AgentSpec, exit: &Exit) -> String {
    let hint = acp_hint(spec);
    let is_silent = exit.code == Some(0) && exit.stderr.is_empty() && exit.stdout.is_empty();
    if !hint.is_empty() || !is_silent || !traits(spec.protocol).may_lack_argument {
        return hint;
    }
    let must = "; an ACP agent must run until its stdin is closed";
    if spec.args.iter().any(|arg| arg.contains("acp")) {
        return must.to_owned();
    }
    format!("{must}; many agents need an argument for that, such as acp or --acp")
}

/// Returns the last line of stderr, or of stdout, as the end of a notice.
fn last_output(stderr: &str, stdout: &str) -> String {
    let last = last_of_stderr(stderr);
    if last.is_empty() {
        last_of("stdout", stdout)
    } else {
        last
    }
}

fn stdout(process: Option<&Process>, secrets: &Secrets) -> String {
    let stdout = process.map(|p| p.stray_text(secrets));
    stdout.unwrap_or_default()
}

fn stderr(process: Option<&Process>, secrets: &Secrets) -> String {
    let stderr = process.map(|p| p.health.stderr_text(secrets));
    stderr.unwrap_or_default()
}
