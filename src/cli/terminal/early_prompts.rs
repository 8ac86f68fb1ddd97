//! Prompts of other clients that arrive before the client follows the session.

use acpipe_protocol::wire::UserMessageParams;
use std::sync::Arc;

/// Prompts that are shown when their turns begin. Those of turns whose beginning is stored are among the stored
/// messages, and are not shown again.
#[derive(Debug, Default)]
pub struct EarlyPrompts(Vec<Arc<UserMessageParams>>);

impl EarlyPrompts {
    pub fn push(&mut self, prompt: Arc<UserMessageParams>) {
        self.0.push(prompt);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the prompt of a turn and returns it.
    pub fn take(&mut self, turn: Option<&str>) -> Option<Arc<UserMessageParams>> {
        let at = self.0.iter().position(|p| Some(&*p.turn_id) == turn)?;
        Some(self.0.remove(at))
    }
}
