//! Dialects: lines of an agent to neutral events, and neutral calls to lines of the agent.
//!
//! ```text
//! line ─► Dialect::read ─► AgentEvent          AgentCall ─► Dialect ─► TransportOrder
//! ```
//!
//! `acp` and `claude` are protocols with a conversation; `command`, `openai` and `ui_stream` answer each prompt in an exchange
//! of its own, which `backend` keeps, with `endpoint` for those over HTTP. A dialect holds the state of its connection and
//! knows no session, client or log. Only this file names the dialects: the core asks it for one.

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod acp;
mod backend;
pub mod claude;
mod command;
mod endpoint;
mod openai;
mod ui_stream;

use crate::acp::Acp;
use crate::acp::per_session::PerSession;
use crate::backend::Exchanges;
use crate::claude::{Claude, SessionFile};
use crate::command::CommandAgent;
use crate::endpoint::{Endpoint, EndpointSetup};
use crate::openai::OpenAi;
use crate::ui_stream::UiStream;
use acpipe_model::agent_file::{AgentFile, FileAccess};
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::dialect::{AgentServices, Dialect, DialectTraits, ProcessSpec};
use acpipe_model::error::Error;
use acpipe_model::limits::Limits;
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_protocol::wire::{McpServer, Protocol, SessionOptions, Variables};
use serde_json::Value;

/// Names of the dialects, which are members of metadata.
pub const DIALECT_NAMES: &[&str] = &["acp", "claude", "command", "openai", "ui-stream"];

pub struct DialectSetup {
    pub launch: ProcessSpec,
    pub offer: AgentServices,
    pub child_per_session: bool,
    /// The whole environment of the agent.
    pub env: Variables,
    /// Text that makes ids unique across connections.
    pub seed: String,
    pub requests: RequestNumbers,
    /// Whether the policy has rules. If so, the agent has to report tools that it runs without a permission
    /// request.
    pub has_rules: bool,
    /// Options of an agent that is not a process with a conversation.
    pub backend: BackendOptions,
    pub limits: Limits,
}

pub fn traits(protocol: Protocol) -> &'static DialectTraits {
    match protocol {
        Protocol::Acp => &acp::TRAITS,
        Protocol::Claude => &claude::TRAITS,
        Protocol::Command => &command::TRAITS,
        Protocol::OpenAi => &openai::TRAITS,
        Protocol::UiStream => &ui_stream::TRAITS,
    }
}

/// Returns the arguments by which a user starts an agent of this protocol in a mode.
pub fn mode_arguments(protocol: Protocol) -> &'static [&'static str] {
    match protocol {
        Protocol::Claude => &claude::MODE_ARGUMENTS,
        Protocol::Acp | Protocol::Command | Protocol::OpenAi | Protocol::UiStream => &[],
    }
}

/// Returns the name of the dialect in which the agent sent a message, by the metadata of the message.
pub fn dialect_of(message: &Value) -> &'static str {
    let names = |name: &&&str| {
        let parts = message["parts"].as_array().into_iter().flatten();
        let mut parts = parts.flat_map(|part| [&part["toolMetadata"], &part["providerMetadata"]]);
        message["metadata"].get(*name).is_some() || parts.any(|about| about.get(*name).is_some())
    };
    DIALECT_NAMES.iter().find(names).copied().unwrap_or("acp")
}

pub fn dialect(protocol: Protocol, setup: DialectSetup) -> Box<dyn Dialect> {
    match protocol {
        Protocol::Acp if setup.child_per_session => {
            Box::new(PerSession::new(setup.launch, setup.offer).numbered(setup.requests))
        }
        Protocol::Acp => Box::new(Acp::new(setup.launch, setup.offer).numbered(setup.requests)),
        Protocol::Claude => {
            let claude = Claude::new(setup.launch, setup.env, &setup.seed, setup.has_rules);
            Box::new(claude.numbered(setup.requests))
        }
        Protocol::Command => {
            let command = CommandAgent::new(setup.launch, setup.backend);
            Box::new(Exchanges::new(command, &setup.seed))
        }
        Protocol::OpenAi => {
            let endpoint = endpoint(&setup, Some(openai::DEFAULT_KEY));
            let openai = OpenAi::new(endpoint, setup.backend.stream);
            Box::new(Exchanges::new(openai, &setup.seed))
        }
        Protocol::UiStream => {
            let ui_stream = UiStream::new(endpoint(&setup, None));
            Box::new(Exchanges::new(ui_stream, &setup.seed))
        }
    }
}

/// Returns a line of an agent with other ids of tool calls: `rename` returns the id that replaces one. `None` if
/// nothing changes, or if clients never receive lines of this protocol.
pub fn with_call_ids(
    protocol: Protocol,
    line: &str,
    rename: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    match protocol {
        Protocol::Acp => acp::updates::with_call_ids(line, rename),
        Protocol::Claude | Protocol::Command | Protocol::OpenAi | Protocol::UiStream => None,
    }
}

/// Returns the access to the file of an agent's session, given its directory and its agent session id; `None` if
/// acpipe does not know where agents of this protocol store their sessions.
pub fn agent_file(
    protocol: Protocol,
    env: Variables,
    (cwd, agent_session): (&str, &str),
    access: FileAccess,
) -> Option<Result<Box<dyn AgentFile>, Error>> {
    match protocol {
        Protocol::Acp | Protocol::Command | Protocol::OpenAi | Protocol::UiStream => None,
        Protocol::Claude => Some(
            SessionFile::new(env, cwd, agent_session, access)
                .map(|file| Box::new(file) as Box<dyn AgentFile>),
        ),
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
) -> Result<(), Error> {
    match protocol {
        Protocol::Acp => acp::check(options),
        Protocol::Claude => claude::check(options, servers),
        Protocol::Command => command::check(options),
        Protocol::OpenAi => openai::check(options),
        Protocol::UiStream => ui_stream::check(options),
    }
}

/// Creates the endpoint whose address stands in the place of the command.
fn endpoint(setup: &DialectSetup, default_key: Option<&'static str>) -> Endpoint {
    Endpoint::new(&EndpointSetup {
        url: &setup.launch.command,
        options: &setup.backend,
        env: &setup.env,
        limits: &setup.limits,
        default_key,
    })
}
