//! Cancellation: interrupts of turns, and withdrawal of prompts.

use super::{Pending, Prompt, Session};
use crate::core::event::{AgentEvent, StopReason, TurnEnd};
use crate::proto::claude::{Frame, word};
use crate::proto::json::text;
use serde_json::json;
use serde_json::value::RawValue;

impl Session {
    /// Interrupts the turn.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        if let Some(prompt) = &mut self.prompt {
            prompt.cancelled = true;
        }
        self.request(Pending::Interrupt, &json!({ "subtype": "interrupt" }), out);
    }

    /// Handles the end of an interrupt. A prompt that is still queued would start now, and is withdrawn.
    pub(super) fn interrupted(&mut self, response: Option<&RawValue>, out: &mut Vec<u8>) {
        let queued = response.map(RawValue::get).unwrap_or_default();
        self.withdraw_steering(queued, out);
        let Some(prompt) = &self.prompt else { return };
        if prompt.cancelled && queued.contains(&prompt.uuid) {
            let request = json!({ "subtype": "cancel_async_message", "message_uuid": prompt.uuid });
            self.request(Pending::Withdraw, &request, out);
        }
    }

    /// Handles the start of a queued prompt, or its withdrawal, which has no result.
    pub(super) fn lifecycle(
        &mut self,
        frame: &Frame<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Vec<u8>,
    ) {
        let uuid = text(frame.rest.get("command_uuid"));
        let ours = |prompt: &mut Prompt| uuid.as_deref() == Some(prompt.uuid.as_str());
        let state = word(frame.rest.get("state"));
        if matches!(state, "started" | "completed" | "cancelled")
            && let Some(uuid) = &uuid
        {
            self.steering_taken(uuid, state == "started", out);
        }
        if state == "started" && self.prompt.as_mut().is_some_and(ours) {
            self.reports_prompt_starts = true;
            self.prompt_begins(events, out);
        }
        if state == "cancelled"
            && let Some(prompt) = self.prompt.take_if(ours)
        {
            let call = prompt.call;
            let end = TurnEnd {
                stop_reason: StopReason::Cancelled,
                reported: "cancelled".to_owned(),
                ..TurnEnd::default()
            };
            events.push(AgentEvent::TurnEnded { call, end });
        }
    }
}
