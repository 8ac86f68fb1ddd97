//! JSON-RPC batches: their answers leave together, once all of them are there (specification, section 6).

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// How many messages a batch may have: the answer to the smallest one is a hundred times its size.
const MOST: usize = 1024;

/// How many batches may wait for answers at once: with [`MOST`] messages each, as many calls as one client may have open
/// ([`super::calls`]).
const MOST_OPEN: usize = 16;

/// How many bytes the gathered answers of all open batches may have: several pages of messages, which are the largest
/// answers. Outside of a batch an answer waits nowhere.
const MOST_BYTES: usize = 64 << 20;

/// The messages of a batch, or why it is not taken as a whole: none of its messages has an effect then.
///
/// # Errors
/// The text is not JSON.
pub fn messages(text: &str) -> serde_json::Result<Result<Vec<&RawValue>, &'static str>> {
    let batch: Few<'_> = serde_json::from_str(text)?;
    Ok(match batch.0 {
        Some(messages) if messages.is_empty() => Err("empty batch"),
        Some(messages) => Ok(messages),
        None => Err("a batch may have 1024 messages; send several batches"),
    })
}

/// The elements of a list that has not very many.
struct Few<'a>(Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for Few<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct FewVisitor;
        impl<'de> Visitor<'de> for FewVisitor {
            type Value = Few<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut messages = Vec::new();
                while let Some(message) = seq.next_element()? {
                    if messages.len() == MOST {
                        // The rest of the batch is still read: an error of the JSON is reported before this one.
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Few(None));
                    }
                    messages.push(message);
                }
                Ok(Few(Some(messages)))
            }
        }
        d.deserialize_seq(FewVisitor)
    }
}

/// Names a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BatchId(u64);

/// The batches whose answers are not complete.
#[derive(Debug, Default)]
pub struct Batches {
    last: u64,
    open: HashMap<BatchId, Batch>,
    /// How many bytes of answers they have.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Batch {
    waiting: usize,
    answers: Vec<u8>,
}

/// The answers of open batches are too large for one more.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLarge;

impl Batches {
    /// Begins a batch; `None` where too many wait for answers.
    pub fn begin(&mut self) -> Option<BatchId> {
        if self.open.len() >= MOST_OPEN {
            return None;
        }
        self.last += 1;
        let id = BatchId(self.last);
        self.open.insert(id, Batch::default());
        Some(id)
    }

    /// One more answer will come later.
    pub fn answer_to_come(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting += 1;
        }
    }

    /// A later answer came.
    pub fn answer_came(&mut self, id: BatchId) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch.waiting = batch.waiting.saturating_sub(1);
        }
    }

    /// Adds an answer, appended by `write`.
    ///
    /// # Errors
    /// It is too large: nothing was added, and a short error is to take its place.
    pub fn add(&mut self, id: BatchId, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLarge> {
        self.append(id, MOST_BYTES, write)
    }

    /// Adds the error that takes the place of an answer.
    pub fn add_error(&mut self, id: BatchId, write: impl FnOnce(&mut Vec<u8>)) {
        // It is short, and there are no more of them than open calls.
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

    /// The whole answer, if it is complete and there is one: notifications alone are not answered.
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
        let mut batches = Batches::default();
        let [a, b] = [(); 2].map(|()| batches.begin().unwrap());
        let fill = |bytes: usize| move |out: &mut Vec<u8>| out.extend(vec![b'1'; bytes]);
        batches.answer_to_come(a);
        batches.add(a, fill(MOST_BYTES - 10)).unwrap();
        assert_eq!(batches.add(b, fill(100)), Err(TooLarge));
        assert_eq!(batches.add(a, fill(100)), Err(TooLarge));
        batches.add(b, fill(1)).unwrap();
        batches.add_error(b, fill(100));
        let answers = batches.take_complete(b).unwrap();
        let ones = |n| "1".repeat(n);
        assert_eq!(answers, format!("[{},{}]", ones(1), ones(100)).as_bytes());
        assert_eq!(batches.take_complete(a), None);
        batches.answer_came(a);
        assert_eq!(batches.take_complete(a).unwrap().len(), MOST_BYTES - 8);
        // Both are gone, and so is what they had.
        let c = batches.begin().unwrap();
        batches.add(c, fill(MOST_BYTES - 10)).unwrap();
    }

    #[test]
    fn open_batches_are_bounded_in_number() {
        let mut batches = Batches::default();
        let open: Vec<BatchId> = std::iter::from_fn(|| batches.begin()).collect();
        assert_eq!(open.len(), MOST_OPEN);
        assert_eq!(batches.take_complete(open[3]), None);
        assert!(batches.begin().is_some());
        assert!(batches.begin().is_none());
    }
}
