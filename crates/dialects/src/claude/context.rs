//! Usage of the context window, which the CLI reports in parts over the frames of a turn.

use acpipe_json::{Members, raw_object, text};
use acpipe_protocol::claude::{ApiUsage, Frame, TurnResult};
use serde_json::json;
use serde_json::value::RawValue;

/// Context usage of the last message of the agent itself, not of its subagents.
#[derive(Debug, Default)]
pub struct ContextUsage {
    model: Option<String>,
    read: u64,
    written: u64,
}

raw_object! {
    struct MessageFields { model = "model", usage = "usage" }
}

raw_object! {
    /// Fields of a model in `modelUsage` of a result.
    struct Model { window = "contextWindow" }
}

impl ContextUsage {
    /// Updates the usage from a frame that reports tokens: the start of a message, its end, or the whole
    /// message.
    pub fn read(&mut self, frame: &Frame<'_>) {
        let event = frame.event.as_ref();
        let begun = event.and_then(|event| event.message).or(frame.message);
        let tells = begun.is_some() || event.is_some_and(|event| event.usage.is_some());
        if !tells || frame.parent().is_some() {
            return;
        }
        let facts: MessageFields<'_> = begun
            .and_then(|message| serde_json::from_str(message.get()).ok())
            .unwrap_or_default();
        if let Some(model) = text(facts.model).filter(|model| model != "<synthetic>") {
            self.model = Some(model.into_owned());
        } else if facts.model.is_some() {
            return;
        }
        let usage = facts.usage.or(event.and_then(|event| event.usage));
        let usage: Option<ApiUsage<'_>> =
            usage.and_then(|usage| serde_json::from_str(usage.get()).ok());
        if let Some(usage) = usage {
            let read = [usage.input, usage.cached_read, usage.cached_write];
            let read: u64 = read.into_iter().map(count).sum();
            if read > 0 {
                self.read = read;
            }
            self.written = count(usage.output);
        }
    }

    /// Returns the usage in the form that ACP agents use; `None` unless the result has the size of the
    /// context window.
    pub fn figures(&self, result: &str) -> Option<Members<'static>> {
        let result: TurnResult<'_> = serde_json::from_str(result).ok()?;
        let models = Members::of(result.rest.get("modelUsage")?);
        let model: Model<'_> =
            serde_json::from_str(models.get(self.model.as_deref()?)?.get()).ok()?;
        let size = count(model.window);
        if size == 0 || self.read == 0 {
            return None;
        }
        let mut figures = Members::default();
        figures.set_owned("used", &(self.read + self.written));
        figures.set_owned("size", &size);
        if let Some(cost) = result.cost {
            figures.set_owned("cost", &json!({ "amount": cost, "currency": "USD" }));
        }
        Some(figures)
    }
}

fn count(raw: Option<&RawValue>) -> u64 {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn figures_are_those_of_the_last_message_of_the_agent_itself() {
        let mut context = ContextUsage::default();
        let mut read = |frame: Value| {
            let line = frame.to_string();
            context.read(&Frame::read(&line).unwrap());
        };
        let begins = |input: u64| {
            json!({"type": "stream_event", "event": {"type": "message_start", "message": {
                "model": "m", "usage": {"input_tokens": input, "cache_read_input_tokens": 100, "output_tokens": 1}}}})
        };
        read(begins(7));
        read(begins(10));
        read(
            json!({"type": "stream_event", "event": {"type": "message_delta", "usage": {"output_tokens": 30}}}),
        );
        let mut other = begins(5000);
        other["parent_tool_use_id"] = "t".into();
        read(other);
        read(
            json!({"type": "assistant", "message": {"model": "<synthetic>", "usage": {"output_tokens": 0}}}),
        );
        let result = json!({"total_cost_usd": 0.5, "modelUsage": {
            "m": {"contextWindow": 200_000}, "other": {"contextWindow": 1_000_000}}});
        let figures = context.figures(&result.to_string()).unwrap();
        let figures: Value = json!(figures);
        let want =
            json!({"used": 140, "size": 200_000, "cost": {"amount": 0.5, "currency": "USD"}});
        assert_eq!(figures, want);
        assert!(context.figures("{}").is_none());
        assert!(
            ContextUsage::default()
                .figures(&result.to_string())
                .is_none()
        );
    }
}
