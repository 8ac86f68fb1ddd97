//! Methods that a client can call, with their properties in one table.
//!
//! JSON-RPC dispatch, schemas, the order of read calls, the redaction of logs and the idle timeout of agents
//! all follow from the table. A row without one of the properties does not compile, nor does a [`Command`]
//! without a row.

use super::client::Command;
use acpipe_model::secret::Secrets;
use acpipe_protocol::has_schema::HasSchema;
use acpipe_protocol::wire::{McpServer, Variables};
use serde::de::DeserializeOwned;

/// Properties of a method, apart from the types of its parameters and result.
#[derive(Debug)]
pub struct Method {
    /// Name on the wire.
    pub name: &'static str,
    /// Summary in the `OpenRPC` document.
    pub summary: &'static str,
    /// Whether the method has no effect apart from its response, which may be large. The call is delayed
    /// while the client does not read.
    pub only_reads: bool,
    /// Whether the method needs a running agent. An agent that is stopping because it was idle is then
    /// started again.
    pub needs_agent: bool,
    /// Rust names of the parameters whose values must not be logged; [`Command::secrets`] returns the values.
    pub secrets: &'static [&'static str],
    /// Whether the parameters contain a prompt or message, and so may be larger than those of other methods.
    pub content: bool,
}

/// Parameter whose value must not be logged.
///
/// A parameter of another type needs a new variant, so the redaction of logs does not compile until it
/// handles that type.
#[derive(Debug, Clone, Copy)]
pub enum Secret<'a> {
    Variables(&'a Variables),
    /// MCP servers, with headers and environment variables.
    McpServers(&'a [McpServer]),
}

impl<'a> From<&'a Variables> for Secret<'a> {
    fn from(variables: &'a Variables) -> Self {
        Self::Variables(variables)
    }
}

impl<'a> From<&'a Vec<McpServer>> for Secret<'a> {
    fn from(servers: &'a Vec<McpServer>) -> Self {
        Self::McpServers(servers)
    }
}

pub fn learn_secrets(command: &Command, secrets: &Secrets) {
    for secret in command.secrets() {
        match secret {
            Secret::Variables(variables) => secrets.add_variables(variables),
            Secret::McpServers(servers) => secrets.add_servers(servers),
        }
    }
}

/// Properties of a message that a client which speaks ACP sends to the agent.
const FORWARD: Method = Method {
    name: "acp/forward",
    summary: "Passes a message of an ACP client on to the agent.",
    only_reads: false,
    needs_agent: true,
    secrets: &[],
    content: true,
};

/// Properties of the withdrawal of such a message.
const WITHDRAW: Method = Method {
    name: "acp/withdraw",
    summary: "Withdraws a request that was passed on.",
    only_reads: false,
    needs_agent: false,
    secrets: &[],
    content: false,
};

/// Properties of the replay for a client that speaks ACP.
const REPLAY: Method = Method {
    name: "acp/replay",
    summary: "Replays a stored session as ACP updates.",
    only_reads: true,
    needs_agent: false,
    secrets: &[],
    content: false,
};

/// Visitor of all methods of the table, with their types, in the order of the table.
pub trait MethodVisitor {
    /// Visits one method. `P` is the type of its parameters, `R` of its result; `command` converts parameters
    /// to a command.
    fn visit<P, R>(&mut self, method: &'static Method, command: fn(P) -> Command)
    where
        P: DeserializeOwned + HasSchema + 'static,
        R: HasSchema;
}

/// Generates [`visit_methods`], [`Command::method`] and [`Command::secrets`] from the rows of the table.
///
/// `command` is used both as an expression, which creates the command from `params`, and as a pattern, which
/// binds `params`.
macro_rules! methods {
    (
        $(
            $name:literal ($params:ident: $Params:ty) -> $Result:ty {
                command: [$($command:tt)+],
                summary: $summary:literal,
                only_reads: $only_reads:literal,
                needs_agent: $needs_agent:literal,
                secrets: [$($secret:ident),*],
                content: $content:literal,
            }
        )+
    ) => {
        impl Command {
            #[expect(unused_variables, reason = "the patterns bind the parameters")]
            pub fn method(&self) -> &'static Method {
                match self {
                    $(
                        $($command)+ => &Method {
                            name: $name,
                            summary: $summary,
                            only_reads: $only_reads,
                            needs_agent: $needs_agent,
                            secrets: &[$(stringify!($secret)),*],
                            content: $content,
                        },
                    )+
                    Command::Acp(acpipe_model::acp_client::AcpCommand::Forward(_)) => &super::FORWARD,
                    Command::Acp(acpipe_model::acp_client::AcpCommand::Withdraw { .. }) => {
                        &super::WITHDRAW
                    }
                    Command::Acp(acpipe_model::acp_client::AcpCommand::Replay { .. }) => {
                        &super::REPLAY
                    }
                }
            }

            /// Returns the parameters whose values must not be logged.
            #[expect(unused_variables, reason = "most parameters hold no secrets")]
            pub fn secrets(&self) -> Vec<Secret<'_>> {
                match self {
                    $($($command)+ => vec![$(Secret::from(&$params.$secret)),*],)+
                    Command::Acp(_) => Vec::new(),
                }
            }
        }

        #[expect(unused_variables, reason = "some methods have no parameters")]
        pub fn visit_methods(visitor: &mut impl MethodVisitor) {
            $(
                visitor.visit::<$Params, $Result>(
                    &Method {
                        name: $name,
                        summary: $summary,
                        only_reads: $only_reads,
                        needs_agent: $needs_agent,
                        secrets: &[$(stringify!($secret)),*],
                        content: $content,
                    },
                    |$params| $($command)+,
                );
            )+
        }
    };
}

mod table;

pub use table::visit_methods;
