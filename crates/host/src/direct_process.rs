//! Agent processes that exchange lines with their owner, without the hub and its loop.

use super::agent::{self, AgentHandle};
use super::descriptors;
use super::discover::{self, LoginShell};
use super::inbox::{self, Inbox};
use super::launches::Launch;
use super::process_settings::{ProcessSettings, Supervision};
use super::secrets::own_secrets;
use super::starter::Starter;
use super::supervisor::KILL_LIMIT;
use super::supervisor::codec::SupervisorOrder;
use acpipe_core::hub::{AgentId, AgentInput, Exit};
use acpipe_json::frame::{Batch, lines};
use acpipe_model::error::Error;
use acpipe_model::process_health::ProcessHealth;
use acpipe_model::secret::Secrets;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Program;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// Time that a killed process may take to be reported in addition to the supervisor's own limit.
const REPORT_GRACE: Duration = Duration::from_secs(2);

/// Maximum time that processes of a stopped agent may take to disappear, and the interval of the searches.
const LEFT_LIMIT: Duration = Duration::from_secs(1);
const LEFT_ROUND: Duration = Duration::from_millis(20);

/// Starts agent processes and searches for their programs, outside the loop.
#[derive(Debug)]
pub struct AgentStarter {
    terms: ProcessSettings,
    login: Arc<LoginShell>,
}

/// Agent process, supervised like any other. It is killed when it is dropped and the runtime ends.
pub struct DirectProcess {
    agent: AgentHandle,
    inbox: Inbox,
    lines: VecDeque<Vec<u8>>,
    program: Option<Program>,
    health: ProcessHealth,
    end: Option<DirectProcessEnd>,
    /// Secrets that the process gets, which it may write to stderr.
    secrets: Secrets,
}

/// End of a process, or of its output.
#[derive(Debug, Clone)]
pub enum DirectProcessEnd {
    /// The process could not be started.
    StartFailed(Error),
    /// The process closed its stdout, but runs.
    OutputClosed,
    /// The process and all of its descendants have exited.
    Exited(Exit),
}

/// Result of a wait for a line.
#[derive(Debug)]
pub enum NextLine {
    /// A line without its newline. Lines over the length limit are skipped.
    Line(Vec<u8>),
    /// No line arrived before the deadline.
    TimedOut,
    /// No line can arrive any more; [`DirectProcess::end`] has the reason.
    Ended,
}

/// Step of a stop that ended a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopStep {
    /// The process had ended before.
    Before,
    /// The end of stdin.
    EndOfInput,
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// How a process was stopped.
#[derive(Debug, Clone)]
pub struct Stopped {
    /// Step that ended the process.
    pub step: StopStep,
    /// Time from the end of stdin to the exit.
    pub time: Duration,
    /// Number of processes of this acpipe that still run.
    pub left: usize,
}

impl AgentStarter {
    /// Creates a starter. `grace` is the time between SIGTERM and SIGKILL if acpipe ends.
    #[must_use]
    pub fn new(login: LoginShell, launch: Arc<Launch>, max_line: usize, grace: Duration) -> Self {
        let terms = ProcessSettings {
            max_line,
            grace,
            descriptors: descriptors::raise(),
            launch,
            starter: Starter::default(),
            supervision: Supervision::OwnProgram,
        };
        Self {
            terms,
            login: Arc::new(login),
        }
    }

    /// Finds the program of an agent, or the package runner that can run it.
    ///
    /// # Errors
    /// The program is not found, or cannot be run.
    pub async fn find(&self, spec: &ProcessSpec) -> Result<Program, Error> {
        let found = discover::program(spec, &self.login, self.terms.clone()).await;
        found.map(|found| found.program)
    }

    /// Returns the directories of the login shell's `PATH`.
    ///
    /// # Errors
    /// The reason why they are not known.
    pub async fn login_path(&self) -> Result<&[PathBuf], &str> {
        self.login.dirs(self.terms.clone()).await
    }

    /// Starts a process; whether it runs is reported by [`DirectProcess::started`].
    #[must_use]
    pub fn start(&self, spec: ProcessSpec) -> DirectProcess {
        let (events, inbox) = inbox::channel();
        let login = Arc::clone(&self.login);
        let terms = self.terms.clone();
        let secrets = own_secrets();
        secrets.add_variables(&spec.env);
        DirectProcess {
            secrets,
            agent: agent::start(AgentId(0), spec, terms, login, events, None),
            inbox,
            lines: VecDeque::new(),
            program: None,
            health: ProcessHealth::default(),
            end: None,
        }
    }

