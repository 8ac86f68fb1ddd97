//! What a person said with an answer, where the agent's protocol has no place for it.

use crate::core::permit::{Feedback, late_words};
use crate::proto::wire::LedgerEntry;
use serde::Serialize;

/// Words that the agent did not get with the answer.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Undelivered {
    pub question_id: String,
    pub tool_call_id: Option<String>,
    pub title: Option<String>,
    pub approved: bool,
    /// The words as they were said.
    pub feedback: String,
    /// Whether they are sent with the next prompt.
    pub next_prompt: bool,
}

impl Undelivered {
    /// Words that were said to this question.
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

    /// The words as the next prompt says them.
    #[must_use]
    pub fn text(&self) -> String {
        late_words(self.title.as_deref(), self.approved, &self.feedback)
    }
}
