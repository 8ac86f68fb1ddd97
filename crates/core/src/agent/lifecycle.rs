//! Life of an agent's connection: start, handshake, restart, replacement and end.
//!
//! Only these methods change the state of the machine between absent, waiting for a restart, and connected. That an agent may
//! start again is decided by `Restarts`, and that it has to be replaced by `Renewal`.

use super::connection::{Call, Connection, Phase};
use super::cx::AgentCx;
use super::directory::Directory;
use super::status::peer_info;
use super::{AgentMachine, AgentSpec, ProcessEnd, Renewal, State, requested_spec};
use crate::agent_definition::AgentDefinition;
use crate::client::{Reply, Token};
use crate::shared::Shared;
use acpipe_dialects as dialects;
use acpipe_dialects::DialectSetup;
use acpipe_model::dialect::{AgentServices, Child, Dialect, ProcessSpec};
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_model::event::{AgentInfo, Exit};
use acpipe_model::idle_timer::IdleTimer;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::nested;
use acpipe_model::request_key::RequestKey;
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_protocol::wire::{AgentState, ConnectParams, Done};
use std::time::{Duration, Instant};

impl AgentMachine {
    /// Connects the agent, or waits for the existing connection.
    ///
    /// # Errors
    /// `invalidParams`, and `outOfOrder` if another agent is connected under this name.
    pub fn connect(
        &mut self,
        token: Token,
        p: ConnectParams,
        cx: &mut AgentCx<'_>,
    ) -> Result<(), Error> {
        self.specs.check_unlocked()?;
        let names_command = p.command.is_some() || p.protocol.is_some();
        let spec = requested_spec(self.definition(), p, &cx.shared.settings)?;
        if names_command {
            self.specs.redefine(&spec)?;
        }
        self.restarts.note_connect();
        let (same, command) = (*self.spec() == spec, self.spec().command.clone());
        let Some(connection) = self.connection_mut() else {
            self.start(spec, vec![token], cx);
            return Ok(());
        };
        match &mut connection.phase {
            Phase::Stopping { next, .. } => match next {
                Some((wanted, _)) if **wanted != spec => {
                    return Err(already_connected(&wanted.command, "is waiting to start"));
                }
                Some((_, waiters)) => waiters.push(token),
                None => *next = Some((Box::new(spec), vec![token])),
            },
            Phase::Starting { .. } if !same => {
                return Err(already_connected(&command, "is starting"));
            }
            Phase::Ready(_) if !same => return Err(already_connected(&command, "is connected")),
            Phase::Starting { waiters, .. } => waiters.push(token),
            Phase::Ready(_) => self.answer_status([token], cx),
        }
        Ok(())
    }

    /// Makes sure that the agent is running or being started. `own` is the agent that the session had last,
    /// which is started in place of the demo agent.
    ///
    /// # Errors
    /// `agentExited` if it crashed too often, `outOfOrder` if no agent was named.
    pub fn need(&mut self, own: Option<AgentSpec>, cx: &mut AgentCx<'_>) -> Result<(), Error> {
        let State::Absent { why } = &self.state else {
            return Ok(());
        };
        self.specs.check_unlocked()?;
        if let Some(until) = self.restarts.next()? {
            if until > cx.now {
                let why = why.clone();
                self.state = State::Backoff { until, why };
                cx.notify_state(self.name(), AgentState::Starting, None);
            } else {
                self.restart(cx);
            }
            return Ok(());
        }
        if self.specs.is_chosen() {
            self.start(self.definition().spec.clone(), Vec::new(), cx);
            return Ok(());
        }
        if let Some(own) = own.filter(|_| !self.restarts.is_disconnected()) {
            self.start(own, Vec::new(), cx);
            return Ok(());
        }
        let why = match why {
            Some(end) => format!("the agent connection has ended ({end})"),
            None => "no agent is connected".to_owned(),
        };
        Err(out_of_order(&format!(
            "{why}; name an agent, or call agent/connect first"
        )))
    }

    /// Restarts the agent; after a crash, counts the restart.
    pub(super) fn restart(&mut self, cx: &mut AgentCx<'_>) {
        self.restarts.note_restart();
        self.start(self.spec().clone(), Vec::new(), cx);
    }

