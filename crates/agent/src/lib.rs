//! Agents of your own: a trait, and the programs made of it.
//!
//! An agent implements [`Agent`]. Its one required method runs a turn; everything that the agent writes is one
//! method of [`Turn`]. The framework speaks the [Agent Client Protocol](https://agentclientprotocol.com) for
//! it: sessions, cancellation, permissions, errors, and clients that read slowly.
//!
//! ```
//! # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
//! use acpipe::agent::{Agent, AgentError, StopReason, Tool, Turn};
//!
//! struct Echo;
//!
//! impl Agent for Echo {
//!     async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
//!         let count = turn.tool(Tool::new("count", "Count the letters")).await?;
//!         if count.permission().await.is_allowed() {
//!             count.output(&turn.prompt().text().len().to_string()).await;
//!         }
//!         turn.text("You said: ").await;
//!         turn.text(turn.prompt().text()).await;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! ```
//!
//! | to get | call |
//! |-|-|
//! | a program for any ACP client, such as `acpipe run -- PROGRAM` | [`serve_acp`] |
//! | the same on other streams | [`serve_acp_on`] |
//! | an agent inside a program that uses this crate | [`AgentFactory`] |
//! | the same as a program that speaks acpipe's own protocol | `acpipe::serve_stdio`, with the feature `cli` |
//! | an agent without a model, for the tests of a client | [`ScriptedAgent`](crate::testing::ScriptedAgent) |
//!
//! # An agent with a model
//!
//! With [`Agent::keeps_history`], [`Turn::messages`] has the whole conversation:
//!
//! ```
//! # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
//! use acpipe::agent::{Agent, AgentError, FailureKind, Message, StopReason, Turn, Usage};
//! # struct Model;
//! # impl Model {
//! #     async fn ask(&self, _: &[Message]) -> Result<Vec<String>, std::io::Error> {
//! #         Ok(vec!["four".to_owned()])
//! #     }
//! # }
//!
//! struct Assistant {
//!     model: Model,
//! }
//!
//! impl Agent for Assistant {
//!     async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
//!         let failed = |error: std::io::Error| {
//!             AgentError::new(FailureKind::Network, format!("cannot reach the model: {error}"))
//!         };
//!         let pieces = self.model.ask(&turn.messages()).await.map_err(failed)?;
//!         for piece in pieces {
//!             turn.text(piece).await;
//!         }
//!         turn.usage(Usage::new(12, 1));
//!         Ok(StopReason::EndTurn)
//!     }
//!
//!     fn instructions(&self) -> Option<&str> {
//!         Some("Answer in one word.")
//!     }
//!
//!     fn keeps_history(&self) -> bool {
//!         true
//!     }
//! }
//! ```
//!
//! # Cancelling
//!
//! A cancelled turn needs no code: its future is dropped at its next `await` after [`Agent::cancel_grace`], and
//! the client gets the stop reason `cancelled`. Until then, two seconds by default, its output still reaches the
//! client. An agent that can stop sooner, or has to clean up, selects on
//! [`Turn::cancelled`]. Permissions and questions end at once when the turn is cancelled.
//!
//! # Failures
//!
//! An error of a turn becomes the error of its prompt, after everything that the turn wrote. Its
//! [`FailureKind`] reaches the clients of acpipe. A panic is such an error, too, and ends no other turn. After
//! [`AgentError::fatal`] the agent ends without a response, as after a crash.
//!
//! # Testing
//!
//! Any pair of streams is a connection, so a test needs no process:
//!
//! ```
//! # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
//! use acpipe::agent::serve_acp_on;
//! use acpipe::testing::{Reply, ScriptedAgent};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (mut client, reader) = duplex(1024);
//! let (writer, output) = duplex(1024);
//! let agent = ScriptedAgent::new().on_any(Reply::text("hi"));
//! let served = tokio::spawn(serve_acp_on(agent, reader, writer));
//! client.write_all(b"{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}\n").await?;
//! let mut response = String::new();
//! BufReader::new(output).read_line(&mut response).await?;
//! assert!(response.contains("\"protocolVersion\":1"));
//! drop(client);
//! assert!(served.await?.is_ok());
//! # Ok(())
//! # }
//! ```

mod client;
mod connection;
mod content;
mod contract;
mod erased;
mod error;
mod factory;
mod facts;
mod option;
mod output;
mod plan;
mod prompt;
mod question;
mod server;
mod session;
mod sessions;
mod streams;
pub mod testing;
mod tool;
mod turn;
mod usage;

#[cfg(test)]
mod tests;

pub use content::{File, FileData};
pub use contract::Agent;
pub use error::{AgentError, FailureKind};
pub use factory::{AgentFactory, AgentRunner};
pub use facts::Capability;
pub use option::{OptionCategory, SelectOption};
pub use plan::PlanEntry;
pub use prompt::{Prompt, PromptPart};
pub use question::{Answer, Form};
pub use session::{McpServer, McpTransport, Message, Role, Session, StoredSession};
pub use streams::{serve_acp, serve_acp_on};
pub use tool::{Permission, Tool, ToolCall, ToolKind};
pub use turn::{StopReason, Turn};
pub use usage::Usage;
