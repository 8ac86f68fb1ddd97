//! Background turn of a session.

use crate::turn::Turn;
use crate::view::chunks::ChunkState;
use std::time::Instant;

/// A turn that the agent began without a prompt.
#[derive(Debug)]
pub struct BackgroundTurn {
    pub turn: Turn,
    pub chunks: ChunkState,
    pub turn_id: String,
    /// Number of the last chunk before the turn.
    pub after_seq: u64,
    /// When the turn ends unless the agent reports something; `None` while a tool runs or a client request is
    /// open.
    pub quiet_at: Option<Instant>,
    pub cancelled: bool,
}
