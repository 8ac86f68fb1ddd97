//! User feedback that is kept for the turn's summary, and for the next prompt if the client requests that.

use super::{SessionMachine, UndeliveredFeedback};

/// Maximum size of feedback kept for the next prompt, in bytes. Further feedback stays undelivered.
const MAX_LATE_FEEDBACK: usize = 256 << 10;

impl SessionMachine {
    /// Keeps feedback on a question of this turn.
    pub fn keep_late_feedback(&mut self, turn_id: &str, mut words: UndeliveredFeedback) {
        let text = words.text();
        let kept: usize = self.late_feedback.iter().map(String::len).sum();
        words.next_prompt &= kept + text.len() <= MAX_LATE_FEEDBACK;
        if words.next_prompt {
            self.late_feedback.push(text);
        }
        let running = self.talk.turns.prompted_mut();
        if let Some(running) = running.filter(|running| running.turn_id == turn_id) {
            running.undelivered.push(words);
        }
    }
}
