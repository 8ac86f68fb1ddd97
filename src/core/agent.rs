//! Agent machine: the connection, restarts, environment and sign-in of one named agent.
//!
//! The machine does not know the content of sessions. Results that concern sessions are returned to the hub,
//! which passes them to the agent's sessions.

pub mod access;
mod connect;
pub mod connection;
pub mod cx;
pub mod directory;
mod environment;
mod output;
pub mod process;
mod questions;
pub mod renewal;
mod restart;
pub mod servers;
mod sign_in;
mod status;
mod stop;
#[cfg(test)]
mod tests;
mod timeouts;
pub(in crate::core) mod timers;

use crate::core::agent_definition::AgentDefinition;
use crate::core::agent_spec::identity;
pub use crate::core::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::core::client::ClientId;
use crate::core::client_requests::ClientRequests;
use crate::core::config::Settings;
use crate::core::error::{Error, invalid};
use crate::core::event::CallId;
use crate::core::ids::AgentRef;
use crate::core::limits::{Limits, Timeout};
use crate::proto::wire::{AgentCapabilities, McpServer, PeerInfo};
pub use access::AgentAccess;
pub use connection::{Call, Connection, Phase};
pub use cx::AgentCx;
pub use directory::{Directory, Route};
pub use renewal::Renewal;
use restart::Crash;
use sign_in::SignIn;
use status::StatusRequest;
use std::collections::BTreeSet;
use std::time::Instant;
pub use stop::ProcessEnd;
pub use timeouts::TimeoutFailure;

/// Error message for calls to an agent that is being stopped.
pub const STOPPING: &str = "the agent is stopping; call agent/connect after it has stopped";

/// State machine of one named agent.
pub struct AgentMachine {
    reference: AgentRef,
    /// Definition; its specification is used when the client connects the agent without a command.
    definition: AgentDefinition,
    /// Specification of the connected agent, or of the one to be restarted; otherwise that of the definition.
    spec: AgentSpec,
    state: State,
    /// Last crash or idle stop, after which the next call restarts the agent; `None` once it is ready again.
    crash: Option<Crash>,
    /// Consecutive crashes without a completed turn.
    crashes: u32,
    /// Number of restarts after a crash.
    restarts: u32,
    /// Whether the client disconnected the last agent process. If so, only the client can start another one.
    disconnected: bool,
    /// Pending replacement of the agent process by one with another environment.
    renewal: Option<Renewal>,
    sign_in: SignIn,
    /// Names of variables that `agent/authenticate` set and that the agent declared as secret.
    secret_variables: BTreeSet<String>,
    /// `agent/status` calls that wait for measurements.
    status_requests: Vec<StatusRequest>,
    /// Open elicitations of the agent that belong to no session.
    questions: ClientRequests,
    /// Name, version and capabilities that the agent reported when it was ready last.
    last_seen: Option<(Option<PeerInfo>, AgentCapabilities)>,
    /// Client that registered the agent, if the agent is to be retired when that client leaves.
    owner: Option<ClientId>,
    /// Whether the agent can no longer be named, because its owner has left.
    is_retired: bool,
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

impl AgentMachine {
    /// Creates an agent that is not connected.
    #[must_use]
    pub fn new(reference: AgentRef, definition: AgentDefinition) -> Self {
        Self {
            reference,
            spec: definition.spec.clone(),
            definition,
            state: State::Absent { why: None },
            crash: None,
            crashes: 0,
            restarts: 0,
            disconnected: false,
            renewal: None,
            sign_in: SignIn::default(),
            secret_variables: BTreeSet::new(),
            status_requests: Vec::new(),
            questions: ClientRequests::default(),
            last_seen: None,
            owner: None,
            is_retired: false,
        }
    }

    /// Name of the agent; `default` for a default agent without a name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Definition of the agent.
    #[must_use]
    pub fn definition(&self) -> &AgentDefinition {
        &self.definition
    }

    /// Sets the client with which the agent is retired.
    pub fn set_owner(&mut self, owner: Option<ClientId>) {
        self.owner = owner;
    }

    /// Client with which the agent is retired.
    #[must_use]
    pub fn owner(&self) -> Option<ClientId> {
        self.owner
    }

