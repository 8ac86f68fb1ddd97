//! Blocks of text that a stream has begun: a stream that continues a message must begin them again.

use acpipe_protocol::chunk::ChunkFacts;
use serde_json::json;
use std::collections::BTreeSet;

/// Blocks of text and of thoughts that this stream has begun and not ended.
#[derive(Debug, Default)]
pub struct OpenBlocks(BTreeSet<String>);

/// Output of a stream for one chunk.
#[derive(Debug, PartialEq, Eq)]
pub enum Passage {
    /// The chunk.
    Alone,
    /// This chunk first, then the chunk.
    After(String),
    /// Nothing.
    Dropped,
}

impl OpenBlocks {
    /// Records a chunk. A delta of a block that this stream has not begun needs a start, because readers forget open
    /// blocks between two streams; the end of such a block would be an error.
    pub fn pass(&mut self, chunk: &ChunkFacts) -> Passage {
        match chunk {
            ChunkFacts::BlockStart(id) => {
                self.0.insert(id.to_string());
            }
            ChunkFacts::BlockDelta(word, id) if !self.0.contains(&**id) => {
                self.0.insert(id.to_string());
                let start = json!({ "type": format!("{word}-start"), "id": id });
                return Passage::After(start.to_string());
            }
            ChunkFacts::BlockEnd(id) if !self.0.remove(&**id) => return Passage::Dropped,
            _ => {}
        }
        Passage::Alone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_of_an_earlier_stream_is_begun_again() {
        let mut blocks = OpenBlocks::default();
        let mut pass = |chunk: &str| blocks.pass(&ChunkFacts::read(chunk));
        assert_eq!(pass(r#"{"type":"text-end","id":"old"}"#), Passage::Dropped);
        let delta = r#"{"type":"text-delta","id":"m.1","delta":"x"}"#;
        let start = r#"{"id":"m.1","type":"text-start"}"#;
        let Passage::After(first) = pass(delta) else {
            panic!("the block was not begun");
        };
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(value(&first), value(start));
        assert_eq!(pass(delta), Passage::Alone);
        assert_eq!(pass(r#"{"type":"text-end","id":"m.1"}"#), Passage::Alone);
        assert_eq!(
            pass(r#"{"type":"data-plan","id":"m.1","data":1}"#),
            Passage::Alone
        );
    }
}
