//! Drive coding agents from Rust: Claude Code, and every agent that speaks the Agent Client Protocol (ACP),
//! such as Gemini, Codex, `OpenCode` or Goose.
//!
//! One interface for all of them: sessions that survive restarts, turns as streams, permission requests as
//! function calls, and no agent process left behind.
//!
//! ```no_run
//! use acpipe::{Acpipe, Policy};
//!
//! #[tokio::main]
//! async fn main() -> acpipe::Result<()> {
//!     acpipe::init(); // this program supervises its agents
//!     let acpipe = Acpipe::builder()
//!         .agent("claude")
//!         .policy(Policy::reads())
//!         .on_permission(|request| async move { request.deny_because("read only, please") })
//!         .start()?;
//!     let session = acpipe.session("my-chat").cwd("/home/me/project").ensure().await?;
//!     let mut turn = session.prompt("What does this project do?").await?;
//!     while let Some(chunk) = turn.next().await {
//!         print!("{}", chunk.text().unwrap_or_default());
//!     }
//!     let summary = turn.summary().await?;
//!     println!("\n({:?})", summary.stop_reason);
//!     acpipe.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Concepts
//!
//! - [`Acpipe`] is the hub between a program and its agents. It runs as a task of the program's tokio runtime.
//! - An agent is a program that acpipe starts when a session needs it: a [built-in](AgentConfig) one by name,
//!   or a command line.
//! - A [`Session`] is a conversation under an id of the program's choice. [`SessionBuilder::ensure`] opens,
//!   restores or creates it; its [`Receipt`] says which, and what the agent remembers.
//! - A [`Turn`] is a prompt with everything that follows: a stream of [`Chunk`]s, then a [`TurnSummary`].
//!   Dropping it cancels it.
//! - A [`Policy`] decides what agents may do. What it leaves open is decided by
//!   [`Builder::on_permission`].
//! - Every failure is an [`Error`] with an [`ErrorKind`].
//!
//! # Processes
//!
//! Call [`init`] first in `main`. The program is then its agents' supervisor, which ends them and their tools
//! however the program ends. [`Builder::supervisor`] describes what happens without it.
//!
//! # Agents of your own
//!
//! [`agent::Agent`] is a trait for agents. [`agent::serve_acp`] makes a program of an agent for any ACP client,
//! and [`AgentConfig::in_process`] runs it inside this program. [`testing::ScriptedAgent`] stands in for a
//! model in tests.
//!
//! # Backpressure
//!
//! An agent waits while the turn that it works on is not read, after 256 KiB of unread chunks, unless it also
//! works on a turn that is read. Cancelling such a turn and dropping it work all the same, and other agents are
//! not delayed.
//!
//! # Features
//!
//! - `cli` (default): the program `acpipe`. Depend on acpipe with `default-features = false` to use only the
//!   library.

#![warn(missing_docs)]

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod demo;
mod library;
pub mod testing;

/// The framework for agents of your own: the trait [`Agent`](agent::Agent), and its ACP server.
#[doc(inline)]
pub use acpipe_agent as agent;

#[cfg(feature = "cli")]
#[doc(inline)]
pub use cli::serve_stdio;

#[doc(inline)]
pub use acpipe_model::error::ErrorKind;
#[doc(inline)]
pub use acpipe_model::limits::Timeout;
#[doc(inline)]
pub use acpipe_protocol::wire::{
    Activity as RunningTool, ActivityParams as Activity, AgentCapabilities, AgentSource,
    AgentState, AgentStateParams as AgentStateChange, AgentStatus, AgentSummary, AnswerFile,
    AskedTool, Attempt, AuthMethod, AuthVariable, CommandLine, FoundBy, LineFaults, McpPair,
    McpServer, McpTransport, Memory, NotRestored, OfferedKind, OfferedOption, Omitted, Party,
    PassedOver, PeerInfo, ProcessStatus, Program, Protocol, QuestionKind, Recovery as Receipt,
    Rung as RestoreMethod, SessionInfo, SessionOptions, SessionStage, SettingValue, SignIn,
    StateParams as SessionState, TokenUsage, ToolCall, ToolResult, TurnError, TurnSummary, Waiting,
    WaitingPrompt,
};
pub use library::{
    Acpipe, AgentConfig, Builder, Chunk, ChunkKind, Error, Event, Events, Message, Messages,
    PermissionReply, PermissionRequest, Policy, PromptBuilder, QuestionReply, QuestionRequest,
    Result, Rule, Session, SessionBuilder, Turn, init,
};
