//! Agent machine: one named agent, and the order in which its parts see an event.
//!
//! Owns what the agent is (`Specs`), its connection, and the parts that outlive a connection: `Restarts`, `Renewal`, `SignIns`,
//! `StatusRequests` and `AgentQuestions`. The machine carries values from one part to the next, answers clients and calls the
//! agent. It does not know the content of sessions. Results that concern sessions are returned to the hub, which passes
//! them to the agent's sessions.

pub mod access;
mod calls;
pub mod connection;
pub mod cx;
pub mod directory;
mod lifecycle;
pub mod process;
mod questions;
pub mod renewal;
mod requested_spec;
mod restarts;
pub mod servers;
mod sign_in;
mod specs;
mod status;
#[cfg(test)]
mod tests;
pub mod timeouts;
pub(crate) mod timers;

use crate::acp_settings::initialize;
use crate::agent_definition::AgentDefinition;
pub use crate::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::config::Settings;
use crate::effect::Effect;
use crate::ids::AgentRef;
use crate::shared::Shared;
pub use access::AgentAccess;
use acpipe_model::limits::Limits;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::{
    AgentCapabilities, AgentState, AgentStatus, AgentSummary, EnvironmentResult, PeerInfo,
};
pub use connection::{Call, Connection, Phase, ProcessEnd};
pub use cx::AgentCx;
use questions::AgentQuestions;
pub use renewal::Renewal;
pub use requested_spec::requested_spec;
use restarts::Restarts;
use sign_in::SignIns;
use specs::Specs;
use status::{StatusRequests, peer_info};
use std::time::Instant;
pub use timeouts::TimeoutFailure;

/// Error message for calls to an agent that is being stopped.
pub const STOPPING: &str = "the agent is stopping; call agent/connect after it has stopped";

/// State machine of one named agent.
pub struct AgentMachine {
    specs: Specs,
    state: State,
    restarts: Restarts,
    /// Pending replacement of the agent process by one with another environment.
    renewal: Option<Renewal>,
    sign_ins: SignIns,
    status_requests: StatusRequests,
    /// Open elicitations of the agent that belong to no session.
    questions: AgentQuestions,
    /// Name, version and capabilities that the agent reported when it was ready last.
    last_seen: Option<(Option<PeerInfo>, AgentCapabilities)>,
}

/// State of the connection.
enum State {
    Absent {
        /// Reason why the last connection ended, unless the client requested it.
        why: Option<String>,
    },
    /// Waiting for the restart after a crash.
    Backoff {
        until: Instant,
        why: Option<String>,
    },
    Connected(Box<Connection>),
}

impl State {
    fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Connected(connection) => Some(connection),
            Self::Absent { .. } | Self::Backoff { .. } => None,
        }
    }

    fn connection_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Connected(connection) => Some(connection),
            Self::Absent { .. } | Self::Backoff { .. } => None,
        }
    }

    /// Returns the state as clients know it.
    fn listed(&self) -> AgentState {
        match self {
            Self::Connected(connection) => match &connection.phase {
                Phase::Starting { .. } => AgentState::Starting,
                Phase::Ready(_) => AgentState::Ready,
                Phase::Stopping { .. } => AgentState::Stopping,
            },
            Self::Absent { .. } => AgentState::Disconnected,
            Self::Backoff { .. } => AgentState::Starting,
        }
    }
}

impl AgentMachine {
    /// Creates an agent that is not connected.
    #[must_use]
    pub fn new(reference: AgentRef, definition: AgentDefinition) -> Self {
        Self {
            specs: Specs::new(definition),
            state: State::Absent { why: None },
            restarts: Restarts::default(),
            renewal: None,
            sign_ins: SignIns::default(),
            status_requests: StatusRequests::default(),
            questions: AgentQuestions::new(reference),
            last_seen: None,
        }
    }

    /// Name of the agent; `default` for a default agent without a name.
    pub fn name(&self) -> &str {
        &self.specs.definition().name
    }

    /// Definition of the agent. Its specification is used when the client connects the agent without a command.
    pub fn definition(&self) -> &AgentDefinition {
        self.specs.definition()
    }

    pub fn limits<'a>(&'a self, settings: &'a Settings) -> &'a Limits {
        settings.limits_of(self.specs.definition())
    }

    /// Sets the specification that is used when the client connects the agent without a command.
    pub fn set_configured(&mut self, spec: AgentSpec) {
        self.specs.set_configured(spec);
        if self.connected_spec().is_none() {
            self.specs.reset();
        }
    }

    /// Specification of the connected agent, or of the one to be restarted; otherwise the configured one.
    pub fn spec(&self) -> &AgentSpec {
        self.specs.current()
    }

