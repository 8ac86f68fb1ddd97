//! Running turn of a session.

use super::super::UndeliveredFeedback;
use crate::client::Token;
use crate::retry::Attempts;
use crate::turn::{AgentIds, Turn};
use crate::turn_ending::Ending;
use crate::turn_trace::TurnTrace;
use crate::view::chunks::ChunkState;
use acpipe_model::error::Error;
use acpipe_model::event::CallId;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct EndedMessage {
    pub message_id: String,
    /// The agent's ids of the messages and tool calls in it.
    pub names: Arc<AgentIds>,
    pub cancelled: bool,
}

/// A prompted turn that has not ended.
#[derive(Debug)]
pub struct Running {
    pub turn: Turn,
    pub chunks: ChunkState,
    pub turn_id: String,
    /// The client's call, which is answered when the turn ends.
    pub token: Token,
    /// The call to the agent that is in flight for the turn.
    pub call: CallId,
    /// `true` while the agent does background work before it begins with the prompt. Updates belong to the
    /// background turn until then.
    pub waits_for_background: bool,
    pub attempts: Attempts,
    pub started: Instant,
    /// Number of stored messages when the turn began.
    pub messages_before: u64,
    /// Total time that acpipe had waited for agents when the turn began.
    pub waited_before: Duration,
    /// When the turn reaches the configured limit on its whole length.
    pub limit: Option<Instant>,
    pub first_output: Option<Instant>,
    /// Facts for the report of the turn; `None` if turns are not reported.
    pub trace: Option<TurnTrace>,
    /// Number of the last chunk before the turn.
    pub after_seq: u64,
    /// Position in the agent's stderr at which the turn began.
    pub stderr_at: u64,
    /// When a cancel that was sent times out; `None` if the turn is not cancelled.
    pub cancel_deadline: Option<Instant>,
    /// Why acpipe cancelled the turn: the idle timeout or the timeout of the whole turn.
    pub timed_out: Option<Error>,
    /// Types of the prompt parts that acpipe did not send.
    pub skipped_parts: Vec<String>,
    /// Feedback that the user gave with answers and that the agent did not receive.
    pub undelivered: Vec<UndeliveredFeedback>,
    /// Outcome of the turn, while output received with the agent's answer is still being processed.
    pub ended: Option<Ending>,
    /// Until when an answered turn stays open for output that this agent sends late.
    pub late_output_until: Option<Instant>,
}

impl Running {
    /// Creates a turn that has just begun, without a time limit.
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
            waits_for_background: false,
            attempts,
            started,
            messages_before: 0,
            waited_before: Duration::ZERO,
            limit: None,
            first_output: None,
            trace: None,
            after_seq: 0,
            stderr_at: 0,
            cancel_deadline: None,
            timed_out: None,
            skipped_parts: Vec::new(),
            undelivered: Vec::new(),
            ended: None,
            late_output_until: None,
        }
    }

    /// Returns `true` if a cancel was sent.
    pub fn is_cancelled(&self) -> bool {
        self.cancel_deadline.is_some()
    }
}

#[derive(Debug)]
pub struct AbandonedPrompt {
    pub call: CallId,
    /// When the wait for the response ends. `None` after that, while the session waits for turns of other
    /// sessions of its agent.
    pub until: Option<Instant>,
}
