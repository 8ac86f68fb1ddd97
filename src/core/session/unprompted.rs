//! The message of what an agent says without a prompt.

use crate::core::turn::Turn;
use crate::core::view::chunks::ChunkState;
use std::time::Instant;

/// A turn that the agent began without a prompt.
#[derive(Debug)]
pub struct Unprompted {
    pub turn: Turn,
    /// What was shown of the turn.
    pub chunks: ChunkState,
    pub turn_id: String,
    /// When it is over, if nothing happens until then; `None` while a tool runs.
    pub quiet_at: Option<Instant>,
    /// Whether the client cancelled it.
    pub cancelled: bool,
}
