//! End of an agent's connection, ordered or unexpected.

use super::connection::{Call, Phase};
use super::cx::AgentCx;
use super::directory::Directory;
use super::{AgentMachine, AgentSpec, State};
use crate::core::client::{Reply, Token};
use crate::core::dialect::Child;
use crate::core::dialects::traits;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, Exit};
use crate::proto::wire::{AgentState, Done};

/// Consequence of a process's end.
pub enum ProcessEnd {
    /// Nothing: the agent continues, or its other processes are still ending.
    Nothing,
    /// A stopped process has exited: the session with this agent session id is closed.
    Closed(String),
    /// Events for sessions from the dialect; with `false`, the agent as a whole has ended.
    Events(Vec<AgentEvent<'static>>, bool),
    /// The agent has ended.
    All,
}

impl AgentMachine {
    /// Begins the ordered stop of the agent on the client's request. Returns `true` if it has already ended.
    pub fn stop(&mut self, cx: &mut AgentCx<'_>) -> bool {
        let message = "the agent was disconnected before it restarted with its new environment";
        self.renewal_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        let Some(connection) = self.connection_mut() else {
            return false;
        };
        let waiters = match &mut connection.phase {
            Phase::Stopping { .. } => return false,
            Phase::Starting { waiters, .. } => std::mem::take(waiters),
            Phase::Ready(_) => Vec::new(),
        };
        let message = "the agent was disconnected before it was ready";
        cx.fail(waiters, &Error::new(ErrorKind::Cancelled, message));
        self.begin_stopping(None, None, cx)
    }

    /// Begins to stop the agent's processes. `then` is the agent to start when they have ended; `why` is the
    /// reason to report, unless the client requested the stop. Returns `true` if no process has to end.
    pub fn begin_stopping(
        &mut self,
        next: Option<(Box<AgentSpec>, Vec<Token>)>,
        why: Option<String>,
        cx: &mut AgentCx<'_>,
    ) -> bool {
        let State::Connected(connection) = &mut self.state else {
            return false;
        };
        connection.stop_processes((&self.definition, &self.spec), cx);
        connection.phase = Phase::Stopping {
            waiters: Vec::new(),
            why: why.clone(),
            next,
        };
        let is_over = connection.processes.is_empty();
        cx.notify_state(&self.definition.name, AgentState::Stopping, why);
        is_over
    }

    /// Handles a process that has ended or could not be started.
    pub fn process_ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        cx: &mut AgentCx<'_>,
    ) -> ProcessEnd {
        let gone = self.end_process(child, how, cx);
        self.end_questions_of_ended(cx);
        gone
    }

    fn end_process(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        cx: &mut AgentCx<'_>,
    ) -> ProcessEnd {
        let Some(connection) = self.connection_mut() else {
            return ProcessEnd::Nothing;
        };
        let at = connection.processes.iter().position(|p| p.child == child);
        let Some(process) = at.map(|at| connection.processes.remove(at)) else {
            return ProcessEnd::All;
        };
        self.settle_status(process.id, cx);
        let Some(connection) = self.connection_mut() else {
            return ProcessEnd::Nothing;
        };
        if connection.is_stopping() {
            let is_over = connection.processes.is_empty();
            return if is_over {
                ProcessEnd::All
            } else {
                ProcessEnd::Nothing
            };
        }
        if process.stop.is_some() {
            let closed = connection.directory.closed_by(child);
            return closed.map_or(ProcessEnd::Nothing, ProcessEnd::Closed);
        }
        self.dialect_ended(child, how)
    }

    /// Handles a process that can no longer be used, though it may still run; returns `None` if it is already
    /// being stopped.
    pub fn process_failed(&mut self, child: Child, error: &Error) -> Option<ProcessEnd> {
        let process = self.connection_mut()?.process_mut(child);
        if process.is_some_and(|process| process.stop.is_some()) {
            return None;
        }
        Some(self.dialect_ended(child, Err(error)))
    }

    fn dialect_ended(&mut self, child: Child, how: Result<&Exit, &Error>) -> ProcessEnd {
        let Some(connection) = self.connection_mut() else {
            return ProcessEnd::Nothing;
        };
        let (events, goes_on) = connection.ended(child, how);
        ProcessEnd::Events(events, goes_on)
    }

    /// Returns the error for everything that waits for an agent that has exited.
    #[must_use]
    pub fn exit_error(&self, exit: &Exit) -> Error {
        let (kind, when) = match self.connection().map(|connection| &connection.phase) {
            Some(Phase::Stopping { .. }) => (ErrorKind::Cancelled, "the agent was stopped"),
            Some(Phase::Starting { .. }) => (
                ErrorKind::AgentStart,
                "the agent exited before it was ready",
            ),
            Some(Phase::Ready(_)) | None => {
                (ErrorKind::AgentExited, "the agent exited unexpectedly")
            }
        };
        let mut error = exit.error(kind, when);
        if kind == ErrorKind::AgentStart {
            error.message += &self.start_hint(exit);
        }
        error
    }

    /// Returns advice on an agent that ended before it was ready; empty if its stderr is more helpful.
    fn start_hint(&self, exit: &Exit) -> String {
        let hint = self.acp_hint();
        let is_silent = exit.code == Some(0) && exit.stderr.is_empty();
        if hint.is_empty() && is_silent && traits(self.spec.protocol).may_lack_argument {
            return "; an ACP agent must run until its stdin is closed; many agents need an argument for that, such as \
                        acp or --acp"
                .to_owned();
        }
        hint
    }

    /// Fails the calls that wait for the start of a connection that has failed.
    pub fn fail_calls(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        let starting = match self.connection_mut().map(|c| &mut c.phase) {
            Some(Phase::Starting { waiters, .. }) => Some(std::mem::take(waiters)),
            _ => None,
        };
        let is_starting = starting.is_some();
        cx.fail(starting.unwrap_or_default(), error);
        if is_starting && !self.is_renewing() {
            self.renewal_failed(error, cx);
        }
    }

    /// Drops the connection's sessions and calls, after the sessions were notified.
    pub fn forget_sessions(&mut self, error: &Error, cx: &mut AgentCx<'_>) -> Vec<Call> {
        self.fail_sign_ins(error, cx);
        self.end_questions(cx);
        let Some(connection) = self.connection_mut() else {
            return Vec::new();
        };
        connection.directory = Directory::default();
        std::mem::take(&mut connection.calls)
            .into_values()
            .collect()
    }

    /// Handles the end of the connection: starts the next agent if one is to be started.
    pub fn gone(&mut self, error: &Error, may_start: bool, cx: &mut AgentCx<'_>) {
        let State::Connected(connection) =
            std::mem::replace(&mut self.state, State::Absent { why: None })
        else {
            return;
        };
        let (why, next) = match connection.phase {
            Phase::Stopping { waiters, next, why } => {
                for token in waiters {
                    cx.reply(token, Reply::Done(Done {}));
                }
                (why, next)
            }
            Phase::Starting { .. } | Phase::Ready(_) => (Some(error.message.clone()), None),
        };
        self.state = State::Absent { why: why.clone() };
        cx.notify_state(&self.definition.name, AgentState::Disconnected, why);
        let is_renewing = self.is_renewing();
        let spec = Box::new(self.spec.clone());
        match next.or_else(|| is_renewing.then_some((spec, Vec::new()))) {
            Some((spec, waiters)) if may_start => {
                self.start(*spec, waiters, cx);
                self.renewal_started(cx.now);
            }
            Some((_, waiters)) => cx.fail(waiters, error),
            None => {}
        }
        self.reset_spec();
    }
}
