//! The dialects that acpipe has. Only this file names the protocols.

use super::acp::per_session::PerSession;
use super::acp::{self, Acp};
use super::backend::Exchanges;
use super::backend_options::BackendOptions;
use super::claude::{self, Claude};
use super::command::{self, Command};
use super::dialect::{AgentServices, Dialect, DialectTraits, ProcessSpec};
use super::error::Error;
use super::policy::Policy;
use crate::proto::wire::{McpServer, Protocol, SessionOptions, Variables};

/// Parameters from which a dialect is created.
pub struct DialectSetup {
    /// Command line of the agent process.
    pub launch: ProcessSpec,
    /// Services offered to the agent.
    pub offer: AgentServices,
    /// Whether each session gets its own agent process.
    pub child_per_session: bool,
    /// The whole environment of the agent.
    pub env: Variables,
    /// Text that makes ids unique across connections.
    pub seed: String,
    /// Whether the policy has rules. If so, the agent has to report tools that it runs without a permission
    /// request.
    pub has_rules: bool,
    /// Options of an agent that is not a process with a conversation.
    pub backend: BackendOptions,
}

/// Returns the properties of a protocol.
#[must_use]
pub fn traits(protocol: Protocol) -> &'static DialectTraits {
    match protocol {
        Protocol::Acp => &acp::TRAITS,
        Protocol::Claude => &claude::TRAITS,
        Protocol::Command => &command::TRAITS,
    }
}

/// Creates the dialect of an agent that is about to be started.
#[must_use]
pub fn dialect(protocol: Protocol, setup: DialectSetup) -> Box<dyn Dialect> {
    let DialectSetup { launch, offer, .. } = setup;
    match protocol {
        Protocol::Acp if setup.child_per_session => Box::new(PerSession::new(launch, offer)),
        Protocol::Acp => Box::new(Acp::new(launch, offer)),
        Protocol::Claude => Box::new(Claude::new(launch, setup.env, &setup.seed, setup.has_rules)),
        Protocol::Command => {
            let command = Command::new(launch, setup.backend);
            Box::new(Exchanges::new(command, &setup.seed))
        }
    }
}

/// Checks the session options for an agent of this protocol; `servers` are all MCP servers of the session.
///
/// # Errors
/// `invalidParams` if the agent cannot be given one of the options.
pub fn check_options(
    protocol: Protocol,
    options: &SessionOptions,
    servers: &[McpServer],
    policy: &Policy,
) -> Result<(), Error> {
    match protocol {
        Protocol::Acp => acp::check(options, servers, policy),
        Protocol::Claude => claude::check(options, servers),
        Protocol::Command => command::check(options),
    }
}
