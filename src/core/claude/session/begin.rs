//! Whose turn begins: that of the prompt, or one that nobody asked for.

use super::{Pending, Session};
use crate::core::event::AgentEvent;
use serde_json::json;

impl Session {
    /// A turn begins. Where the CLI says with which prompt it begins, it has said so before.
    pub(super) fn turn_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        match &mut self.prompt {
            Some(prompt) if prompt.begun => return,
            // It was sent while this turn was on its way.
            Some(prompt) if self.names_prompts => prompt.waits = true,
            Some(prompt) => {
                if prompt.waits && !self.unasked {
                    self.prompt_begins(events, out);
                }
                return;
            }
            None => {}
        }
        if !std::mem::replace(&mut self.unasked, true) {
            let session = self.id.clone();
            events.push(AgentEvent::UnpromptedBegun { session });
        }
    }

    /// The CLI begins with the prompt.
    pub(super) fn prompt_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        let Some(prompt) = &mut self.prompt else {
            return;
        };
        prompt.begun = true;
        let (call, cancelled) = (prompt.call, prompt.cancelled);
        if std::mem::take(&mut prompt.waits) {
            events.push(AgentEvent::PromptBegun { call });
        }
        if cancelled {
            // It was to be taken back, but the CLI was faster.
            self.request(Pending::Interrupt, &json!({ "subtype": "interrupt" }), out);
        }
    }
}