    pub(super) fn start(&mut self, spec: AgentSpec, waiters: Vec<Token>, cx: &mut AgentCx<'_>) {
        let was_announced = matches!(self.state, State::Backoff { .. });
        // A client of a daemon can bring rules to a session of another client.
        let policy = cx.shared.settings.policy_of(self.definition());
        let has_rules = policy.has_rules() || policy.ignores_lists();
        let may_have_rules = has_rules || cx.shared.is_resident;
        let limits = *self.limits(&cx.shared.settings);
        let offer = offer(self.definition(), cx.shared);
        let dialect = dialect(&spec, offer, may_have_rules, &limits, cx.shared);
        self.specs.set_current(spec);
        let limit = limits.of(Timeout::Initialize);
        let phase = Phase::Starting {
            waiters,
            idle: IdleTimer::begin(cx.now, limit),
        };
        let number = cx.shared.ids.connection();
        let connection = Connection::start(number, dialect, phase, cx.now);
        self.state = State::Connected(Box::new(connection));
        if !was_announced {
            cx.notify_state(self.name(), AgentState::Starting, None);
        }
    }

    /// Completes the handshake; returns `false` if the agent was not starting.
    pub fn ready(&mut self, mut info: Box<AgentInfo>, cx: &mut AgentCx<'_>) -> bool {
        let (definition, connection) = (self.specs.definition(), self.state.connection_mut());
        let Some(connection) = connection.filter(|c| c.start_silence().is_some()) else {
            return false;
        };
        let waiters = connection.take_waiters().unwrap_or_default();
        definition.quirks.mask(&mut info.capabilities);
        self.last_seen = Some((peer_info(&info), info.capabilities));
        connection.phase = Phase::Ready(info);
        self.restarts.note_ready();
        cx.notify_state(self.name(), AgentState::Ready, None);
        self.answer_status(waiters, cx);
        // Before its sessions are restored.
        for (token, method) in self.sign_ins.take_waiting() {
            self.send_sign_in(token, method, cx);
        }
        true
    }

    /// Answers `agent/disconnect` when the agent has ended. The agent must already be stopping, with the
    /// turns of its sessions being cancelled.
    pub fn disconnect(&mut self, token: Token, cx: &mut AgentCx<'_>) {
        let Some(Phase::Stopping { waiters, next, .. }) = self
            .connection_mut()
            .map(|connection| &mut connection.phase)
        else {
            cx.reply(token, Reply::Done(Done {}));
            return;
        };
        waiters.push(token);
        if let Some((_, waiting)) = next.take() {
            let message = "agent/disconnect was called before the agent started";
            cx.fail(waiting, &Error::new(ErrorKind::Cancelled, message));
        }
    }

    /// Prevents restarts after the client has disconnected the agent: no call starts it again, and a pending
    /// restart is dropped.
    pub fn forbid_restart(&mut self) {
        self.restarts.note_disconnect();
        if self.connection().is_none() {
            self.specs.reset();
        }
    }

    /// Cancels a pending restart; returns `true` if there was one.
    pub fn give_up_restart(&mut self) -> bool {
        let waits = matches!(self.state, State::Backoff { .. });
        if waits {
            self.state = State::Absent { why: None };
            if !self.restarts.are_pending() {
                self.specs.reset();
            }
        }
        waits
    }

    /// Records an unexpected end of an agent that was ready before.
    pub fn note_crash(&mut self, now: Instant) {
        match self.connection().map(|connection| &connection.phase) {
            Some(Phase::Ready(_)) => self.restarts.note_crash(true, now),
            Some(Phase::Starting { .. }) => self.restarts.note_crash(false, now),
            Some(Phase::Stopping { .. }) | None => {}
        }
    }

    /// Begins the ordered stop of the agent on the client's request. Returns `true` if it has already ended.
    pub fn stop(&mut self, cx: &mut AgentCx<'_>) -> bool {
        let message = "the agent was disconnected before it restarted with its new environment";
        self.renewal_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        let waiters = self.connection_mut().and_then(Connection::take_waiters);
        let Some(waiters) = waiters else {
            return false;
        };
        let message = "the agent was disconnected before it was ready";
        cx.fail(waiters, &Error::new(ErrorKind::Cancelled, message));
        self.begin_stopping(None, None, cx)
    }

    /// Stops the agent; it is started again when it has ended. Returns `true` if it has already ended.
    pub fn replace(&mut self, cx: &mut AgentCx<'_>) -> bool {
        let waiters = self.connection_mut().and_then(Connection::take_waiters);
        let Some(waiters) = waiters else {
            return false;
        };
        let next = Some((Box::new(self.spec().clone()), waiters));
        self.begin_stopping(next, None, cx)
    }

