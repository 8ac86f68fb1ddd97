//! Number of steps of a comparison, counted before it is done: the validator itself cannot be stopped.

use super::keywords::within;
use percent_encoding::percent_decode_str;
use serde_json::Value;

/// Maximum number of steps of one comparison: that of an answer of 4 MiB with an ordinary schema, and less than
/// a second.
const MAX_STEPS: u32 = 3_000_000;

/// Maximum depth of schemas that are applied within each other.
const DEPTH: u32 = 512;

/// Counter of the steps that a schema takes. Each is a schema that is applied to a value.
#[derive(Debug)]
pub struct Work<'a> {
    root: &'a Value,
    left: u32,
}

impl<'a> Work<'a> {
    /// Creates the counter of one comparison, or of one check of a schema.
    pub fn new(root: &'a Value) -> Self {
        Self {
            root,
            left: MAX_STEPS,
        }
    }

    /// Returns the number of steps counted so far.
    pub fn done(&self) -> u32 {
        MAX_STEPS - self.left
    }

    /// Counts the steps for an answer. Returns `false` if there are too many.
    pub fn fits(&mut self, answer: &Value) -> bool {
        self.apply(self.root, answer, 0)
    }

    /// Counts the steps of one schema within the root for a value without parts. Returns `false` if there are
    /// too many, for example because the schema refers to itself.
    pub fn fits_alone(&mut self, schema: &'a Value) -> bool {
        self.apply(schema, &Value::Null, 0)
    }

    fn apply(&mut self, schema: &'a Value, value: &Value, depth: u32) -> bool {
        if depth > DEPTH || !self.spend(1) {
            return false;
        }
        let Value::Object(keywords) = schema else {
            return true;
        };
        let mut keywords = keywords.iter();
        keywords.all(|(keyword, wanted)| self.keyword(keyword, wanted, value, depth + 1))
    }

    fn keyword(&mut self, keyword: &str, wanted: &'a Value, value: &Value, depth: u32) -> bool {
        match (keyword, value) {
            ("$ref", _) => match self.definition(wanted) {
                Some(schema) => self.apply(schema, value, depth),
                None => true,
            },
            ("enum", _) => self.spend(wanted.as_array().map_or(0, Vec::len)),
            ("$defs" | "definitions", _) => true,
            ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else", _)
            | ("dependentSchemas" | "dependencies", Value::Object(_)) => {
                let mut schemas = within(keyword, wanted).into_iter();
                schemas.all(|schema| self.apply(schema, value, depth))
            }
            ("properties", Value::Object(fields)) => {
                let mut fields = fields.iter();
                fields.all(|(name, field)| match wanted.get(name) {
                    Some(schema) => self.apply(schema, field, depth),
                    None => true,
                })
            }
            (_, Value::Object(fields)) if is_for_fields(keyword) => {
                self.each(&within(keyword, wanted), fields.values(), depth)
            }
            (_, Value::Array(items)) if is_for_items(keyword) => {
                self.each(&within(keyword, wanted), items.iter(), depth)
            }
            _ => true,
        }
    }

    fn each<'v>(
        &mut self,
        schemas: &[&'a Value],
        mut parts: impl Iterator<Item = &'v Value>,
        depth: u32,
    ) -> bool {
        parts.all(|part| schemas.iter().all(|schema| self.apply(schema, part, depth)))
    }

    fn spend(&mut self, steps: usize) -> bool {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    fn definition(&self, reference: &Value) -> Option<&'a Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        self.root
            .pointer(&percent_decode_str(pointer).decode_utf8_lossy())
    }
}

fn is_for_fields(keyword: &str) -> bool {
    matches!(
        keyword,
        "patternProperties" | "additionalProperties" | "unevaluatedProperties" | "propertyNames"
    )
}

fn is_for_items(keyword: &str) -> bool {
    matches!(
        keyword,
        "items" | "prefixItems" | "additionalItems" | "unevaluatedItems" | "contains"
    )
}
