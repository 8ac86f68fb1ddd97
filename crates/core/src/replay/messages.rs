//! Messages of a replayed history, held as JSON text: parsed messages take several times as much memory.

use serde::Serialize;
use serde_json::Value;

/// Size from which no further message is added to a block, in bytes. Blocks are freed one by one while their
/// messages are stored.
const BLOCK: usize = 256 << 10;

/// Complete messages, in order.
#[derive(Debug, Default)]
pub struct ReplayedMessages {
    blocks: Vec<MessageRun>,
    len: usize,
}

#[derive(Debug, Default)]
struct MessageRun {
    json: Vec<u8>,
    /// End of each message in `json`.
    ends: Vec<usize>,
}

impl ReplayedMessages {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Size of all messages, in bytes of JSON.
    pub fn size(&self) -> usize {
        self.blocks.iter().map(|block| block.json.len()).sum()
    }

    pub fn push(&mut self, message: &impl Serialize) {
        if self.blocks.last().is_none_or(MessageRun::is_full) {
            self.blocks.push(MessageRun::default());
        }
        if let Some(block) = self.blocks.last_mut() {
            // Writing into memory cannot fail.
            let _ = serde_json::to_writer(&mut block.json, message);
            block.ends.push(block.json.len());
            if block.is_full() {
                block.json.shrink_to_fit();
                block.ends.shrink_to_fit();
            }
            self.len += 1;
        }
    }

    pub fn values(&self) -> impl Iterator<Item = Value> {
        let all = self.blocks.iter().flat_map(MessageRun::messages);
        all.map(|json| serde_json::from_slice(json).unwrap_or_default())
    }

    /// Passes the JSON of each message from position `first` on to `take`, and frees the messages on the way.
    pub fn consume(self, first: usize, mut take: impl FnMut(&[u8])) {
        let mut skipped = first;
        for block in self.blocks {
            block.messages().skip(skipped).for_each(&mut take);
            skipped = skipped.saturating_sub(block.ends.len());
        }
    }
}

impl MessageRun {
    fn is_full(&self) -> bool {
        self.json.len() >= BLOCK
    }

    fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins
            .zip(&self.ends)
            .map(|(begin, end)| &self.json[begin..*end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_several_blocks_are_consumed_from_any_position() {
        let mut all = ReplayedMessages::default();
        let want: Vec<Value> = (0..7).map(|n| "x".repeat(BLOCK / 2 + n).into()).collect();
        for message in &want {
            all.push(message);
        }
        assert!(all.blocks.len() > 2, "{}", all.blocks.len());
        assert_eq!(all.values().collect::<Vec<_>>(), want);
        for first in 0..=want.len() {
            let mut again = ReplayedMessages::default();
            for message in &want {
                again.push(message);
            }
            let mut rest = Vec::new();
            again.consume(first, |json| {
                rest.push(serde_json::from_slice(json).unwrap());
            });
            let rest: Vec<Value> = rest;
            assert_eq!(rest, want[first..]);
        }
    }
}