    /// Stops an agent that was not used for `limit`. The next call that needs it restarts it. Returns `true`
    /// if it has already ended.
    pub fn stop_idle(&mut self, limit: Duration, cx: &mut AgentCx<'_>) -> bool {
        let Some(connection) = self.state.connection_mut() else {
            return false;
        };
        if !self.sign_ins.is_empty() {
            connection.used = cx.now;
            return false;
        }
        let is_ready = connection.ready().is_some();
        if !is_ready || connection.processes.is_empty() || connection.used + limit > cx.now {
            return false;
        }
        self.restarts.allow(cx.now);
        let why = "stopped after the idle timeout; it starts again when it is needed";
        self.begin_stopping(None, Some(why.to_owned()), cx)
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
        let started_by = (self.specs.definition(), self.specs.current());
        connection.stop_processes(started_by, cx);
        connection.phase = Phase::Stopping {
            waiters: Vec::new(),
            why: why.clone(),
            next,
        };
        let is_over = connection.processes.is_empty();
        cx.notify_state(self.name(), AgentState::Stopping, why);
        is_over
    }

    pub fn process_ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        cx: &mut AgentCx<'_>,
    ) -> ProcessEnd {
        let ended = self.connection_mut().map(|c| c.take_process(child));
        let end = match ended {
            None => ProcessEnd::Nothing,
            Some(None) => ProcessEnd::All,
            Some(Some(process)) => {
                let settled = self.status_requests.settle(process.id);
                self.answer_status(settled, cx);
                let connection = self.connection_mut();
                connection.map_or(ProcessEnd::Nothing, |c| c.end_of(&process, how))
            }
        };
        let connection = self.state.connection();
        let is_awaited = |key: &RequestKey| connection.is_some_and(|c| c.request(key).is_some());
        let cancelled = self.questions.end_of_processes(is_awaited, cx);
        self.answer_questions(cancelled);
        end
    }

    /// Fails the calls that wait for the start of a connection that has failed.
    pub fn fail_calls(&mut self, error: &Error, cx: &mut AgentCx<'_>) {
        let starting = self.connection_mut();
        let starting = starting.filter(|connection| connection.start_silence().is_some());
        let is_starting = starting.is_some();
        let waiters = starting.and_then(Connection::take_waiters);
        cx.fail(waiters.unwrap_or_default(), error);
        if is_starting && !self.renewal().is_some_and(Renewal::is_pending) {
            self.renewal_failed(error, cx);
        }
    }

    /// Drops the connection's sessions and calls, after the sessions were notified.
    pub fn forget_sessions(&mut self, error: &Error, cx: &mut AgentCx<'_>) -> Vec<Call> {
        cx.fail(self.sign_ins.take_sent(), error);
        let cancelled = self.questions.end(cx);
        self.answer_questions(cancelled);
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
        cx.notify_state(self.name(), AgentState::Disconnected, why);
        let is_renewing = self.renewal().is_some_and(Renewal::is_pending);
        let spec = Box::new(self.spec().clone());
        match next.or_else(|| is_renewing.then_some((spec, Vec::new()))) {
            Some((spec, waiters)) if may_start => {
                self.start(*spec, waiters, cx);
                if let Some(renewal) = &mut self.renewal {
                    renewal.note_start();
                    // If the start fails, the next prompt tries again.
                    self.restarts.allow(cx.now);
                }
            }
            Some((_, waiters)) => cx.fail(waiters, error),
            None => {}
        }
        if self.connected_spec().is_none() {
            self.specs.reset();
        }
    }
}

/// Returns the services that an agent may use. In a daemon, clients come and go: files and terminals are those of the
/// clients with this definition, and a question can always be asked, since a client that can answer may come later.
fn offer(definition: &AgentDefinition, shared: &Shared) -> AgentServices {
    let clients = &shared.clients;
    let (services, questions) = if shared.is_resident {
        (definition.services.clone(), true)
    } else {
        let able = clients.with_capability(|can| can.questions).next();
        (clients.services(), able.is_some())
    };
    AgentServices {
        questions,
        host: services.host.or(shared.served),
        acp: services.acp,
    }
}

fn dialect(
    spec: &AgentSpec,
    offer: AgentServices,
    has_rules: bool,
    limits: &Limits,
    shared: &Shared,
) -> Box<dyn Dialect> {
    let mut env = shared.settings.inherited.clone();
    env.0.extend(spec.env.0.clone());
    let setup = DialectSetup {
        launch: ProcessSpec {
            // The agent's own variables are added when the process is started.
            env: nested::environment(),
            ..spec.process(&shared.settings.home())
        },
        offer,
        child_per_session: spec.child_per_session,
        env,
        seed: format!("{}.{}", shared.settings.id_prefix, shared.ids.processes()),
        requests: RequestNumbers::new(shared.settings.request_seed, shared.ids.processes()),
        has_rules,
        backend: spec.backend.clone(),
        limits: *limits,
    };
    dialects::dialect(spec.protocol, setup)
}

fn already_connected(command: &str, how: &str) -> Error {
    out_of_order(&format!(
        "the agent {command:?} {how}; call agent/disconnect first"
    ))
}
