//! The dialects that there are: the one place that names protocols.

use super::acp::per_session::PerSession;
use super::acp::{self, Acp};
use super::claude::{self, Claude};
use super::dialect::{Dialect, DialectTraits, Offer, ProcessSpec};
use super::error::Error;
use super::policy::Policy;
use crate::proto::wire::{McpServer, Protocol, SessionOptions, Variables};

/// What a dialect needs beside the command line.
pub struct DialectSetup {
    pub launch: ProcessSpec,
    pub offer: Offer,
    /// Whether each session gets a process of its own.
    pub child_per_session: bool,
    /// The whole environment of the agent.
    pub env: Variables,
    /// Makes ids unique over connections.
    pub seed: String,
    /// Whether the policy has rules: the agent has to report tools that it runs without asking.
    pub has_rules: bool,
}

/// What distinguishes a protocol from others.
#[must_use]
pub fn traits(protocol: Protocol) -> &'static DialectTraits {
    match protocol {
        Protocol::Acp => &acp::TRAITS,
        Protocol::Claude => &claude::TRAITS,
    }
}

/// The dialect of an agent that is about to be started.
#[must_use]
pub fn dialect(protocol: Protocol, setup: DialectSetup) -> Box<dyn Dialect> {
    let DialectSetup { launch, offer, .. } = setup;
    match protocol {
        Protocol::Acp if setup.child_per_session => Box::new(PerSession::new(launch, offer)),
        Protocol::Acp => Box::new(Acp::new(launch, offer)),
        Protocol::Claude => Box::new(Claude::new(launch, setup.env, &setup.seed, setup.has_rules)),
    }
}

/// Checks that an agent of this protocol can be given these options; `servers` are all MCP servers of the session.
///
/// # Errors
/// `invalidParams`.
pub fn check_options(
    protocol: Protocol,
    options: &SessionOptions,
    servers: &[McpServer],
    policy: &Policy,
) -> Result<(), Error> {
    match protocol {
        Protocol::Acp => acp::check(options, servers, policy),
        Protocol::Claude => claude::check(options, servers),
    }
}
