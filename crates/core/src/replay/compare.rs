//! Comparison of a replayed history with the stored one.

use super::ReplayedMessages;
use acpipe_model::error::Error;
use serde_json::Value;

/// Returns the position of the first replayed message that follows the stored ones. The stored messages must
/// be a prefix of the replay, compared by role and text. If they are not, the order is unknown, and no message
/// follows. Messages without content are skipped.
///
/// # Errors
/// A stored message cannot be read.
pub fn first_unstored(
    stored: impl IntoIterator<Item = Result<Value, Error>>,
    replayed: &ReplayedMessages,
) -> Result<usize, Error> {
    let mut others = replayed.values().enumerate();
    let mut first = 0;
    for message in stored {
        let message = message?;
        if has_no_content(&message) {
            continue;
        }
        match others.find(|(_, other)| !has_no_content(other)) {
            Some((at, other)) if is_same(&message, &other) => first = at + 1,
            _ => return Ok(replayed.len()),
        }
    }
    Ok(first)
}

/// Returns `true` if two messages have the same role and text. A replay has other ids, and agents leave parts
/// out.
fn is_same(one: &Value, other: &Value) -> bool {
    one["role"] == other["role"] && text(one).trim() == text(other).trim()
}

/// Returns the text of a message: all text parts.
pub(super) fn text(message: &Value) -> String {
    let texts = parts(message).filter(|part| part["type"] == "text");
    texts.filter_map(|part| part["text"].as_str()).collect()
}

/// Returns `true` if a message has no content, as after a failed turn of which an agent may know nothing.
fn has_no_content(message: &Value) -> bool {
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

    /// Builds a message of the user (`>text`), of the agent (`text`), with a tool (`[text`), or without
    /// content (empty).
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
    fn messages_after_the_stored_ones_are_new() {
        let long = [">a", "b", ">c", "d"];
        let cases: &[(&[&str], &[&str], usize)] = &[
            (&[], &long, 4),
            (&[">a", "b"], &long, 2),
            (&[">a"], &long, 3),
            (&long, &long, 0),
            // The agent knows fewer messages than are stored, or none.
            (&long, &[">a", "b"], 0),
            (&[">a", "b"], &[], 0),
            (&[], &[], 0),
            // A different history: different text, role or beginning.
            (&[">a", "B"], &long, 0),
            (&[">a", ">b"], &long, 0),
            (&["b"], &long, 0),
            (&[">c", "d"], &long, 0),
            // A turn without content, on either side.
            (&[">a", "", "b"], &long, 2),
            (&[">a", "b", ""], &long, 2),
            (&[">a", "b"], &[">a", "", "b", ">c"], 1),
            // White space at the ends and the positions of tools make no difference; a tool alone does.
            (&[">a ", " b\n"], &long, 2),
            (&[">a", "[b"], &long, 2),
            (&[">a", "[", "b"], &long, 0),
        ];
        for (stored, replayed, want) in cases {
            let mut all = ReplayedMessages::default();
            for told in *replayed {
                all.push(&message(told));
            }
            let known = stored.iter().map(|told| Ok(message(told)));
            let first = first_unstored(known, &all).unwrap();
            assert_eq!(all.len() - first, *want, "{stored:?} {replayed:?}");
        }
    }
}
