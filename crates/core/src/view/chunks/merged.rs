//! Chunks of data that is reported in pieces under an id, such as a compaction or a message between sessions:
//! each piece is merged into the data so far, and the whole is shown.

use super::ChunkSink;
use crate::difference::added_value;
use crate::output_budget::OutputBudget;
use acpipe_json::{Raw, to_raw, value};
use acpipe_model::event::Original;
use acpipe_protocol::chunk::Chunk;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Merged data of one kind, by id.
#[derive(Debug)]
pub struct Merged {
    /// Field that collects the pieces of content.
    list: &'static str,
    items: Vec<MergedItem>,
}

#[derive(Debug)]
struct MergedItem {
    id: String,
    fields: Map<String, Value>,
    proportion: OutputBudget,
    /// Approximate size in bytes: what was last shown, plus what was reported since.
    size: usize,
    stale: bool,
}

impl Merged {
    pub fn new(list: &'static str) -> Self {
        Self {
            list,
            items: Vec::new(),
        }
    }

    /// Merges a report: fields replace earlier ones, and a piece of content is appended. Returns the merged
    /// data if it is to be shown now.
    pub fn add(&mut self, id: &str, original: Original<'_>) -> Option<Box<RawValue>> {
        let known = self.items.iter().position(|known| known.id == id);
        let at = known.unwrap_or_else(|| {
            self.items.push(MergedItem {
                id: id.to_owned(),
                fields: Map::new(),
                proportion: OutputBudget::default(),
                size: 0,
                stale: false,
            });
            self.items.len() - 1
        });
        let thing = &mut self.items[at];
        let mut added = 0;
        thing.stale = true;
        for (name, said) in original.fields().iter() {
            let (said, size) = (value(said), said.get().len());
            if name == "content" && said.is_object() {
                added += size;
                let list = thing.fields.entry(self.list).or_insert(Value::Null);
                match list {
                    Value::Array(pieces) => pieces.push(said),
                    other => *other = Value::Array(vec![said]),
                }
            } else {
                let known = thing.fields.get(name).unwrap_or(&Value::Null);
                added += added_value(known, &said);
                thing.fields.insert(name.to_owned(), said);
            }
        }
        thing.proportion.grow(original.line.len(), added);
        thing.size += added;
        let allowed = thing.proportion.allows(thing.size);
        allowed.then(|| thing.show())
    }

    /// Returns the data that was held back, with its ids.
    pub fn flush(&mut self) -> impl Iterator<Item = (&str, Box<RawValue>)> {
        let stale = self.items.iter_mut().filter(|thing| thing.stale);
        stale.map(|thing| {
            let all = thing.show();
            (thing.id.as_str(), all)
        })
    }
}

impl MergedItem {
    fn show(&mut self) -> Box<RawValue> {
        let all = to_raw(&self.fields);
        self.stale = false;
        self.size = all.get().len();
        self.proportion.show(self.size);
        all
    }
}

pub fn show_compaction(id: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataCompaction {
        id,
        data: Raw(data),
    });
}

pub fn show_session_message(id: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataSessionMessage {
        id,
        data: Raw(data),
    });
}
