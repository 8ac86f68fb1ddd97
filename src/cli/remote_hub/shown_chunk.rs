//! The chunks of which more is shown than their JSON text.

use acpipe_json::{JsonStr, Raw, raw_object};
use acpipe_protocol::chunk::Chunk;
use serde_json::value::RawValue;

raw_object! {
    /// Members of the chunks that are shown.
    pub struct ChunkMembers {
        kind = "type",
        id = "id",
        delta = "delta",
        data = "data",
    }
}

/// Reads a chunk if its content is shown to people: text, files, plans, notices, decisions and receipts. A file is passed on as
/// JSON. Ids are read as long as they have no escapes, which is true for all ids of acpipe.
pub fn shown_chunk(json: &[u8]) -> Option<Chunk<'_>> {
    let members: ChunkMembers<'_> = serde_json::from_slice(json).ok()?;
    let id = members.id.map_or("", plain);
    let data = || Some(Raw(members.data?));
    Some(match plain(members.kind?) {
        "text-start" => Chunk::TextStart {
            id,
            provider_metadata: None,
        },
        "text-delta" => Chunk::TextDelta {
            id,
            delta: Raw(JsonStr::new(members.delta?)?.raw()),
            provider_metadata: None,
        },
        "text-end" => Chunk::TextEnd {
            id,
            provider_metadata: None,
        },
        "data-permission" => Chunk::DataPermission { id, data: data()? },
        "data-recovery" => Chunk::DataRecovery { data: data()? },
        "data-plan" => Chunk::DataPlan { id, data: data()? },
        "data-notice" => Chunk::DataNotice {
            data: data()?,
            transient: true,
        },
        "file" | "source-url" | "source-document" => {
            Chunk::Passed(Raw(serde_json::from_slice(json).ok()?))
        }
        _ => return None,
    })
}

/// Returns the text of a JSON string without escapes.
fn plain(raw: &RawValue) -> &str {
    raw.get().trim_matches('"')
}
