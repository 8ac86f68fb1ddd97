//! Fields of chunks that AG-UI events have no place for.

use acpipe_json::{Members, to_raw};
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;

/// Name of acpipe's own member of an event's metadata.
const OWN: &str = "acpipe";

/// Fields that are `true` in all chunks of tools of agents.
const TRUE: &[&str] = &["dynamic", "providerExecuted"];

/// Returns the metadata of a chunk's event: the members of the chunk's field `base`, and under `acpipe` all other
/// fields that are not in `used`. `None` if there are none.
pub(super) fn metadata(chunk: &UiChunk<'_>, base: &str, used: &[&str]) -> Option<Box<RawValue>> {
    metadata_with(chunk, base, used, None)
}

/// Like [`metadata`], with a flag of acpipe.
pub(super) fn metadata_with(
    chunk: &UiChunk<'_>,
    base: &str,
    used: &[&str],
    flag: Option<&'static str>,
) -> Option<Box<RawValue>> {
    let mut own = Members::default();
    let mut all = Members::default();
    let fields = chunk.without(&["type"]).without(used);
    for (name, value) in fields.iter() {
        if name == base && is_object(value) {
            all = Members::of(value);
        } else if !(TRUE.contains(&name) && value.get() == "true") {
            own.set(name, value);
        }
    }
    if let Some(flag) = flag {
        own.set_owned(flag, &true);
    }
    if !own.is_empty() {
        all.set_owned(OWN, &own);
    }
    (!all.is_empty()).then(|| to_raw(&all))
}

pub(super) fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}