    /// Stops a process: end of stdin, SIGTERM after `close`, SIGKILL after `terminate`.
    pub async fn stop(
        &self,
        mut process: DirectProcess,
        close: Duration,
        terminate: Duration,
    ) -> Stopped {
        let since = Instant::now();
        let step = process.stop(close, terminate).await;
        let time = since.elapsed();
        let mut left = self.terms.launch.processes();
        // A login shell that was queried for its PATH may still be ending.
        let deadline = Instant::now() + LEFT_LIMIT;
        while left > 0 && Instant::now() < deadline {
            tokio::time::sleep(LEFT_ROUND).await;
            left = self.terms.launch.processes();
        }
        Stopped { step, time, left }
    }
}

impl DirectProcess {
    /// Waits until the process runs, and returns its program.
    ///
    /// # Errors
    /// The process did not start; `None` if that is not known before the deadline.
    pub async fn started(&mut self, deadline: Instant) -> Result<&Program, Option<Error>> {
        while self.program.is_none() && self.end.is_none() {
            if !self.receive(deadline).await {
                return Err(None);
            }
        }
        match (&self.program, &self.end) {
            (Some(program), _) => Ok(program),
            (None, Some(DirectProcessEnd::StartFailed(error))) => Err(Some(error.clone())),
            (None, _) => Err(None),
        }
    }

    /// Queues a line for the process's stdin.
    pub fn send(&mut self, line: &str) {
        // A full queue means that the process does not read; the wait for its answer reports that.
        let _ = self.agent.send(format!("{line}\n").into_bytes());
    }

    /// Waits for the next line of stdout.
    pub async fn next_line(&mut self, deadline: Instant) -> NextLine {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return NextLine::Line(line);
            }
            if self.end.is_some() {
                return NextLine::Ended;
            }
            if !self.receive(deadline).await {
                return NextLine::TimedOut;
            }
        }
    }

    /// Returns how the process or its output ended; `None` while it runs.
    #[must_use]
    pub fn end(&self) -> Option<&DirectProcessEnd> {
        self.end.as_ref()
    }

    /// Returns the end of what the process wrote to stderr.
    #[must_use]
    pub fn stderr(&mut self) -> String {
        if let Some(DirectProcessEnd::Exited(exit)) = &self.end {
            return exit.stderr.clone();
        }
        if let Some(change) = self.agent.health_change() {
            self.health.update(&change);
        }
        self.secrets.hide(&self.health.stderr.text()).into_owned()
    }

    /// Returns a text of the process without secrets.
    #[must_use]
    pub fn hide(&self, text: &str) -> String {
        self.secrets.hide(text).into_owned()
    }

    /// Handles the next event; returns `false` if none arrives before the deadline.
    async fn receive(&mut self, deadline: Instant) -> bool {
        if self.inbox.is_empty()
            && timeout_at(deadline.into(), self.inbox.arrival())
                .await
                .is_err()
        {
            return false;
        }
        let Some((_, input)) = self.inbox.next_whole() else {
            return true;
        };
        match input {
            AgentInput::Started { program, .. } => self.program = Some(*program),
            AgentInput::Batch(Batch::Lines(batch)) => {
                self.lines
                    .extend(lines(&batch).map(|line| line.text.to_vec()));
            }
            AgentInput::StartFailed(error) => self.end = Some(DirectProcessEnd::StartFailed(error)),
            AgentInput::OutputClosed => self.end = Some(DirectProcessEnd::OutputClosed),
            AgentInput::Exited(mut exit) => {
                let hidden = self.secrets.hide(&exit.stderr).into_owned();
                exit.stderr = hidden;
                self.end = Some(DirectProcessEnd::Exited(exit));
            }
            AgentInput::Batch(Batch::TooLong(_))
            | AgentInput::Health(_)
            | AgentInput::InputClosed
            | AgentInput::InputStuck
            | AgentInput::Measured(_) => {}
        }
        true
    }

    /// Stops the process: end of stdin, SIGTERM after `close`, SIGKILL after `terminate`.
    pub async fn stop(&mut self, close: Duration, terminate: Duration) -> StopStep {
        if self.has_exited() {
            return StopStep::Before;
        }
        self.agent.close_input();
        if self.exits_within(close).await {
            return StopStep::EndOfInput;
        }
        self.agent.order(SupervisorOrder::Terminate);
        if self.exits_within(terminate).await {
            return StopStep::Terminate;
        }
        self.agent.order(SupervisorOrder::Kill);
        self.exits_within(KILL_LIMIT + REPORT_GRACE).await;
        StopStep::Kill
    }

    fn has_exited(&self) -> bool {
        matches!(
            self.end,
            Some(DirectProcessEnd::Exited(_) | DirectProcessEnd::StartFailed(_))
        )
    }

    async fn exits_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while !self.has_exited() {
            // The rest of the output has no reader.
            self.lines.clear();
            if !self.receive(deadline).await {
                return false;
            }
        }
        true
    }
}
