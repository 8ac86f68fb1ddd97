//! Parsing of members of agents' responses, and of the texts of their errors.

use acpipe_json::rpc::RpcError;
use acpipe_json::text;
use acpipe_model::error::is_connection_failure;
use acpipe_model::printable::printable;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Parses a value of an agent; a value of the wrong type counts as absent.
pub fn read<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|r| serde_json::from_str(r.get()).ok())
        .unwrap_or_default()
}

/// Returns the text of a string; `None` for any other value.
pub fn owned(raw: Option<&RawValue>) -> Option<String> {
    text(raw).map(Cow::into_owned)
}

/// Returns the message of an agent's error together with the texts in `data`, which often contains the actual
/// reason.
pub fn error_text(e: &RpcError<'_>) -> String {
    acpipe_json::raw_object! {
        struct Data {
            error = "error", message = "message", details = "details", detail = "detail", reason = "reason",
        }
    }
    let data: Data<'_> = read(e.data);
    let nested: Data<'_> = read(data.error);
    let texts = [
        data.error,
        nested.message,
        data.message,
        data.details,
        data.detail,
        data.reason,
    ];
    let texts = texts.into_iter().map(text).chain([text(e.data)]);
    let mut said = printable(&e.message).into_owned();
    for more in texts.flatten() {
        let more = printable(more.trim());
        if !more.is_empty() && !said.contains(more.as_ref()) {
            said = format!("{said}: {more}");
        }
    }
    said
}

/// Returns `true` if the error means that the agent could not reach its model.
pub fn is_network(e: &RpcError<'_>) -> bool {
    is_connection_failure(e.raw.get())
}

/// Parses an id of acpipe; some agents return it as a string.
pub fn our_id(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}
