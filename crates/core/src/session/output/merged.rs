//! Merges stored chunks of the same text for a lagging client.

use crate::log::StoredChunk;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Size at which a merged chunk is not extended further, in bytes of JSON.
const LARGEST: usize = 32 * 1024;

/// A stored chunk, or several merged ones with the number of the last.
#[derive(Debug)]
pub(super) struct MergedChunk<'a> {
    pub turn: Option<&'a str>,
    pub seq: u64,
    pub json: Cow<'a, [u8]>,
}

/// A chunk that continues a text or the input of a tool, without further members.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Delta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, alias = "toolCallId")]
    id: &'a RawValue,
    #[serde(borrow, rename = "delta", alias = "inputTextDelta")]
    text: &'a RawValue,
}

impl<'a> MergedChunk<'a> {
    /// Merges adjacent chunks of the same text.
    pub fn of(chunks: &'a [StoredChunk]) -> Vec<Self> {
        let mut all: Vec<(Self, Option<Delta<'a>>)> = Vec::new();
        for stored in chunks {
            let delta = Delta::of(stored);
            let turn = stored.turn_id.as_deref();
            if let (Some((last, Some(before))), Some(delta)) = (all.last_mut(), &delta)
                && last.turn == turn
                && before.is_continued_by(delta)
                && last.json.len() < LARGEST
            {
                let json = last.json.to_mut();
                // The closing quote and brace are cut off.
                json.truncate(json.len() - 2);
                json.extend_from_slice(&delta.text.get().as_bytes()[1..]);
                json.push(b'}');
                last.seq = stored.seq;
                continue;
            }
            let json = Cow::Borrowed(stored.chunk.get().as_bytes());
            let seq = stored.seq;
            all.push((Self { turn, seq, json }, delta));
        }
        all.into_iter().map(|(merged, _)| merged).collect()
    }
}

impl<'a> Delta<'a> {
    /// Parses a chunk as a delta whose text is its last member.
    fn of(stored: &'a StoredChunk) -> Option<Self> {
        let json = stored.chunk.get();
        let delta: Self = serde_json::from_str(json).ok()?;
        let text = delta.text.get();
        let is_text = delta.kind.ends_with("-delta") && text.starts_with('"');
        let is_last = json
            .strip_suffix('}')
            .is_some_and(|json| json.ends_with(text));
        (is_text && is_last).then_some(delta)
    }

    fn is_continued_by(&self, next: &Self) -> bool {
        self.kind == next.kind && self.id.get() == next.id.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(seq: u64, turn: &str, chunk: &str) -> StoredChunk {
        StoredChunk {
            seq,
            turn_id: Some(turn.to_owned()),
            chunk: RawValue::from_string(chunk.to_owned()).unwrap(),
        }
    }

    fn merged(chunks: &[(&str, &str)]) -> Vec<(u64, String)> {
        let numbered = chunks.iter().zip(1..);
        let stored: Vec<StoredChunk> = numbered
            .map(|((turn, chunk), seq)| stored(seq, turn, chunk))
            .collect();
        let merged = MergedChunk::of(&stored).into_iter();
        merged
            .map(|merged| {
                (
                    merged.seq,
                    String::from_utf8(merged.json.into_owned()).unwrap(),
                )
            })
            .collect()
    }

    fn text(id: &str, delta: &str) -> String {
        format!(r#"{{"type":"text-delta","id":"{id}","delta":"{delta}"}}"#)
    }

    #[test]
    fn neighbours_of_one_text_are_one_chunk_with_the_last_number() {
        let (a, b, c) = (text("1", "a\\n"), text("1", "\\\"b"), text("1", ""));
        assert_eq!(
            merged(&[("t", &a), ("t", &b), ("t", &c)]),
            [(3, text("1", "a\\n\\\"b"))]
        );
    }

    #[test]
    fn input_of_a_tool_is_merged_too() {
        let input = |text: &str| {
            format!(r#"{{"type":"tool-input-delta","toolCallId":"c","inputTextDelta":"{text}"}}"#)
        };
        assert_eq!(
            merged(&[("t", &input("{")), ("t", &input("}"))]),
            [(2, input("{}"))]
        );
    }

    #[test]
    fn chunks_of_other_parts_kinds_turns_or_with_more_members_stay_apart() {
        let about = r#"{"type":"text-delta","id":"1","delta":"b","providerMetadata":{}}"#;
        let thought = text("1", "b").replace("text", "reasoning");
        for (turn, other) in [
            ("t", text("2", "b")),
            ("u", text("1", "b")),
            ("t", about.to_owned()),
            ("t", thought),
            ("t", r#"{"type":"text-end","id":"1"}"#.to_owned()),
        ] {
            let first = text("1", "a");
            let chunks = [("t", first.as_str()), (turn, other.as_str())];
            let expected = [(1, first.clone()), (2, other.clone())];
            assert_eq!(merged(&chunks), expected, "{other}");
        }
    }

    #[test]
    fn merged_chunk_does_not_grow_without_limit() {
        let large = text("1", &"x".repeat(LARGEST));
        let merged = merged(&[("t", &large), ("t", &large)]);
        assert_eq!(merged.len(), 2);
    }
}
