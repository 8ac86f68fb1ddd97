//! Implements `agent/connect` and `agent/disconnect`: starts an agent and completes its handshake.

use super::connection::{Connection, Phase};
use super::cx::AgentCx;
use super::{AgentMachine, State};
use crate::core::agent_spec::AgentSpec;
use crate::core::agent_spec::DEFAULT_AGENT;
use crate::core::backend_options::BackendOptions;
use crate::core::client::{Reply, Token};
use crate::core::dialect::{AgentServices, Dialect, ProcessSpec};
use crate::core::dialects::{self, DialectSetup};
use crate::core::error::{Error, ErrorKind, invalid, out_of_order};
use crate::core::event::AgentInfo;
use crate::core::http::url_fault;
use crate::core::idle_timer::IdleTimer;
use crate::core::limits::{Limits, Timeout};
use crate::core::nested;
use crate::core::options;
use crate::core::request_numbers::RequestNumbers;
use crate::core::shared::Shared;
use crate::proto::wire::{AgentSource, AgentState, ConnectParams, Done, Protocol};
use std::path::Path;
use std::sync::Arc;

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
        self.check_unlocked()?;
        let names_command = p.command.is_some() || p.protocol.is_some();
        let spec = self.spec_of(p, cx.shared)?;
        if names_command && self.definition.is_fixed() {
            let name = self.name();
            let message = format!(
                "agent {name:?} is already defined; omit command and protocol, or use another name"
            );
            return Err(Error::new(ErrorKind::DuplicateAgent, message).with("field", "agent"));
        }
        if names_command && self.name() != DEFAULT_AGENT {
            // The default agent is configured by the user, not by clients.
            self.definition.spec = spec.clone();
        }
        (self.crash, self.crashes, self.disconnected) = (None, 0, false);
        let (same, command) = (self.spec == spec, self.spec.command.clone());
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
            Phase::Ready(_) => {
                let status = self.status(&cx.shared.settings.secrets, cx.now);
                cx.reply(token, Reply::Status(Box::new(status)));
            }
        }
        Ok(())
    }

    /// Returns the specification of the agent that `agent/connect` requests.
    ///
    /// # Errors
    /// `invalidParams`.
    pub fn spec_of(&self, p: ConnectParams, shared: &Shared) -> Result<AgentSpec, Error> {
        let default = &self.definition.spec;
        let base = Path::new(&shared.settings.cwd);
        let cwd = match &p.cwd {
            Some(cwd) => base.join(cwd).to_string_lossy().into_owned(),
            None => default.cwd.clone(),
        };
        let mut env = default.env.clone();
        env.0.extend(p.env.0);
        if let Some(why) = env.fault() {
            return Err(invalid("env", &why));
        }
        let other = |own: &Protocol| *own != default.protocol;
        let command = match (p.command, p.protocol.filter(other)) {
            (Some(command), _) if command.is_empty() => {
                return Err(invalid("command", "must not be empty"));
            }
            (None, Some(protocol)) => {
                let Some(command) = dialects::traits(protocol).default_command else {
                    let why = "is required, unless the protocol is `claude`";
                    return Err(invalid("command", why));
                };
                Some(command.to_owned())
            }
            (command, _) => command,
        };
        let spec = match command {
            Some(command) => AgentSpec {
                protocol: p.protocol.unwrap_or(Protocol::of_command(&command)),
                command,
                args: p.args,
                cwd,
                env,
                source: AgentSource::Client,
                child_per_session: p.child_per_session.unwrap_or_default(),
                options: match default.source {
                    // Another command leaves an agent of the clients its other settings.
                    AgentSource::Client if self.name() != DEFAULT_AGENT => {
                        (*p.options).or(&default.options)
                    }
                    _ => *p.options,
                },
                fallback: None,
                backend: BackendOptions::default(),
            },
            None if !p.args.is_empty() => {
                return Err(invalid("args", "cannot be given without command"));
            }
            None => AgentSpec {
                cwd,
                env,
                child_per_session: p.child_per_session.unwrap_or(default.child_per_session),
                options: (*p.options).or(&default.options),
                ..default.clone()
            },
        };
        check_address(&spec)?;
        let policy = shared.settings.policy_of(&self.definition);
        options::check(spec.protocol, &spec.options, &[], policy)?;
        Ok(spec)
    }

    /// Starts the agent.
    pub(super) fn start(&mut self, spec: AgentSpec, waiters: Vec<Token>, cx: &mut AgentCx<'_>) {
        let was_announced = matches!(self.state, State::Backoff { .. });
        // A client of a daemon can bring rules to a session of another client.
        let policy = cx.shared.settings.policy_of(&self.definition);
        let has_rules = policy.has_rules() || policy.ignores_lists();
        let may_have_rules = has_rules || cx.shared.is_resident;
        let limits = *self.limits(&cx.shared.settings);
        let dialect = dialect(&spec, may_have_rules, &limits, cx.shared);
        self.spec = spec;
        let limit = limits.of(Timeout::Initialize);
        let phase = Phase::Starting {
            waiters,
            idle: IdleTimer::begin(cx.now, limit),
        };
        let number = cx.shared.ids.connection();
        let connection = Connection::start(number, dialect, phase, cx.now);
        self.state = State::Connected(Box::new(connection));
        if !was_announced {
            cx.notify_state(&self.definition.name, AgentState::Starting, None);
        }
    }

    /// Completes the handshake; returns `false` if the agent was not starting.
    pub fn ready(&mut self, mut info: Box<AgentInfo>, cx: &mut AgentCx<'_>) -> bool {
        if !matches!(&self.state, State::Connected(c) if matches!(c.phase, Phase::Starting { .. }))
        {
            return false;
        }
        self.definition.quirks.mask(&mut info.capabilities);
        self.note_seen(&info);
        let Some(connection) = self.connection_mut() else {
            return false;
        };
        let Phase::Starting { waiters, .. } = &mut connection.phase else {
            return false;
        };
        let waiters = std::mem::take(waiters);
        connection.phase = Phase::Ready(info);
        self.crash = None;
        cx.notify_state(&self.definition.name, AgentState::Ready, None);
        for token in waiters {
            let status = self.status(&cx.shared.settings.secrets, cx.now);
            cx.reply(token, Reply::Status(Box::new(status)));
        }
        self.sign_in_pending(cx);
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
        (self.crash, self.disconnected) = (None, true);
        self.reset_spec();
    }
}

/// Checks the address of an HTTP endpoint, which stands in the place of the command.
///
/// # Errors
/// `invalidParams`.
fn check_address(spec: &AgentSpec) -> Result<(), Error> {
    if !spec.protocol.is_http() {
        return Ok(());
    }
    if let Some(why) = url_fault(&spec.command) {
        return Err(invalid("command", why));
    }
    if !spec.args.is_empty() {
        return Err(invalid(
            "args",
            "must be empty: an HTTP endpoint has no arguments",
        ));
    }
    Ok(())
}

/// Creates the dialect of an agent that is about to be started.
fn dialect(
    spec: &AgentSpec,
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
        offer: AgentServices {
            questions: shared
                .clients
                .with_capability(|can| can.questions)
                .next()
                .is_some(),
            host: shared.offer(),
            acp: shared.clients.acp().map(|(_, client)| Arc::clone(client)),
        },
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
