//! Deltas: pieces of text of an open block, which are written without serializing a chunk for each.

use acpipe_json::{Raw, write_string};
use acpipe_model::event::{MessageRole, TextRun};
use acpipe_protocol::chunk::Chunk;
use serde_json::value::RawValue;

/// Consecutive deltas of one block.
#[derive(Debug, Clone, Copy)]
pub struct Deltas<'a> {
    /// Kind of the block: reasoning, or text of the answer.
    pub role: MessageRole,
    pub id: &'a str,
    pub texts: TextRun<'a>,
}

#[derive(Debug, Clone, Copy)]
pub struct TextDelta<'a> {
    /// Kind of the block: reasoning, or text of the answer.
    pub role: MessageRole,
    pub id: &'a str,
    /// The text as a JSON string.
    pub text: &'a [u8],
}

impl<'a> Deltas<'a> {
    pub fn iter(self) -> impl Iterator<Item = TextDelta<'a>> {
        let Self { role, id, texts } = self;
        texts.texts().map(move |text| TextDelta { role, id, text })
    }

    /// Returns the JSON of each delta up to its text. [`Deltas::END`] follows the text.
    pub fn begin(&self) -> Vec<u8> {
        let kind: &[u8] = match self.role {
            MessageRole::Thought => br#"{"type":"reasoning-delta","id":"#,
            MessageRole::Answer | MessageRole::User => br#"{"type":"text-delta","id":"#,
        };
        let mut begin = Vec::with_capacity(kind.len() + self.id.len() + 12);
        begin.extend_from_slice(kind);
        write_string(&mut begin, self.id);
        begin.extend_from_slice(br#","delta":"#);
        begin
    }

    /// JSON of each delta after its text.
    pub const END: &'static [u8] = b"}";
}

impl TextDelta<'_> {
    pub fn with_chunk(&self, take: impl FnOnce(&Chunk<'_>)) {
        // Every text was checked to be a JSON string.
        let text = serde_json::from_slice(self.text).unwrap_or(RawValue::NULL);
        take(&delta_chunk(self.role, self.id, Raw(text), None));
    }
}

pub fn delta_chunk<'a>(
    role: MessageRole,
    id: &'a str,
    delta: Raw<'a>,
    provider_metadata: Option<Raw<'a>>,
) -> Chunk<'a> {
    match role {
        MessageRole::Thought => Chunk::ReasoningDelta {
            id,
            delta,
            provider_metadata,
        },
        MessageRole::Answer | MessageRole::User => Chunk::TextDelta {
            id,
            delta,
            provider_metadata,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_json::JsonStr;

    #[test]
    fn json_of_a_delta_is_that_of_its_chunk() {
        let lines = br#""a" "\n\"\u00e9""#;
        let all = RawValue::from_string(r#""a\n\"\u00e9""#.to_owned()).unwrap();
        let texts = TextRun {
            all: JsonStr::new(&all).unwrap(),
            lines,
            places: &[0..3, 4..lines.len()],
        };
        for role in [MessageRole::Answer, MessageRole::Thought] {
            let id = "a\"b.1";
            let deltas = Deltas { role, id, texts };
            let mut count = 0;
            for delta in deltas.iter() {
                let written = [&deltas.begin(), delta.text, Deltas::END].concat();
                let mut expected = Vec::new();
                delta.with_chunk(|chunk| chunk.write(&mut expected));
                assert_eq!(written, expected);
                count += 1;
            }
            assert_eq!(count, 2);
        }
    }
}
