//! The chunks with which turns begin and end.

use acpipe_core::session::end_note;
use acpipe_json::{raw_object, text};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

raw_object! {
    /// Members of the chunks with which turns begin and end.
    struct StepMembers {
        kind = "type",
        error_text = "errorText",
        finish_reason = "finishReason",
        metadata = "messageMetadata",
    }
}

/// Effect of a chunk on its turn.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnStep {
    /// The turn begins.
    Begins,
    /// The turn ends; `note` is for the user.
    Ends {
        /// Reason of an early end.
        note: Option<String>,
    },
    /// The agent reports the turn as cancelled, without a request for it; the end follows.
    CancelledByAgent,
    /// The turn ends as cancelled.
    Aborts,
    /// The turn continues.
    Continues,
}

impl TurnStep {
    /// Reads the effect of a chunk.
    pub fn of(chunk: &[u8]) -> Self {
        let members: StepMembers<'_> = serde_json::from_slice(chunk).unwrap_or_default();
        let end = |note: Option<String>| Self::Ends { note };
        match text(members.kind).as_deref() {
            Some("start") => Self::Begins,
            Some("finish") => {
                let reported = ReportedEnd::of(members.metadata);
                end(match reported.stop_reason.as_deref() {
                    Some(reason) => end_note(reason, reported.cancel_requested),
                    None => note_of(text(members.finish_reason).as_deref()),
                })
            }
            Some("message-metadata") => {
                let reported = ReportedEnd::of(members.metadata);
                let is_cancelled = reported.stop_reason.as_deref() == Some("cancelled");
                if is_cancelled && !reported.cancel_requested {
                    Self::CancelledByAgent
                } else {
                    Self::Continues
                }
            }
            Some("abort") => Self::Aborts,
            Some("error") => end(text(members.error_text).map(String::from)),
            _ => Self::Continues,
        }
    }
}

/// Returns the note of an end whose stop reason is not known.
fn note_of(finish_reason: Option<&str>) -> Option<String> {
    match finish_reason? {
        "content-filter" => end_note("refusal", false),
        "length" => end_note("max_tokens", false),
        _ => None,
    }
}

/// Facts of the end of a turn, as the metadata of its message has them under the name of the dialect.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ReportedEnd {
    stop_reason: Option<String>,
    cancel_requested: bool,
}

impl ReportedEnd {
    fn of(metadata: Option<&RawValue>) -> Self {
        let dialects = metadata.map(RawValue::get).unwrap_or_default();
        let dialects: BTreeMap<String, Value> = serde_json::from_str(dialects).unwrap_or_default();
        let ends = dialects.into_values();
        let mut ends = ends.filter_map(|facts| serde_json::from_value::<Self>(facts).ok());
        ends.find(|end| end.stop_reason.is_some())
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_chunks_end_the_turn() {
        let ends = |note: Option<&str>| TurnStep::Ends {
            note: note.map(str::to_owned),
        };
        let table = [
            (r#"{"type":"start","messageId":"m"}"#, TurnStep::Begins),
            (r#"{"type":"finish","finishReason":"stop"}"#, ends(None)),
            (
                r#"{"type":"finish","finishReason":"content-filter"}"#,
                ends(Some("the agent refused to answer")),
            ),
            (
                r#"{"type":"error","errorText":"it \"failed\""}"#,
                ends(Some("it \"failed\"")),
            ),
            (
                r#"{"type":"finish","finishReason":"length","messageMetadata":{"acp":{"stopReason":"max_tokens"}}}"#,
                ends(Some(
                    "the answer is incomplete: the agent reached its token limit",
                )),
            ),
            (
                r#"{"type":"finish","finishReason":"other","messageMetadata":{"acp":{"stopReason":"tired","_meta":1}}}"#,
                ends(Some("the agent stopped: tired")),
            ),
            (
                r#"{"type":"message-metadata","messageMetadata":{"acp":{"stopReason":"cancelled"}}}"#,
                TurnStep::CancelledByAgent,
            ),
            (
                r#"{"type":"message-metadata","messageMetadata":{"acp":{"stopReason":"cancelled","cancelRequested":true}}}"#,
                TurnStep::Continues,
            ),
            (r#"{"type":"abort"}"#, TurnStep::Aborts),
            (
                r#"{"type":"text-delta","delta":"finish"}"#,
                TurnStep::Continues,
            ),
            ("{", TurnStep::Continues),
        ];
        for (chunk, step) in table {
            assert_eq!(TurnStep::of(chunk.as_bytes()), step, "{chunk}");
        }
    }
}
