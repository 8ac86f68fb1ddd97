//! Decisions about what the agent asks: permission for tools, answers of the user, and tools that ran without either.
//!
//! Owns the approvals that clients gave, the feedback that the agent did not receive, and the decisions on file and terminal
//! requests until [`HostCalls`](super::host_calls::HostCalls) takes them at the end of the event. The policy or a client
//! decides; the result goes to the agent, and to turn and log of the [`Conversation`], whose output keeps the questions that
//! wait for a client. It may not send prompts, open the
//! session, or read and write files: it decides whether a file request may be carried out, and does not carry it out.

mod against_policy;
pub mod client_requests;
pub mod new_message;
pub mod permissions;
pub mod questions;
pub mod unapproved_runs;
pub mod updated_call;

use crate::cx::Cx;
use crate::session::approvals::Approvals;
use crate::session::{Conversation, UndeliveredFeedback};
use acpipe_model::decision::Decision;
use acpipe_model::host::Ticket;

/// Maximum size of feedback kept for the next prompt, in bytes. Further feedback stays undelivered.
const MAX_LATE_FEEDBACK: usize = 256 << 10;

/// Decisions about the requests of a session's agent.
#[derive(Debug, Default)]
pub struct Decisions {
    /// Tool calls that a client approved in this turn.
    pub(super) approvals: Approvals,
    /// Feedback of the user that the agent did not receive, as text for the next prompt.
    pub(super) late_feedback: Vec<String>,
    /// Decisions on file and terminal requests, to be carried out after the current event.
    pub(super) of_host_calls: Vec<(Ticket, Decision)>,
}

impl Decisions {
    /// Keeps feedback on a question of this turn.
    pub fn keep_late_feedback(
        &mut self,
        turn_id: &str,
        mut words: UndeliveredFeedback,
        talk: &mut Conversation,
    ) {
        let text = words.text();
        let kept: usize = self.late_feedback.iter().map(String::len).sum();
        words.next_prompt &= kept + text.len() <= MAX_LATE_FEEDBACK;
        if words.next_prompt {
            self.late_feedback.push(text);
        }
        let running = talk.turns.prompted_mut();
        if let Some(running) = running.filter(|running| running.turn_id == turn_id) {
            running.undelivered.push(words);
        }
    }

    /// Records the decision on a request. It is carried out after everything else of the event.
    pub fn host_decided(
        &mut self,
        ticket: Ticket,
        decision: &Decision,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.of_host_calls.push((ticket, decision.clone()));
        cx.hosting.note_decision(&talk.id);
    }

    pub fn take_host_decisions(&mut self) -> Vec<(Ticket, Decision)> {
        std::mem::take(&mut self.of_host_calls)
    }
}
