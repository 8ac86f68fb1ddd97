//! Folding of deltas, which are most chunks of a message, without building their JSON values.

use super::Fold;
use serde::Deserialize;
use std::borrow::Cow;

/// Fields of a delta that has no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeltaChunk<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    delta: Cow<'a, str>,
}

impl Fold {
    /// Applies a delta of a text. Returns `false` if the chunk has to be passed to [`Fold::push`]: it is of another
    /// kind, or has more fields.
    pub fn push_delta(&mut self, chunk: &[u8]) -> bool {
        let is_delta = [
            &br#"{"type":"text-delta","#[..],
            br#"{"type":"reasoning-delta","#,
        ]
        .iter()
        .any(|beginning| chunk.starts_with(beginning));
        if !is_delta {
            return false;
        }
        let Ok(delta) = serde_json::from_slice::<DeltaChunk<'_>>(chunk) else {
            return false;
        };
        let part = if delta.kind == "text-delta" {
            "text"
        } else {
            "reasoning"
        };
        self.append(part, &delta.id, &delta.delta);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn delta_is_applied_without_its_value_only_if_it_has_no_other_fields() {
        let cases = [
            (
                r#"{"type":"text-delta","id":"b","delta":"a\n\u00e4"}"#,
                true,
            ),
            (r#"{"type":"text-delta","delta":"x","id":"b"}"#, true),
            (r#"{"type":"text-delta","id":"other","delta":"x"}"#, true),
            (
                r#"{"type":"reasoning-delta","id":"b","delta":"think"}"#,
                true,
            ),
            (
                r#"{"type":"text-delta","id":"b","delta":"x","providerMetadata":{"acp":{}}}"#,
                false,
            ),
            (
                r#"{"type":"text-delta","id":"b","delta":"x","delta":"y"}"#,
                false,
            ),
            (r#"{"type":"text-delta","id":1,"delta":"x"}"#, false),
            (r#"{"type":"text-delta","id":"b"}"#, false),
            (r#"{"type":"text-delta","id":"b","delta":"\ud800"}"#, false),
            (r#"{"type":"text-end","id":"b"}"#, false),
            (r#"{"id":"b","type":"text-delta","delta":"x"}"#, false),
            ("{", false),
        ];
        let begin = [
            json!({"type": "text-start", "id": "b"}),
            json!({"type": "reasoning-start", "id": "b"}),
        ];
        for (chunk, is_applied) in cases {
            let (mut fast, mut slow) = (Fold::default(), Fold::default());
            for chunk in &begin {
                fast.push(chunk);
                slow.push(chunk);
            }
            assert_eq!(fast.push_delta(chunk.as_bytes()), is_applied, "{chunk}");
            if is_applied {
                slow.push(&serde_json::from_str(chunk).unwrap());
            }
            assert_eq!(fast.message(), slow.message(), "{chunk}");
        }
    }
}
