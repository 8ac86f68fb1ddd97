//! JSON-RPC batches: their answers leave together, once all of them are there (specification, section 6).

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;

/// How many messages a batch may have: the answer to the smallest one is a hundred times its size.
const MOST: usize = 1024;

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
}

#[derive(Debug, Default)]
struct Batch {
    waiting: usize,
    answers: Vec<u8>,
}

impl Batches {
    /// Begins a batch.
    pub fn begin(&mut self) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        self.open.insert(id, Batch::default());
        id
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
    pub fn add(&mut self, id: BatchId, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(batch) = self.open.get_mut(&id) {
            batch
                .answers
                .push(if batch.answers.is_empty() { b'[' } else { b',' });
            write(&mut batch.answers);
        }
    }

    /// The whole answer, if it is complete and there is one: notifications alone are not answered.
    pub fn take_complete(&mut self, id: BatchId) -> Option<Vec<u8>> {
        if self.open.get(&id).is_none_or(|b| b.waiting > 0) {
            return None;
        }
        let mut answers = self.open.remove(&id)?.answers;
        if answers.is_empty() {
            return None;
        }
        answers.push(b']');
        Some(answers)
    }
}
