//! Chunks of the AI SDK that an agent sends itself.

use crate::core::chunk_sink::ChunkSink;
use crate::proto::chunk::Chunk;
use crate::proto::json::{JsonStr, Raw, non_null, text};
use crate::proto::ui_chunk::UiChunk;
use serde_json::value::RawValue;

/// Shows a chunk. Text is shown as acpipe's own, so that it is coalesced and printed like any other; all other
/// chunks stay as they are.
pub fn show(json: &RawValue, chunk: &UiChunk<'_>, sink: &mut impl ChunkSink) {
    let kind = chunk.type_name();
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
