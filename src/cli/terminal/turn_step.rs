//! The chunks with which turns begin and end.

use acpipe_core::session::end_note;
use acpipe_json::{raw_object, text};

raw_object! {
    /// Members of the chunks with which turns begin and end.
    struct StepMembers {
        kind = "type",
        error_text = "errorText",
        finish_reason = "finishReason",
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
            Some("finish") => end(match text(members.finish_reason).as_deref() {
                Some("content-filter") => end_note("refusal", false),
                Some("length") => end_note("max_tokens", false),
                _ => None,
            }),
            Some("abort") => end(end_note("cancelled", true)),
            Some("error") => end(text(members.error_text).map(String::from)),
            _ => Self::Continues,
        }
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
            (r#"{"type":"abort"}"#, ends(Some("the turn was cancelled"))),
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
