//! JSON-RPC batches: their answers leave together, once all of them are there (specification, section 6).

use std::collections::HashMap;

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
