//! Tapes: recordings of the frames between client, acpipe and agents, one JSON object a line.
//!
//! `docs/reference/tapes.md` describes the format. The recordings of `tests/transcripts` are tapes, too.

mod read;
mod write;

pub use read::{TapeFault, is_newer, parse, records, text};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// Version of the format.
pub const VERSION: u32 = 1;

/// Record of a tape: a line.
#[derive(Debug, Clone)]
pub enum TapeRecord<'a> {
    /// First line.
    Header(TapeHeader),
    /// Frame that was sent or received.
    Frame(TapeFrame<'a>),
    /// Event of a process, or of the recording itself.
    Event(TapeEvent),
}

/// First line of a tape. Older recordings have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TapeHeader {
    /// Version of the format.
    pub tape: u32,
    /// Version of acpipe that recorded the tape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acpipe: Option<String>,
    /// Time of `t_ms` 0, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
}

/// Peer of acpipe whose connection a frame belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Client.
    Client,
    /// Agent.
    #[default]
    Agent,
}

/// Direction of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From an agent to acpipe; on the side of the client, from the client to acpipe.
    In,
    /// From acpipe to an agent; on the side of the client, from acpipe to the client.
    Out,
}

/// Agent process that a record belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TapeProcess {
    /// Name of the agent.
    pub agent: Option<String>,
    /// Number of the process, counted from 1 over all agents of the tape.
    pub child: Option<u64>,
}

/// Frame of a tape.
#[derive(Debug, Clone)]
pub struct TapeFrame<'a> {
    /// Time since the start of the tape.
    pub at: Duration,
    /// Peer of acpipe.
    pub side: Side,
    /// Direction.
    pub direction: Direction,
    /// Process; empty on the side of the client.
    pub process: TapeProcess,
    /// Content of the line.
    pub body: FrameBody<'a>,
    /// Original length in bytes, if the frame was shortened.
    pub cut: Option<u64>,
}

/// Content of a line that was sent or received.
#[derive(Debug, Clone)]
pub enum FrameBody<'a> {
    /// JSON object or array, without line breaks.
    Json(&'a RawValue),
    /// Line that is neither.
    Text(String),
}

impl FrameBody<'_> {
    /// Returns the line, without the line break at its end.
    #[must_use]
    pub fn line(&self) -> &str {
        match self {
            Self::Json(json) => json.get(),
            Self::Text(text) => text,
        }
    }
}

/// Event of a tape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TapeEvent {
    /// Time since the start of the tape.
    pub at: Duration,
    /// Kind of event.
    pub kind: EventKind,
    /// Process; empty for events of the recording itself.
    pub process: TapeProcess,
    /// Program and arguments of a process that started.
    pub command: Vec<String>,
    /// Exit code of a process that exited.
    pub code: Option<i32>,
    /// Signal that ended a process that exited, or that acpipe sent to a process that it killed.
    pub signal: Option<i32>,
    /// Last output on stderr of a process that exited, or the reason why a process did not start.
    pub stderr: Option<String>,
    /// Number of dropped frames.
    pub frames: Option<u64>,
}

/// Kind of event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum EventKind {
    /// acpipe started a process.
    Started,
    /// A process could not be started.
    Failed,
    /// acpipe closed the input of a process.
    Closed,
    /// acpipe sent a signal to a process to end it.
    Killed,
    /// A process exited.
    Exited,
    /// Frames are missing because they came faster than they could be written.
    Dropped,
    /// The tape reached its maximum size; later frames are missing.
    Full,
    /// Unknown kind, of a later version.
    #[default]
    Unknown,
}

impl TapeEvent {
    /// Returns an event of this kind without any members.
    #[must_use]
    pub fn of(kind: EventKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

impl EventKind {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::Started, "started"),
        (Self::Failed, "failed"),
        (Self::Closed, "closed"),
        (Self::Killed, "killed"),
        (Self::Exited, "exited"),
        (Self::Dropped, "dropped"),
        (Self::Full, "full"),
    ];

    /// Returns the name of the kind in a tape.
    #[must_use]
    pub fn name(&self) -> &'static str {
        let found = Self::NAMES.iter().find(|(kind, _)| kind == self);
        found.map_or("unknown", |(_, name)| name)
    }

    /// Returns the kind of this name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let found = Self::NAMES.into_iter().find(|(_, known)| *known == name);
        found.map_or(Self::Unknown, |(kind, _)| kind)
    }
}

#[cfg(test)]
mod tests;
