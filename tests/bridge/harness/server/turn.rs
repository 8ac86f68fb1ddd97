//! Completed turns.

use serde_json::Value;

/// Summary and chunks of a completed turn.
#[derive(Debug)]
pub struct Turn {
    pub summary: Value,
    pub chunks: Vec<Value>,
    /// Activities that `session/activity` reported during the turn.
    pub activity: Vec<Value>,
}

impl Turn {
    pub fn types(&self) -> Vec<&str> {
        let types = self.chunks.iter().map(|c| c["type"].as_str().unwrap());
        types.collect()
    }

    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|c| c["type"] == kind).collect()
    }

    /// Joins the text deltas of the answer.
    pub fn text(&self) -> String {
        let deltas = self.of("text-delta").into_iter();
        deltas.map(|c| c["delta"].as_str().unwrap()).collect()
    }

    /// Returns the only chunk of a type.
    #[track_caller]
    pub fn one(&self, kind: &str) -> &Value {
        match self.of(kind)[..] {
            [chunk] => chunk,
            ref other => panic!("{} chunks {kind} in {:?}", other.len(), self.types()),
        }
    }

    #[track_caller]
    pub fn last(&self) -> &Value {
        self.chunks.last().unwrap()
    }
}
