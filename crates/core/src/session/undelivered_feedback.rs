//! User feedback on a request that the agent's protocol cannot carry.

use acpipe_model::decision::{Feedback, late_feedback};
use acpipe_protocol::wire::LedgerEntry;
use serde::Serialize;

/// Feedback that the agent did not receive with the answer.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UndeliveredFeedback {
    pub question_id: String,
    pub tool_call_id: Option<String>,
    /// Title of the tool call or question.
    pub title: Option<String>,
    pub approved: bool,
    /// The feedback as the user wrote it.
    pub feedback: String,
    /// `true` if the next prompt includes the feedback.
    pub next_prompt: bool,
}

impl UndeliveredFeedback {
    #[must_use]
    pub fn new(entry: &LedgerEntry, approved: bool, feedback: &Feedback) -> Self {
        Self {
            question_id: entry.question_id.clone(),
            tool_call_id: entry.tool_call_id.clone(),
            title: entry.title.clone(),
            approved,
            feedback: feedback.words.clone(),
            next_prompt: feedback.next_prompt,
        }
    }

    /// Returns the feedback as text for the next prompt.
    pub fn text(&self) -> String {
        late_feedback(self.title.as_deref(), self.approved, &self.feedback)
    }
}
