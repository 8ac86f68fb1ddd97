//! Words of a person that are kept for the turn's summary, and for the next prompt where the client wants that.

use super::{SessionMachine, Undelivered};

/// How many bytes of words are kept for the next prompt; what is more stays undelivered.
const MOST_WORDS: usize = 256 << 10;

impl SessionMachine {
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
