//! What a person said with an answer, where the agent's protocol has no place for it: kept for the turn's summary, and
//! where the client wants that for the next prompt.

use super::Session;
use crate::core::permit::{Feedback, late_words};
use crate::proto::wire::LedgerEntry;
use serde::Serialize;

/// How many bytes of words are kept for the next prompt; what is more stays undelivered.
const MOST_WORDS: usize = 256 << 10;

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

    fn text(&self) -> String {
        late_words(self.title.as_deref(), self.approved, &self.feedback)
    }
}

impl Session {
    /// Keeps words that were said to a question of this turn.
    pub fn keep_words(&mut self, turn_id: &str, mut words: Undelivered) {
        let text = words.text();
        let kept: usize = self.late_words.iter().map(String::len).sum();
        words.next_prompt &= kept + text.len() <= MOST_WORDS;
        if words.next_prompt {
            self.late_words.push(text);
        }
        let running = self.running.as_mut();
        if let Some(running) = running.filter(|running| running.turn_id == turn_id) {
            running.undelivered.push(words);
        }
    }
}
