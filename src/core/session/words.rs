//! User feedback that is kept for the turn's summary, and for the next prompt if the client requests that.

use super::{SessionMachine, Undelivered};

/// Maximum size of feedback kept for the next prompt, in bytes. Further feedback stays undelivered.
const MOST_WORDS: usize = 256 << 10;

impl SessionMachine {
    /// Keeps feedback on a question of this turn.
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
