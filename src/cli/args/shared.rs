//! Arguments shared by several subcommands.

pub use super::timeouts::stage;

use crate::core::profile::Profile;
use crate::proto::wire::Protocol;
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
pub enum ChunkProfile {
    #[value(name = "7")]
    V7,
    #[value(name = "6")]
    V6,
    #[value(name = "5")]
    V5,
    #[value(name = "discobot")]
    Discobot,
}

impl From<ChunkProfile> for Profile {
    fn from(p: ChunkProfile) -> Self {
        match p {
            ChunkProfile::V7 => Self::V7,
            ChunkProfile::V6 => Self::V6,
            ChunkProfile::V5 => Self::V5,
            ChunkProfile::Discobot => Self::Discobot,
        }
    }
}

/// Protocol that an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
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

impl From<Kind> for Protocol {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Acp => Self::Acp,
            Kind::Claude => Self::Claude,
            Kind::Command => Self::Command,
            Kind::OpenAi => Self::OpenAi,
            Kind::UiStream => Self::UiStream,
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
