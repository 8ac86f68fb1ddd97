//! A turn that has not ended.

use super::Undelivered;
use crate::core::client::Token;
use crate::core::error::Error;
use crate::core::event::CallId;
use crate::core::retry::Attempts;
use crate::core::turn::Turn;
use crate::core::turn_ending::Ending;
use crate::core::view::chunks::ChunkState;
use std::time::{Duration, Instant};

/// A turn that has not ended.
#[derive(Debug)]
pub struct Running {
    pub turn: Turn,
    /// What was shown of the turn.
    pub chunks: ChunkState,
    pub turn_id: String,
    pub token: Token,
    pub call: CallId,
    /// Whether the agent does something unasked before it begins with the prompt: until then what it says is
    /// part of that.
    pub waits: bool,
    pub attempts: Attempts,
    pub started: Instant,
    /// How many messages there were when it began.
    pub messages_before: u64,
    /// How long the bridge had waited for agents when the turn began.
    pub waited_before: Duration,
    /// When the turn as a whole has lasted for too long, and the limit that says so.
    pub limit: Option<(Instant, Duration)>,
    /// Position in the agent's stderr at which the turn began.
    pub stderr_at: u64,
    /// When a cancel that was sent is given up.
    pub cancel_deadline: Option<Instant>,
    /// Why acpipe itself cancelled it: the agent was silent for too long, or the turn lasted for too long.
    pub timed_out: Option<Error>,
    pub skipped_parts: Vec<String>,
    /// What the user said with answers in it and the agent did not get.
    pub undelivered: Vec<Undelivered>,
    /// How it ended, while what was received with the agent's answer is still being read.
    pub ended: Option<Ending>,
}

impl Running {
    #[must_use]
    pub fn new(
        turn: Turn,
        chunks: ChunkState,
        turn_id: String,
        token: Token,
        call: CallId,
        attempts: Attempts,
        started: Instant,
    ) -> Self {
        Self {
            turn,
            chunks,
            turn_id,
            token,
            call,
            waits: false,
            attempts,
            started,
            messages_before: 0,
            waited_before: Duration::ZERO,
            limit: None,
            stderr_at: 0,
            cancel_deadline: None,
            timed_out: None,
            skipped_parts: Vec::new(),
            undelivered: Vec::new(),
            ended: None,
        }
    }

    /// Whether its cancel is on its way.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel_deadline.is_some()
    }
}
