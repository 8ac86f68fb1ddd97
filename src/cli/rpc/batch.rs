//! JSON-RPC batches: the responses are sent together once all are available (specification, section 6).

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// Maximum number of messages in a batch. The response to the smallest message is a hundred times its size.
const MAX_MESSAGES: usize = 1024;

/// Maximum number of open batches. With [`MAX_MESSAGES`] messages each, that is as many calls as one client may have
/// open ([`super::calls`]).
const MAX_OPEN: usize = 16;

/// Maximum total size of the responses collected for all open batches, in bytes: several pages of messages,
/// which are the largest responses. Responses outside of batches are not collected.
const MAX_BYTES: usize = 64 << 20;

/// Splits a batch into its messages, or returns why the whole batch is rejected; then none of its messages
/// takes effect.
///
/// # Errors
/// The text is not JSON.
pub fn messages(text: &str) -> serde_json::Result<Result<Vec<&RawValue>, &'static str>> {
    let batch: CappedArray<'_> = serde_json::from_str(text)?;
    Ok(match batch.0 {
        Some(messages) if messages.is_empty() => Err("a batch must not be empty"),
        Some(messages) => Ok(messages),
        None => Err("a batch must have at most 1024 messages; send several batches"),
    })
}

/// Elements of an array with at most [`MAX_MESSAGES`] elements; `None` if it has more.
struct CappedArray<'a>(Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for CappedArray<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct CappedArrayVisitor;
        impl<'de> Visitor<'de> for CappedArrayVisitor {
            type Value = CappedArray<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = seq.next_element()? {
                    if messages.len() == MAX_MESSAGES {
                        // The rest of the batch is still read: a syntax error takes precedence over this one.
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(CappedArray(None));
                    }
                    messages.push(message);
                }
                Ok(CappedArray(Some(messages)))
            }
        }
        d.deserialize_seq(CappedArrayVisitor)
    }
}

/// Id of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(u64);

/// Batches whose responses are not complete.
#[derive(Debug, Default)]
pub struct OpenBatches {
    last: u64,
    open: HashMap<BatchId, OpenBatch>,
    /// Total size of the collected responses.
    bytes: usize,
}

#[derive(Debug, Default)]
struct OpenBatch {
    waiting: usize,
    answers: Vec<u8>,
}

/// Error: the response would exceed [`MAX_BYTES`].
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl OpenBatches {
    /// Opens a batch; `None` if too many are open.
    pub fn begin(&mut self) -> Option<BatchId> {
        if self.open.len() >= MAX_OPEN {
            return None;
        }
        self.last += 1;
        let id = BatchId(self.last);
        self.open.insert(id, OpenBatch::default());
        Some(id)
    }

    /// Counts a response that will be added later.
    pub fn answer_to_come(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting += 1;
        }
    }

    /// Counts the arrival of a response announced by `answer_to_come`.
    pub fn answer_came(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting = batch.waiting.saturating_sub(1);
        }
    }

    /// Adds a response written by `write`.
    ///
    /// # Errors
    /// The response is too large. Nothing was added; the caller adds a short error instead.
    pub fn add(&mut self, id: BatchId, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
        self.append(id, MAX_BYTES, write)
    }

    /// Adds the error that replaces a response which is too large.
    pub fn add_error(&mut self, id: BatchId, write: impl FnOnce(&mut Vec<u8>)) {
        // Unbounded: the error is short, and there is at most one per open call.
        let _ = self.append(id, usize::MAX, write);
    }

    fn append(
        &mut self,
        id: BatchId,
        limit: usize,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), TooLarge> {
        let Some(batch) = self.open.get_mut(&id) else {
            return Ok(());
        };
        let answers = &mut batch.answers;
        let before = answers.len();
        answers.push(if answers.is_empty() { b'[' } else { b',' });
        write(answers);
        let added = answers.len() - before;
        if self.bytes.saturating_add(added) > limit {
            answers.truncate(before);
            answers.shrink_to(2 * before);
            return Err(TooLarge);
        }
        self.bytes += added;
        Ok(())
    }

    /// Removes a complete batch and returns its response array. `None` if it is incomplete, or if it held
    /// notifications only.
    pub fn take_complete(&mut self, id: BatchId) -> Option<Vec<u8>> {
        if self.open.get(&id).is_none_or(|b| b.waiting > 0) {
            return None;
        }
        let mut answers = self.open.remove(&id)?.answers;
        self.bytes -= answers.len();
        if answers.is_empty() {
            return None;
        }
        answers.push(b']');
        Some(answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gathered_answers_of_all_batches_are_bounded() {
        let mut batches = OpenBatches::default();
        let [a, b] = [(); 2].map(|()| batches.begin().unwrap());
        let fill = |bytes: usize| move |out: &mut Vec<u8>| out.extend(vec![b'1'; bytes]);
        batches.answer_to_come(a);
        batches.add(a, fill(MAX_BYTES - 10)).unwrap();
        assert_eq!(batches.add(b, fill(100)), Err(TooLarge));
        assert_eq!(batches.add(a, fill(100)), Err(TooLarge));
        batches.add(b, fill(1)).unwrap();
        batches.add_error(b, fill(100));
        let answers = batches.take_complete(b).unwrap();
        let ones = |n| "1".repeat(n);
        assert_eq!(answers, format!("[{},{}]", ones(1), ones(100)).as_bytes());
        assert_eq!(batches.take_complete(a), None);
        batches.answer_came(a);
        assert_eq!(batches.take_complete(a).unwrap().len(), MAX_BYTES - 8);
        // Both batches are closed, and their bytes are released.
        let c = batches.begin().unwrap();
        batches.add(c, fill(MAX_BYTES - 10)).unwrap();
    }

    #[test]
    fn open_batches_are_bounded_in_number() {
        let mut batches = OpenBatches::default();
        let open: Vec<BatchId> = std::iter::from_fn(|| batches.begin()).collect();
        assert_eq!(open.len(), MAX_OPEN);
        assert_eq!(batches.take_complete(open[3]), None);
        assert!(batches.begin().is_some());
        assert!(batches.begin().is_none());
    }
}