    /// Specification of the connected agent, or of the one to be restarted; `None` if there is neither.
    pub fn connected_spec(&self) -> Option<&AgentSpec> {
        let is_in_use = self.connection().is_some() || self.restarts.are_pending();
        is_in_use.then_some(self.specs.current())
    }

    /// Identity under which sessions store the agent's session ids.
    pub fn identity(&self) -> String {
        self.specs.identity()
    }

    /// The connection; `None` before the agent is started and after it has ended.
    pub fn connection(&self) -> Option<&Connection> {
        self.state.connection()
    }

    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        self.state.connection_mut()
    }

    pub fn access(&mut self) -> AgentAccess<'_> {
        AgentAccess {
            definition: self.specs.definition(),
            spec: self.specs.current(),
            connection: self.state.connection_mut(),
            renewal: self.renewal.as_ref(),
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.connection().is_some_and(Connection::is_stopping)
    }

    /// Returns `true` if the agent has crashed or was stopped when idle: the next call that needs it restarts it.
    pub fn has_crashed(&self) -> bool {
        self.restarts.are_pending()
    }

    /// Resets the count of crashes after a completed turn.
    pub fn note_turn(&mut self) {
        self.restarts.note_turn();
    }

    pub fn renewal(&self) -> Option<&Renewal> {
        self.renewal.as_ref()
    }

    /// Like [`AgentMachine::renewal`], but mutable, to begin one.
    pub fn renewal_mut(&mut self) -> &mut Option<Renewal> {
        &mut self.renewal
    }

    /// Converts the dialect's orders to effects.
    pub fn deliver(&mut self, now: Instant, shared: &mut Shared, effects: &mut Vec<Effect>) {
        if let State::Connected(connection) = &mut self.state {
            let started_by = (self.specs.definition(), self.specs.current());
            connection.deliver(started_by, now, shared, effects);
        }
    }

    /// Returns the variables set on top of acpipe's own environment, with the values of secrets redacted.
    pub fn environment(&self) -> EnvironmentResult {
        let connection = self.connection();
        let spec = match connection {
            Some(stopping) if stopping.is_stopping() => {
                stopping.next_spec().unwrap_or(&self.definition().spec)
            }
            _ => self.spec(),
        };
        let ready = connection.and_then(Connection::ready);
        let methods = ready.map(|info| info.auth_methods.as_slice());
        self.specs.shown(&spec.env, methods.unwrap_or_default())
    }

    pub fn status(&self, secrets: &Secrets, now: Instant) -> AgentStatus {
        let spec = self.specs.current();
        let status = AgentStatus {
            state: self.state.listed(),
            restarts: self.restarts.count(),
            ..status::absent(self.name())
        };
        let started_by = |status| AgentStatus {
            command: Some(spec.command.clone()),
            args: spec.args.clone(),
            source: Some(spec.source),
            ..status
        };
        let connection = match &self.state {
            State::Connected(connection) => connection,
            State::Absent { why } => {
                return AgentStatus {
                    reason: why.clone(),
                    ..status
                };
            }
            State::Backoff { why, .. } => {
                return AgentStatus {
                    reason: why.clone(),
                    ..started_by(status)
                };
            }
        };
        let info = connection.ready();
        let own = |info| initialize(self.name(), info).to_string().into();
        AgentStatus {
            protocol: Some(connection.facts().name.to_owned()),
            program: connection.program.clone(),
            pid: connection.main_pid(),
            processes: connection.process_status(now),
            agent_info: info.and_then(peer_info),
            capabilities: info.map(|i| i.capabilities),
            auth_methods: info.map(|i| i.auth_methods.clone()).unwrap_or_default(),
            faults: connection.faults(),
            waiting_for: timeouts::start_wait(Some(connection), spec, secrets, now),
            acp: info.map(|info| info.acp.clone().unwrap_or_else(|| own(info))),
            ..started_by(status)
        }
    }

    /// Returns the agent's entry in a list; `sessions` is the number of its open sessions. Its program has to
    /// be searched for.
    pub fn summary(&self, sessions: u64) -> AgentSummary {
        let (definition, spec) = (self.specs.definition(), self.specs.current());
        AgentSummary {
            agent: definition.name.clone(),
            is_default: false,
            description: definition.description.clone(),
            tags: definition.tags.clone(),
            state: self.state.listed(),
            protocol: spec.protocol,
            command: spec.command.clone(),
            args: spec.args.clone(),
            source: spec.source,
            installed: false,
            program: None,
            agent_info: self.last_seen.as_ref().and_then(|(info, _)| info.clone()),
            capabilities: self.last_seen.as_ref().map(|(_, can)| *can),
            sessions,
        }
    }
}
