//! What is told bit by bit of something with an id, a compaction or a message between sessions: each bit is
//! added to what is known, and all of it is shown.

use crate::core::event::Original;
use crate::proto::json::{to_raw, value};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// All that was told of things of one kind.
#[derive(Debug)]
pub struct Told {
    /// The field that holds the pieces of content.
    list: &'static str,
    things: Vec<(String, Map<String, Value>)>,
}

impl Told {
    pub fn new(list: &'static str) -> Self {
        Self {
            list,
            things: Vec::new(),
        }
    }

    /// Adds what is told and gives all of it: fields replace those of before, one piece of content is
    /// appended.
    pub fn add(&mut self, id: &str, original: Original<'_>) -> Box<RawValue> {
        let known = self.things.iter().position(|(known, _)| known == id);
        let at = known.unwrap_or_else(|| {
            self.things.push((id.to_owned(), Map::new()));
            self.things.len() - 1
        });
        let (_, told) = &mut self.things[at];
        for (name, said) in original.fields().iter() {
            let said = value(said);
            if name == "content" && said.is_object() {
                let list = told.entry(self.list).or_insert(Value::Null);
                match list {
                    Value::Array(pieces) => pieces.push(said),
                    other => *other = Value::Array(vec![said]),
                }
            } else {
                told.insert(name.to_owned(), said);
            }
        }
        to_raw(told)
    }
}
