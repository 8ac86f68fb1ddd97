//! Adaptation of stored chunks to a profile, the counterpart of [`Profile::adapt`] for chunks in JSON.

use super::{Profile, discobot};
use acpipe_json::value;
use serde_json::{Map, Value, json};

impl Profile {
    /// Passes the substitutes of a chunk in JSON text to `emit`, in order.
    pub fn adapt_json(self, chunk: &[u8], emit: impl FnMut(&[u8])) {
        self.adapt_missed(chunk, |_| false, emit);
    }

    /// Like [`Profile::adapt_json`], for a client that receives the live stream next: see [`Profile::adapt_replayed`].
    pub fn adapt_missed(
        self,
        chunk: &[u8],
        is_open: impl Fn(&str) -> bool,
        mut emit: impl FnMut(&[u8]),
    ) {
        if self == Self::V7 {
            emit(chunk);
            return;
        }
        let Ok(raw) = serde_json::from_slice(chunk) else {
            return;
        };
        self.adapt_replayed(value(raw), is_open, |chunk| {
            emit(chunk.to_string().as_bytes());
        });
    }

    /// Like [`Profile::adapt_stored`], for a client that receives the live stream next. In major 6 it also
    /// gets the open requests, since it is the client that answers them.
    pub fn adapt_replayed(
        self,
        mut chunk: Value,
        is_open: impl Fn(&str) -> bool,
        mut emit: impl FnMut(Value),
    ) {
        let open = matches!(self, Self::V6 | Self::Discobot)
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

    /// Passes the substitutes of a stored chunk to `emit`, in order. There may be none.
    ///
    /// Major 6 gets no permission requests, since its chunks cannot express how they were answered.
    pub fn adapt_stored(self, chunk: Value, mut emit: impl FnMut(Value)) {
        match self {
            Self::V7 => emit(chunk),
            Self::V6 | Self::V5 => self.adapt_older(chunk, &mut emit),
            Self::Discobot => {
                Self::V6.adapt_older(chunk, &mut |chunk| discobot::adapt(chunk, &mut emit));
            }
        }
    }

    fn adapt_older(self, chunk: Value, emit: &mut dyn FnMut(Value)) {
        let Value::Object(mut chunk) = chunk else {
            emit(chunk);
            return;
        };
        let kind = chunk
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "tool-approval-request" | "tool-approval-response" | "reset-step" => return,
            "tool-output-denied" => {
                chunk.insert("type".into(), "tool-output-error".into());
                chunk.insert("errorText".into(), "Permission refused".into());
                chunk.insert("dynamic".into(), true.into());
                chunk.insert("providerExecuted".into(), true.into());
                emit(Value::Object(chunk));
                return;
            }
            // Chunks of endpoints that stream chunks of `ai` 7 themselves.
            "custom" | "steering-message" => {
                emit(as_data(chunk));
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

/// Converts a chunk of a type that older majors reject to a data part of its name.
fn as_data(mut chunk: Map<String, Value>) -> Value {
    let kind = chunk.remove("type");
    let kind = kind.as_ref().and_then(Value::as_str).unwrap_or_default();
    let mut part = json!({ "type": format!("data-{kind}") });
    if let Some(id) = chunk.remove("id") {
        part["id"] = id;
    }
    part["data"] = Value::Object(chunk);
    part
}

/// Removes and returns the tool state in a chunk.
fn state(chunk: &mut Map<String, Value>) -> Option<Map<String, Value>> {
    let Some(Value::Object(named)) = chunk.remove("toolMetadata") else {
        return None;
    };
    match named.into_iter().next() {
        Some((_, Value::Object(state))) => Some(state),
        _ => None,
    }
}
