//! Facts of a running turn that only its report needs.

use super::report::TraceParent;
use serde_json::Value;
use std::collections::HashMap;
use std::time::Instant;

/// Facts of a running turn that only its report needs.
#[derive(Debug, Default)]
pub struct TurnTrace {
    /// Span of the client that the turn belongs to.
    parent: Option<TraceParent>,
    /// First report and end of each tool call, by its id.
    tools: HashMap<Box<str>, (Instant, Option<Instant>)>,
}

impl TurnTrace {
    /// Creates the trace of a turn that begins with a message. The client's span is the `traceparent` in the metadata
    /// of the message, or for clients that speak ACP in `_meta` of the call.
    #[must_use]
    pub fn of(message: &Value) -> Self {
        let metadata = &message["metadata"];
        let own = [
            &metadata["traceparent"],
            &metadata["acp"]["_meta"]["traceparent"],
        ];
        Self {
            parent: own
                .into_iter()
                .find_map(|text| TraceParent::parse(text.as_str()?)),
            tools: HashMap::new(),
        }
    }

    pub fn note(&mut self, id: &str, is_open: bool, now: Instant) {
        match self.tools.get_mut(id) {
            Some((_, ended)) if is_open => *ended = None,
            Some((_, ended)) => *ended = ended.or(Some(now)),
            None => {
                let ended = (!is_open).then_some(now);
                self.tools.insert(id.into(), (now, ended));
            }
        }
    }

    pub fn times(&self, id: &str) -> Option<(Instant, Option<Instant>)> {
        self.tools.get(id).copied()
    }

    pub fn parent(&self) -> Option<TraceParent> {
        self.parent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn parent_is_in_the_metadata_or_in_meta_of_an_acp_call() {
        let parent = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        for (metadata, is_found) in [
            (json!({ "traceparent": parent }), true),
            (
                json!({ "acp": { "_meta": { "traceparent": parent } } }),
                true,
            ),
            (json!({ "traceparent": 7, "acp": [] }), false),
            (json!("traceparent"), false),
        ] {
            let message = json!({ "metadata": metadata, "parts": [] });
            let found = TurnTrace::of(&message).parent();
            assert_eq!(found.is_some(), is_found, "{metadata}");
        }
    }

    #[test]
    fn call_ends_at_its_first_end_unless_it_is_open_again() {
        let mut trace = TurnTrace::default();
        let began = Instant::now();
        let after = |ms| began + Duration::from_millis(ms);
        for (is_open, ms) in [(true, 0), (true, 1), (false, 2), (false, 3)] {
            trace.note("a", is_open, after(ms));
        }
        assert_eq!(trace.times("a"), Some((began, Some(after(2)))));
        trace.note("a", true, after(4));
        assert_eq!(trace.times("a"), Some((began, None)));
        assert_eq!(trace.times("b"), None);
    }
}
