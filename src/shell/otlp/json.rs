//! Pieces of OTLP in JSON.

use serde_json::{Value, json};

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
