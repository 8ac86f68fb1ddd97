//! Compactions of the agent's context: what was told of each, shown as `data-compaction`.

use super::ChunkSink;
use crate::core::event::Original;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw, value};
use serde_json::{Map, Value};

/// The compactions of a turn: each with all that was told of it.
#[derive(Debug, Default)]
pub struct Compactions(Vec<(String, Map<String, Value>)>);

impl Compactions {
    /// Adds what is told: fields replace those of before, `content` is a piece of the summary.
    pub fn update(&mut self, id: &str, original: Original<'_>, sink: &mut impl ChunkSink) {
        let known = self.0.iter().position(|(known, _)| known == id);
        let at = known.unwrap_or_else(|| {
            self.0.push((id.to_owned(), Map::new()));
            self.0.len() - 1
        });
        let (_, told) = &mut self.0[at];
        for (name, said) in original.fields().iter() {
            if name == "content" {
                let summary = told
                    .entry("summary")
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(pieces) = summary {
                    pieces.push(value(said));
                    continue;
                }
            }
            told.insert(name.to_owned(), value(said));
        }
        let data = to_raw(told);
        sink.chunk(&Chunk::DataCompaction {
            id,
            data: Raw(&data),
        });
    }
}
