//! The methods that a client can call: one table of their facts.
//!
//! The command line's JSON-RPC dispatch, the schemas, the order of reading calls, the redaction of logs and the idle timeout
//! of agents all follow from the table. A row without one of the facts does not compile, nor does a [`Command`] without a
//! row.

use super::client::Command;
use crate::proto::wire::{McpServer, Variables};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

/// Facts of a method, apart from the types of its parameters and result.
#[derive(Debug)]
pub struct Method {
    /// Name on the wire.
    pub name: &'static str,
    /// Description in the `OpenRPC` document.
    pub summary: &'static str,
    /// The method has no effect apart from its answer, which may be large: while the client does not read, the call waits.
    pub only_reads: bool,
    /// The method needs a running agent: an agent that is stopping because it was idle is started again.
    pub needs_agent: bool,
    /// Rust names of the parameters whose values must not be logged; [`Command::secrets`] has the values.
    pub secrets: &'static [&'static str],
    /// The parameters hold content, a prompt or a message, and may be larger than those of other methods.
    pub content: bool,
}

/// Parameter whose values must not be logged.
///
/// A parameter of another type is added as a variant, so that the redaction of logs does not compile until it handles it.
#[derive(Debug, Clone, Copy)]
pub enum Secret<'a> {
    Variables(&'a Variables),
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

/// Receives every method of the table, with its types, in the order of the table.
pub trait MethodVisitor {
    /// Receives one method: `P` is the type of its parameters, `R` of its result; `command` makes a command of parameters.
    fn visit<P, R>(&mut self, method: &'static Method, command: fn(P) -> Command)
    where
        P: DeserializeOwned + JsonSchema + 'static,
        R: JsonSchema;
}

/// Makes [`visit_methods`], [`Command::method`] and [`Command::secrets`] of the rows of the table.
///
/// `command` is used both as an expression, which makes the command of `params`, and as a pattern, which binds `params`.
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
            /// The method that the command is a call of.
            #[must_use]
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
                }
            }

            /// The parameters whose values must not be logged.
            #[must_use]
            #[expect(unused_variables, reason = "most parameters hold no secrets")]
            pub fn secrets(&self) -> Vec<Secret<'_>> {
                match self {
                    $($($command)+ => vec![$(Secret::from(&$params.$secret)),*],)+
                }
            }
        }

        /// Passes all methods to a visitor, in the order of the table.
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
