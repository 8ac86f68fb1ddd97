//! The library's public interface: the hub as a client face for Rust programs.
//!
//! ```text
//! Acpipe, Session, Turn ─► Call ─► LibraryClients ─► hub
//!                 Turn ◄─ TurnQueue ◄─ Sink ◄────────┘
//! ```

mod agent_config;
mod asks;
mod call;
mod chunk;
mod clients;
mod error;
mod event;
mod handle;
mod handlers;
mod history;
mod instance;
mod message;
mod policy;
mod session;
mod session_handle;
mod supervision;
mod turn;
mod turn_queue;
mod wake;

pub use agent_config::AgentConfig;
pub use chunk::{Chunk, ChunkKind};
pub use error::{Error, Result};
pub use event::{Event, Events};
pub use handlers::{PermissionReply, PermissionRequest, QuestionReply, QuestionRequest};
pub use history::Messages;
pub use instance::{Acpipe, Builder};
pub use message::Message;
pub use policy::{Policy, Rule};
pub use session::{PromptBuilder, Session, SessionBuilder};
use std::path::Path;
pub use supervision::init;
pub use turn::Turn;

/// Returns the absolute form of a path; unchanged if the working directory is unknown.
fn absolute(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    path.to_string_lossy().into_owned()
}
