//! Pieces of OTLP in JSON.

use acpipe_model::secret::Secrets;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Returns an attribute with a text.
pub fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Returns an attribute with a list of texts.
pub fn texts<'a>(key: &str, values: impl IntoIterator<Item = &'a str>) -> Value {
    let values = values
        .into_iter()
        .map(|value| json!({ "stringValue": value }));
    json!({ "key": key, "value": { "arrayValue": { "values": values.collect::<Value>() } } })
}

/// Returns an attribute with a number. Integers of 64 bits are strings in OTLP's JSON.
pub fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// Members with text that may come from an agent or a client. The others are ids, times and counts, in which a secret
/// of digits would be found by chance.
const TEXTS: [&str; 3] = ["message", "name", "stringValue"];

/// Replaces secrets in all texts of a request.
pub fn hide_in_texts(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| hide_in_texts(secrets, value)),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(text) if TEXTS.contains(&name.as_str()) => {
                        if let Cow::Owned(hidden) = secrets.hide(text) {
                            *text = hidden;
                        }
                    }
                    value => hide_in_texts(secrets, value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_secrets_are_hidden_in_texts_and_not_in_numbers() {
        let secrets = Secrets::default();
        secrets.add_values(["my-secret", "123456"]);
        let mut span = json!({
            "name": "tool my-secret",
            "startTimeUnixNano": "1712345600000",
            "attributes": [text("a", "my-secret"), texts("b", ["x 123456"]), number("c", 123_456)],
            "status": {"code": 2, "message": "my-secret"},
        });
        hide_in_texts(&secrets, &mut span);
        let expected = json!({
            "name": "tool [hidden]",
            "startTimeUnixNano": "1712345600000",
            "attributes": [text("a", "[hidden]"), texts("b", ["x [hidden]"]), number("c", 123_456)],
            "status": {"code": 2, "message": "[hidden]"},
        });
        assert_eq!(span, expected);
    }
}
