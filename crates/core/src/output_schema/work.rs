//! Number of steps that a schema takes for a value without parts. Too many of them are the sign of a schema
//! that refers to itself.

use super::resolve;
use super::validator::{DEPTH, MAX_STEPS};
use serde_json::Value;

/// Counter of the steps. Each is a schema that is applied to the value.
#[derive(Debug)]
pub struct Work<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> Work<'a> {
    /// Creates the counter for the check of one schema.
    pub fn new(root: &'a Value) -> Self {
        Self {
            root,
            left: MAX_STEPS,
        }
    }

    /// Counts the steps of one schema within the root. Returns `false` if there are too many.
    pub fn fits_alone(&mut self, schema: &'a Value) -> bool {
        self.apply(schema, 0)
    }

    fn apply(&mut self, schema: &'a Value, depth: u32) -> bool {
        if depth > DEPTH || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let Value::Object(keywords) = schema else {
            return true;
        };
        let mut keywords = keywords.iter();
        keywords.all(|(keyword, wanted)| match keyword.as_str() {
            "$ref" => match resolve(self.root, wanted) {
                Some(schema) => self.apply(schema, depth + 1),
                None => true,
            },
            "allOf" | "anyOf" | "oneOf" => {
                let mut schemas = wanted.as_array().into_iter().flatten();
                schemas.all(|schema| self.apply(schema, depth + 1))
            }
            "not" | "if" | "then" | "else" => self.apply(wanted, depth + 1),
            _ => true,
        })
    }
}
