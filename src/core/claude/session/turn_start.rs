//! Start of a turn: of the prompt in progress, or of a background turn.

use super::{Pending, Session};
use crate::core::event::AgentEvent;
use serde_json::json;

impl Session {
    /// Handles the start of a turn. If the CLI reports with which prompt it starts, it has done so before.
    pub(super) fn turn_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        match &mut self.prompt {
            Some(prompt) if prompt.begun => return,
            // The prompt was sent while this turn was starting.
            Some(prompt) if self.reports_prompt_starts => prompt.waits = true,
            Some(prompt) => {
                if prompt.waits && !self.background_turn {
                    self.prompt_begins(events, out);
                }
                return;
            }
            None => {}
        }
        if !std::mem::replace(&mut self.background_turn, true) {
            let session = self.id.clone();
            events.push(AgentEvent::BackgroundTurnBegan { session });
        }
    }

    /// Handles the start of the prompt's turn.
    pub(super) fn prompt_begins(&mut self, events: &mut Vec<AgentEvent<'_>>, out: &mut Vec<u8>) {
        let Some(prompt) = &mut self.prompt else {
            return;
        };
        prompt.begun = true;
        let (call, cancelled) = (prompt.call, prompt.cancelled);
        if std::mem::take(&mut prompt.waits) {
            events.push(AgentEvent::QueuedPromptBegan { call });
        }
        if cancelled {
            // The prompt was to be withdrawn, but its turn has started already.
            self.request(Pending::Interrupt, &json!({ "subtype": "interrupt" }), out);
        }
    }
}
