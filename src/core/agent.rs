//! An agent by its name: its connection, restarts, environment and sign-in.
//!
//! A machine knows no session's content. What concerns sessions it returns to the hub, which tells the sessions of the
//! agent.

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

use crate::core::agent_spec::identity;
pub use crate::core::agent_spec::{AgentSpec, DEFAULT_AGENT};
use crate::core::client_requests::Ask;
use crate::core::config::Settings;
use crate::core::error::Error;
use crate::core::event::CallId;
use crate::core::ids::AgentRef;
use crate::proto::wire::McpServer;
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
pub use stop::Gone;
pub use timeouts::Overdue;

/// Error message of calls to an agent that is being stopped.
pub const STOPPING: &str = "the agent is stopping: call agent/connect when it has stopped";

/// An agent by its name.
pub struct AgentMachine {
    reference: AgentRef,
    name: String,
    /// The agent that is started when the client connects without a command.
    configured: AgentSpec,
    /// How the agent is started that is connected or started again; the configured one without either.
    spec: AgentSpec,
    state: State,
    /// Set when the agent ended without having been asked to, until it is ready again.
    crash: Option<Crash>,
    /// Consecutive crashes without a completed turn.
    crashes: u32,
    /// Restarts after a crash.
    restarts: u32,
    /// Whether the client disconnected the last agent. If so, only the client can start another one.
    disconnected: bool,
    /// The replacement of the agent by one with another environment.
    renewal: Option<Renewal>,
    sign_in: SignIn,
    /// Names of variables that `agent/authenticate` set and that the agent declared as secret.
    secret_variables: BTreeSet<String>,
    /// `agent/status` calls that wait for measurements.
    status_requests: Vec<StatusRequest>,
    /// Open questions of the agent that belong to no session.
    questions: Vec<Ask>,
}

/// The agent's connection, or why there is none.
enum State {
    Absent {
        /// Why the last agent ended, unless the client asked for it.
        why: Option<String>,
    },
    /// Waits before the restart after a crash.
    Backoff {
        until: Instant,
        why: Option<String>,
    },
    Connected(Box<Connection>),
}

impl AgentMachine {
    #[must_use]
    pub fn new(reference: AgentRef, name: String, configured: AgentSpec) -> Self {
        Self {
            reference,
            name,
            spec: configured.clone(),
            configured,
            state: State::Absent { why: None },
            crash: None,
            crashes: 0,
            restarts: 0,
            disconnected: false,
            renewal: None,
            sign_in: SignIn::default(),
            secret_variables: BTreeSet::new(),
            status_requests: Vec::new(),
            questions: Vec::new(),
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent that is started when the client connects without a command.
    #[must_use]
    pub fn configured(&self) -> &AgentSpec {
        &self.configured
    }

    /// How the agent is started: the connected one, else the one to be started again, else the configured one.
    #[must_use]
    pub fn spec(&self) -> &AgentSpec {
        &self.spec
    }

    /// How the agent is started that is connected, or that is started again after a crash.
    #[must_use]
    pub fn connected_spec(&self) -> Option<&AgentSpec> {
        let is_in_use = self.is_connected() || self.crash.is_some();
        is_in_use.then_some(&self.spec)
    }

    /// The identity under which sessions keep the agent's ids.
    #[must_use]
    pub fn identity(&self) -> String {
        identity(&self.name, &self.spec)
    }

    #[must_use]
    pub fn connection(&self) -> Option<&Connection> {
        match &self.state {
            State::Connected(connection) => Some(connection),
            State::Absent { .. } | State::Backoff { .. } => None,
        }
    }

    pub fn connection_mut(&mut self) -> Option<&mut Connection> {
        match &mut self.state {
            State::Connected(connection) => Some(connection),
            State::Absent { .. } | State::Backoff { .. } => None,
        }
    }

    /// Number of the connection; 0 without one.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.connection().map_or(0, |connection| connection.number)
    }

    /// What a session of this agent may use.
    pub fn access(&mut self) -> AgentAccess<'_> {
        AgentAccess {
            name: &self.name,
            spec: &self.spec,
            connection: match &mut self.state {
                State::Connected(connection) => Some(connection),
                State::Absent { .. } | State::Backoff { .. } => None,
            },
            renewal: self.renewal.as_ref(),
        }
    }

    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.connection().is_some()
    }

    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.connection().is_some_and(|c| c.ready().is_some())
    }

    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.connection().is_some_and(Connection::is_stopping)
    }

    /// Whether the agent ended without having been asked to, and the next call that needs it starts it again.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.crash.is_some()
    }

    /// The MCP servers of a session that has these of its own.
    ///
    /// # Errors
    /// See [`servers::servers`].
    pub fn servers(&self, own: &[McpServer], settings: &Settings) -> Result<Vec<McpServer>, Error> {
        let ready = self.connection().and_then(Connection::ready);
        servers::servers(own, settings, &self.spec, ready)
    }

    /// A call that was not answered yet.
    #[must_use]
    pub fn call(&self, call: CallId) -> Option<&Call> {
        self.connection()?.calls.get(&call)
    }

    /// A turn was completed: earlier crashes do not count any more.
    pub fn note_turn(&mut self) {
        self.crashes = 0;
    }

    /// The agent had a use: it is not idle before this time.
    pub fn note_use(&mut self, now: Instant) {
        if let Some(connection) = self.connection_mut() {
            connection.used = now;
        }
    }
}
