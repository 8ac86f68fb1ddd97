//! Finds the places of sentinels in chunks and messages.

use crate::plant::{ANYTHING, PlantedValue, UNKNOWN};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// `<type of the chunk or part>`, and the path of keys below it.
pub type SessionSetup = (String, String);

/// Places of every planted value.
#[derive(Debug, Default)]
pub struct Index(BTreeMap<String, BTreeSet<SessionSetup>>);

impl Index {
    /// Indexes the chunks of a turn.
    pub fn of_chunks(chunks: &[Value]) -> Self {
        let mut index = Self::default();
        for chunk in chunks {
            let kind = chunk["type"].as_str().unwrap_or_default();
            index.add(chunk, kind, &mut String::new());
        }
        index
    }

    /// Indexes a message: its parts, and `metadata`.
    pub fn of_message(message: &Value) -> Self {
        let parts = message["parts"].as_array();
        let mut index = Self::of_chunks(parts.map_or(&[], Vec::as_slice));
        index.add(&message["metadata"], "metadata", &mut String::new());
        index
    }

    pub fn places(&self, what: &PlantedValue) -> BTreeSet<SessionSetup> {
        let key = match what {
            PlantedValue::Text(text) => text.clone(),
            PlantedValue::Number(number) => number.to_string(),
            PlantedValue::Choice(word) => word.to_string(),
        };
        self.0.get(&key).cloned().unwrap_or_default()
    }

    fn add(&mut self, value: &Value, kind: &str, path: &mut String) {
        match value {
            Value::Object(object) => {
                for (key, value) in object {
                    let len = path.len();
                    // The key of a sentinel that replaces free JSON is not part of the path.
                    if key != ANYTHING {
                        path.push_str(if len > 0 { "." } else { "" });
                        path.push_str(if key == UNKNOWN { "*" } else { key });
                    }
                    self.add(value, kind, path);
                    path.truncate(len);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.add(item, kind, path);
                }
            }
            scalar => {
                for key in keys(scalar) {
                    let place = (kind.to_owned(), path.clone());
                    self.0.entry(key).or_default().insert(place);
                }
            }
        }
    }
}

/// Returns the sentinels in a string, which may be part of a longer one; without sentinels the string or
/// number itself.
fn keys(scalar: &Value) -> Vec<String> {
    let text = scalar.as_str().unwrap_or_default();
    let sentinels = text
        .match_indices("sentinel")
        .filter_map(|(at, _)| text.get(at..at + 16));
    let mut keys: Vec<String> = sentinels.map(str::to_owned).collect();
    if keys.is_empty() {
        keys.push(match scalar.as_f64() {
            Some(number) => number.to_string(),
            None => scalar.to_string(),
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sentinels_are_found_at_their_place() {
        let index = Index::of_message(&json!({
            "parts": [
                { "type": "file", "url": "data:sentinel00000001;base64,sentinel00000002" },
                { "type": "data-x", "data": { "list": [{ "n": 7 }, { "n": 8 }], "yes": true } },
            ],
            "metadata": { "acp": { "n": 8.0, "word": "pending" } },
        }));
        let cases = [
            (PlantedValue::Text("sentinel00000002".into()), "file.url"),
            (PlantedValue::Text("sentinel00000003".into()), ""),
            (PlantedValue::Number(7.0), "data-x.data.list.n"),
            (
                PlantedValue::Number(8.0),
                "data-x.data.list.n metadata.acp.n",
            ),
            (PlantedValue::Choice(true.into()), "data-x.data.yes"),
            (PlantedValue::Choice("pending".into()), "metadata.acp.word"),
            (PlantedValue::Choice("pend".into()), ""),
        ];
        for (what, want) in cases {
            let places = index.places(&what).into_iter();
            let places: Vec<String> = places
                .map(|(kind, path)| format!("{kind}.{path}"))
                .collect();
            assert_eq!(places.join(" "), want, "{what:?}");
        }
    }
}
