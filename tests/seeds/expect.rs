//! Compares chunks with the expectation of a case.

use serde_json::Value;
use std::collections::HashMap;

/// Kinds of chunks that every turn has: compared only if a case names them.
const FRAME: [&str; 4] = ["start", "start-step", "finish-step", "finish"];

/// Returns the kinds of [`FRAME`] that a case names.
pub fn named<'a>(lists: impl IntoIterator<Item = &'a [Value]>) -> Vec<&'static str> {
    let kinds: Vec<&str> = lists.into_iter().flatten().map(kind).collect();
    FRAME
        .into_iter()
        .filter(|frame| kinds.contains(frame))
        .collect()
}

/// Compares `chunks` with those expected, except the kinds of [`FRAME`] that are not `named`. Of each chunk
/// only the fields that the expectation holds are compared. In an expectation `null` stands for an absent
/// field, `<null>` for `null`, `#…` for an id (the same name always stands for the same id), and `<msg>` for
/// the id of the message.
pub fn compare(chunks: &[Value], expected: &[Value], named: &[&str]) -> Result<(), String> {
    let message = chunks[0]["messageId"].as_str().unwrap_or_default();
    let counts = |chunk: &&Value| !FRAME.contains(&kind(chunk)) || named.contains(&kind(chunk));
    let chunks: Vec<&Value> = chunks.iter().filter(counts).collect();
    let mut ids = Ids {
        message: message.to_owned(),
        words: HashMap::new(),
    };
    for (n, (chunk, wanted)) in chunks.iter().zip(expected).enumerate() {
        if !ids.within(wanted, Some(chunk)) {
            return Err(format!("chunk {n}:\n    have {chunk}\n    want {wanted}"));
        }
    }
    if chunks.len() == expected.len() {
        return Ok(());
    }
    let have: Vec<String> = chunks.iter().map(ToString::to_string).collect();
    Err(format!(
        "{} chunks instead of {}:\n    {}",
        chunks.len(),
        expected.len(),
        have.join("\n    ")
    ))
}

fn kind(chunk: &Value) -> &str {
    chunk["type"].as_str().unwrap_or_default()
}

struct Ids {
    message: String,
    /// Names of ids → the ids.
    words: HashMap<String, String>,
}

impl Ids {
    fn within(&mut self, wanted: &Value, have: Option<&Value>) -> bool {
        match (wanted, have) {
            (Value::Null, have) => have.is_none(),
            (_, None) => false,
            (Value::String(wanted), Some(Value::Null)) => wanted == "<null>",
            (Value::String(wanted), Some(Value::String(have))) if wanted.starts_with('#') => {
                self.is_id(wanted, have)
            }
            (Value::String(wanted), Some(Value::String(have))) => {
                wanted.replace("<msg>", &self.message) == *have
            }
            (Value::Object(wanted), Some(Value::Object(have))) => wanted
                .iter()
                .all(|(name, wanted)| self.within(wanted, have.get(name))),
            (Value::Array(wanted), Some(Value::Array(have))) => {
                wanted.len() == have.len()
                    && wanted
                        .iter()
                        .zip(have)
                        .all(|(wanted, have)| self.within(wanted, Some(have)))
            }
            (wanted, Some(have)) => wanted == have,
        }
    }

    /// Returns `true` if the name stands for this id: each name has one id, and different names have
    /// different ids.
    fn is_id(&mut self, word: &str, id: &str) -> bool {
        match self.words.get(word) {
            Some(known) => known == id,
            None if self.words.values().any(|known| known == id) => false,
            None => {
                self.words.insert(word.to_owned(), id.to_owned());
                true
            }
        }
    }
}
