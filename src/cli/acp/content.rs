//! Content blocks of a prompt as parts of the stored message.

use acpipe_model::error::{Error, invalid};
use acpipe_protocol::wire::UserMessage;
use serde_json::{Map, Value, json};

/// Converts the blocks of a prompt to a message. Plain text becomes a text part; every other block stays as it is,
/// in a part `data-acp`. `other` are the other parameters of the prompt.
///
/// # Errors
/// A block is not an object.
pub fn message_of(blocks: Vec<Value>, other: &Map<String, Value>) -> Result<UserMessage, Error> {
    let part = |(n, block): (usize, Value)| match &block {
        Value::Object(members) => Ok(match plain_text(members) {
            Some(text) => json!({ "type": "text", "text": text }),
            None => json!({ "type": "data-acp", "data": block }),
        }),
        _ => Err(invalid(&format!("prompt[{n}]"), "must be a content block")),
    };
    let parts: Result<Vec<Value>, Error> = blocks.into_iter().enumerate().map(part).collect();
    let mut message = Map::new();
    if !other.is_empty() {
        message.insert("metadata".to_owned(), json!({ "acp": other }));
    }
    Ok(UserMessage {
        parts: parts?,
        other: message,
    })
}

/// Returns the text of a block that has nothing else.
fn plain_text(block: &Map<String, Value>) -> Option<&str> {
    let is_plain = block.len() == 2 && block.get("type")? == "text";
    block.get("text").filter(|_| is_plain)?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_becomes_a_text_part_and_other_blocks_stay_as_they_are() {
        let image = json!({ "type": "image", "data": "aWNvbg==", "mimeType": "image/png" });
        let marked = json!({ "type": "text", "text": "b", "annotations": { "priority": 1 } });
        let blocks = vec![
            json!({ "type": "text", "text": "a" }),
            marked.clone(),
            image.clone(),
        ];
        let other = Map::from_iter([("_meta".to_owned(), json!({ "x": 1 }))]);
        let message = message_of(blocks, &other).unwrap();
        assert_eq!(
            message.parts,
            [
                json!({ "type": "text", "text": "a" }),
                json!({ "type": "data-acp", "data": marked }),
                json!({ "type": "data-acp", "data": image }),
            ]
        );
        assert_eq!(
            message.other["metadata"],
            json!({ "acp": { "_meta": { "x": 1 } } })
        );
        assert!(message_of(vec![json!(7)], &Map::new()).is_err());
    }
}
