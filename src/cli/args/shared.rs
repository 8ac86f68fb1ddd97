//! Arguments shared by several subcommands.

pub use super::timeouts::stage;

use acpipe_core::profile::Profile;
use acpipe_protocol::wire::Protocol;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Where sessions are kept.
#[derive(Debug, Args)]
pub struct PlaceArgs {
    /// Directory of the stored sessions [default: acpipe in the platform's state directory]
    #[arg(long, value_name = "DIR", env = "ACPIPE_STATE_DIR", global = true)]
    pub state_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ChunkProfileArg {
    #[value(name = "7")]
    V7,
    #[value(name = "6")]
    V6,
    #[value(name = "5")]
    V5,
    #[value(name = "discobot")]
    Discobot,
}

impl From<ChunkProfileArg> for Profile {
    fn from(p: ChunkProfileArg) -> Self {
        match p {
            ChunkProfileArg::V7 => Self::V7,
            ChunkProfileArg::V6 => Self::V6,
            ChunkProfileArg::V5 => Self::V5,
            ChunkProfileArg::Discobot => Self::Discobot,
        }
    }
}

/// Protocol that an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentKind {
    /// Agent Client Protocol
    Acp,
    /// Stream-json of the Claude Code CLI
    Claude,
    /// A program that reads one prompt and prints one answer
    Command,
    /// HTTP endpoint for chat completions; its address stands in the place of the command
    #[value(name = "openai")]
    OpenAi,
    /// HTTP endpoint that streams chunks of the AI SDK; its address stands in the place of the command
    UiStream,
}

impl From<AgentKind> for Protocol {
    fn from(kind: AgentKind) -> Self {
        match kind {
            AgentKind::Acp => Self::Acp,
            AgentKind::Claude => Self::Claude,
            AgentKind::Command => Self::Command,
            AgentKind::OpenAi => Self::OpenAi,
            AgentKind::UiStream => Self::UiStream,
        }
    }
}

/// Output format of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The text of the answer, as it arrives
    Text,
    /// AI SDK chunks, one JSON object per line
    Chunks,
    /// AI SDK chunks as server-sent events, as in the AI SDK's HTTP stream
    Sse,
    /// Events of the AG-UI protocol, one JSON object per line
    Agui,
    /// The summary of the turn as one JSON object
    Json,
}
