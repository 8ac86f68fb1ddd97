//! A replayed history beside the one that is stored: what of it is new.

use crate::core::error::Error;
use serde_json::Value;

/// The replayed messages that follow the stored ones: where these are a beginning of the replay, message for
/// message by role and text. Where they are not, nobody knows what follows what, and nothing does.
///
/// # Errors
/// A stored message cannot be read.
pub fn further(
    stored: impl IntoIterator<Item = Result<Value, Error>>,
    replayed: &[Value],
) -> Result<&[Value], Error> {
    let mut rest = replayed;
    for message in stored {
        let message = message?;
        if is_silent(&message) {
            continue;
        }
        let Some(at) = rest.iter().position(|other| !is_silent(other)) else {
            return Ok(&[]);
        };
        if !is_same(&message, &rest[at]) {
            return Ok(&[]);
        }
        rest = &rest[at + 1..];
    }
    Ok(rest)
}

/// Whether two messages say the same. Ids differ in a replay, and so does what agents leave out of it.
fn is_same(one: &Value, other: &Value) -> bool {
    one["role"] == other["role"] && text(one).trim() == text(other).trim()
}

fn text(message: &Value) -> String {
    let texts = parts(message).filter(|part| part["type"] == "text");
    texts.filter_map(|part| part["text"].as_str()).collect()
}

/// Whether nothing was said in it: a turn that failed, say, of which an agent may know nothing.
fn is_silent(message: &Value) -> bool {
    let kinds = parts(message).map(|part| part["type"].as_str().unwrap_or_default());
    let mut said = kinds.filter(|kind| *kind != "step-start" && !kind.starts_with("data-"));
    said.next().is_none()
}

fn parts(message: &Value) -> impl Iterator<Item = &Value> {
    message["parts"].as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A message of the user (`>text`), of the agent (`text`), with a tool (`[text`), or in which nothing was
    /// said (empty).
    fn message(told: &str) -> Value {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let (role, parts) = match told.split_at_checked(1) {
            Some((">", said)) => ("user", vec![text(said)]),
            Some(("[", said)) => (
                "assistant",
                vec![
                    json!({ "type": "dynamic-tool", "toolCallId": "t" }),
                    text(said),
                ],
            ),
            Some(_) => (
                "assistant",
                vec![json!({ "type": "step-start" }), text(told)],
            ),
            None => (
                "assistant",
                vec![json!({ "type": "step-start" }), json!({ "type": "data-x" })],
            ),
        };
        json!({ "role": role, "parts": parts })
    }

    #[test]
    fn what_follows_the_stored_messages_is_further() {
        let long = [">a", "b", ">c", "d"];
        let cases: &[(&[&str], &[&str], usize)] = &[
            (&[], &long, 4),
            (&[">a", "b"], &long, 2),
            (&[">a"], &long, 3),
            (&long, &long, 0),
            // The agent knows less than is stored, or nothing.
            (&long, &[">a", "b"], 0),
            (&[">a", "b"], &[], 0),
            (&[], &[], 0),
            // Another history: another text, another role, another beginning.
            (&[">a", "B"], &long, 0),
            (&[">a", ">b"], &long, 0),
            (&["b"], &long, 0),
            (&[">c", "d"], &long, 0),
            // A turn in which nothing was said, on either side.
            (&[">a", "", "b"], &long, 2),
            (&[">a", "b", ""], &long, 2),
            (&[">a", "b"], &[">a", "", "b", ">c"], 1),
            // Blanks at the ends, and where tools stand, make no difference; a tool alone does.
            (&[">a ", " b\n"], &long, 2),
            (&[">a", "[b"], &long, 2),
            (&[">a", "[", "b"], &long, 0),
        ];
        for (stored, replayed, want) in cases {
            let all: Vec<Value> = replayed.iter().map(|told| message(told)).collect();
            let known = stored.iter().map(|told| Ok(message(told)));
            let rest = further(known, &all).unwrap();
            assert_eq!(rest.len(), *want, "{stored:?} {replayed:?}");
            assert_eq!(rest, &all[all.len() - want..], "{stored:?} {replayed:?}");
        }
    }
}
