//! Turns that have ended.

use serde_json::Value;

/// A turn that is over.
#[derive(Debug)]
pub struct Turn {
    pub summary: Value,
    pub chunks: Vec<Value>,
    /// The params of `session/activity` meanwhile.
    pub activity: Vec<Value>,
}

impl Turn {
    pub fn types(&self) -> Vec<&str> {
        let types = self.chunks.iter().map(|c| c["type"].as_str().unwrap());
        types.collect()
    }

    /// The chunks of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|c| c["type"] == kind).collect()
    }

    /// The text of the answer, as the chunks tell it.
    pub fn text(&self) -> String {
        let deltas = self.of("text-delta").into_iter();
        deltas.map(|c| c["delta"].as_str().unwrap()).collect()
    }

    /// The only chunk of a type.
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
