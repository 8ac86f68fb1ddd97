//! Chunks of the AI SDK that an agent sends itself.

use super::replaced::Replaced;
use crate::chunk_sink::ChunkSink;
use acpipe_json::{JsonStr, Raw, non_null, text};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;

/// Effect of a chunk on a state that the chunks of an agent replace.
enum StateChange {
    /// The chunk has the state with this key.
    Replaced(String),
    /// The chunk ends the states with this key.
    Ended(String),
    /// The chunk removes the parts of the step.
    Reset,
}

impl StateChange {
    fn of(kind: &str, chunk: &UiChunk<'_>) -> Option<Self> {
        let call = || Some(format!("call {}", text(chunk.tool_call_id)?));
        let is_preliminary = || chunk.preliminary.is_some_and(|it| it.get() == "true");
        match kind {
            "tool-output-available" if is_preliminary() => call().map(Self::Replaced),
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                call().map(Self::Ended)
            }
            "reset-step" => Some(Self::Reset),
            _ if kind.starts_with("data-") && !chunk.is_transient() => {
                let id = text(chunk.id)?;
                Some(Self::Replaced(format!("{kind} {id}")))
            }
            _ => None,
        }
    }
}

/// Shows a chunk, unless its state is held back. Text is shown as acpipe's own, so that it is coalesced and printed like any other; all other
/// chunks stay as they are.
pub fn show(
    json: &RawValue,
    chunk: &UiChunk<'_>,
    states: &mut Replaced,
    sink: &mut impl ChunkSink,
) {
    let kind = chunk.type_name();
    match StateChange::of(&kind, chunk) {
        Some(StateChange::Replaced(key)) if !states.take(&key, json) => return,
        Some(StateChange::Ended(key)) => states.end(&key),
        Some(StateChange::Reset) => *states = Replaced::default(),
        Some(StateChange::Replaced(_)) | None => {}
    }
    if kind == "start-step" {
        sink.chunk(&Chunk::FinishStep);
        sink.chunk(&Chunk::StartStep);
        return;
    }
    let id = text(chunk.id).unwrap_or_default();
    let id = id.as_ref();
    let provider_metadata = non_null(chunk.provider_metadata).map(Raw);
    let delta = chunk.delta.filter(|delta| JsonStr::new(delta).is_some());
    // A member that the type does not have would be lost.
    let is_plain = chunk.rest.is_empty() && chunk.id.is_some_and(|id| JsonStr::new(id).is_some());
    let own = match (kind.as_ref(), delta.map(Raw)) {
        _ if !is_plain => None,
        ("text-start", None) => Some(Chunk::TextStart {
            id,
            provider_metadata,
        }),
        ("text-delta", Some(delta)) => Some(Chunk::TextDelta {
            id,
            delta,
            provider_metadata,
        }),
        ("text-end", None) => Some(Chunk::TextEnd {
            id,
            provider_metadata,
        }),
        ("reasoning-start", None) => Some(Chunk::ReasoningStart {
            id,
            provider_metadata,
        }),
        ("reasoning-delta", Some(delta)) => Some(Chunk::ReasoningDelta {
            id,
            delta,
            provider_metadata,
        }),
        ("reasoning-end", None) => Some(Chunk::ReasoningEnd {
            id,
            provider_metadata,
        }),
        _ => None,
    };
    sink.chunk(own.as_ref().unwrap_or(&Chunk::Passed(Raw(json))));
}
