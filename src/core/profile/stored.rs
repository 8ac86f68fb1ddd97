//! Chunks that were stored, as a profile has them: what [`Profile::adapt`] does to chunks that are made.

use super::Profile;
use crate::proto::json::value;
use serde_json::{Map, Value, json};

impl Profile {
    /// Hands the JSON of the chunks that stand for one of which there is the JSON to `emit`, in order.
    pub fn adapt_json(self, chunk: &[u8], mut emit: impl FnMut(&[u8])) {
        if self == Self::V7 {
            emit(chunk);
            return;
        }
        let Ok(raw) = serde_json::from_slice(chunk) else {
            return;
        };
        self.adapt_stored(value(raw), |chunk| emit(chunk.to_string().as_bytes()));
    }

    /// Like [`Profile::adapt_stored`], for a client that reads the live stream next: in major 6 it also gets the
    /// requests that are open, since it is the one that answers them.
    pub fn adapt_replayed(
        self,
        mut chunk: Value,
        is_open: impl Fn(&str) -> bool,
        mut emit: impl FnMut(Value),
    ) {
        let open = self == Self::V6
            && chunk["type"] == "tool-approval-request"
            && chunk["approvalId"].as_str().is_some_and(is_open);
        match &mut chunk {
            Value::Object(request) if open => {
                request.remove("isAutomatic");
                emit(chunk);
            }
            _ => self.adapt_stored(chunk, emit),
        }
    }

    /// Hands the chunks that stand for a stored one to `emit`, in order; there may be none.
    ///
    /// The requests of major 6 are left out: nothing in a stored stream of that major says how they were answered.
    pub fn adapt_stored(self, chunk: Value, mut emit: impl FnMut(Value)) {
        if self == Self::V7 {
            emit(chunk);
            return;
        }
        let Value::Object(mut chunk) = chunk else {
            emit(chunk);
            return;
        };
        let kind = chunk
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "tool-approval-request" | "tool-approval-response" => return,
            "tool-output-denied" => {
                chunk.insert("type".into(), "tool-output-error".into());
                chunk.insert("errorText".into(), "Permission refused".into());
                chunk.insert("dynamic".into(), true.into());
                chunk.insert("providerExecuted".into(), true.into());
                emit(Value::Object(chunk));
                return;
            }
            "reasoning-file" => {
                chunk.insert("type".into(), "file".into());
            }
            "abort" if self == Self::V5 => {
                chunk.remove("reason");
            }
            _ => {}
        }
        let kind = chunk
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let state = match kind {
            _ if self != Self::V5 => None,
            "tool-input-start" | "tool-input-available" => {
                let title = chunk.remove("title");
                state(&mut chunk).map(|mut state| {
                    state.extend(title.map(|title| ("title".to_owned(), title)));
                    state
                })
            }
            "tool-output-available" | "tool-output-error" | "tool-input-error" => state(&mut chunk),
            _ => None,
        };
        let id = chunk.get("toolCallId").cloned();
        emit(Value::Object(chunk));
        if let (Some(id), Some(state)) = (id, state) {
            emit(json!({ "type": "data-tool-call", "id": id, "data": state }));
        }
    }
}

/// The state of a call, taken out of its chunk.
fn state(chunk: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let Some(Value::Object(named)) = chunk.remove("toolMetadata") else {
        return None;
    };
    match named.into_iter().next() {
        Some((_, Value::Object(state))) => Some(state),
        _ => None,
    }
}