    /// Checks that the agent may be started.
    fn check_unlocked(&self) -> Result<(), Error> {
        match &self.definition.locked {
            None => Ok(()),
            Some(reason) => Err(invalid("agent", reason)),
        }
    }

    /// Makes the agent unavailable under its name.
    pub fn retire(&mut self) {
        self.is_retired = true;
        self.forbid_restart();
    }

    /// Returns `true` if the agent can no longer be named.
    #[must_use]
    pub fn is_retired(&self) -> bool {
        self.is_retired
    }

    /// Time limits of the agent.
    #[must_use]
    pub fn limits<'a>(&'a self, settings: &'a Settings) -> &'a Limits {
        settings.limits_of(&self.definition)
    }

    /// Returns the deadline of a wait that begins now; `None` if it has no limit.
    fn until(&self, wait: Timeout, cx: &AgentCx<'_>) -> Option<Instant> {
        self.limits(&cx.shared.settings).until(wait, cx.now)
    }

    /// Specification that is used when the client connects the agent without a command.
    #[must_use]
    pub fn configured(&self) -> &AgentSpec {
        &self.definition.spec
    }

    /// Sets the specification that is used when the client connects the agent without a command.
    pub fn set_configured(&mut self, spec: AgentSpec) {
        self.definition.spec = spec;
        self.reset_spec();
    }

    /// Specification of the connected agent, or of the one to be restarted; otherwise the configured one.
    #[must_use]
    pub fn spec(&self) -> &AgentSpec {
        &self.spec
    }

    /// Specification of the connected agent, or of the one to be restarted; `None` if there is neither.
    #[must_use]
    pub fn connected_spec(&self) -> Option<&AgentSpec> {
        let is_in_use = self.is_connected() || self.crash.is_some();
        is_in_use.then_some(&self.spec)
    }

    /// Identity under which sessions store the agent's session ids.
    #[must_use]
    pub fn identity(&self) -> String {
        identity(self.name(), &self.spec)
    }

    /// The connection; `None` before the agent is started and after it has ended.
    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        match &self.state {
            State::Connected(connection) => Some(connection),
            State::Absent { .. } | State::Backoff { .. } => None,
        }
    }

    /// Like [`AgentMachine::connection`], but mutable.
    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.state {
            State::Connected(connection) => Some(connection),
            State::Absent { .. } | State::Backoff { .. } => None,
        }
    }

    /// Number of the connection; 0 without a connection.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.number)
    }

    /// Returns the view of the agent for its sessions.
    pub fn access(&mut self) -> AgentAccess<'_> {
        AgentAccess {
            definition: &self.definition,
            spec: &self.spec,
            connection: match &mut self.state {
                State::Connected(connection) => Some(connection),
                State::Absent { .. } | State::Backoff { .. } => None,
            },
            renewal: self.renewal.as_ref(),
        }
    }

    /// Returns `true` while the agent is starting, ready or stopping.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection().is_some()
    }

    /// Returns `true` after the handshake until the agent stops.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.connection().is_some_and(|c| c.ready().is_some())
    }

    /// Returns `true` while the agent is being stopped.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.connection().is_some_and(Connection::is_stopping)
    }

    /// Returns `true` if the agent has crashed or was stopped when idle: the next call that needs it restarts it.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.crash.is_some()
    }

    /// Returns the MCP servers of a session, given those that it declares itself.
    ///
    /// # Errors
    /// See [`servers::servers`].
    pub fn servers(&self, own: &[McpServer], settings: &Settings) -> Result<Vec<McpServer>, Error> {
        let ready = self.connection().and_then(Connection::ready);
        servers::servers(own, settings, (&self.definition, &self.spec), ready)
    }

    /// Returns a call that the agent has not answered yet.
    #[must_use]
    pub fn call(&self, call: CallId) -> Option<&Call> {
        self.connection()?.calls.get(&call)
    }

    /// Resets the count of crashes after a completed turn.
    pub fn note_turn(&mut self) {
        self.crashes = 0;
    }

    /// Notes that the agent was used, which restarts its idle timeout.
    pub fn note_use(&mut self, now: Instant) {
        if let Some(connection) = self.connection_mut() {
            connection.used = now;
        }
    }
}
