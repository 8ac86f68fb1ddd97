//! Output schemas: JSON Schemas of clients that the answers of agents must match.
//!
//! A schema comes from a client and an answer from a model, so the work for both is bounded: the size of a
//! schema, the steps of a comparison (`validator.rs`), the backtracking of a pattern and the number of violations.
//! Nothing is read from files or the network: references must stay within the schema.

mod answer;
mod drafts;
mod equality;
mod evaluated;
mod keywords;
mod messages;
mod numbers;
mod parts;
mod pattern;
mod requests;
mod subschemas;
mod validator;
mod work;

use acpipe_json::is_deeper;
use acpipe_model::error::{Error, ErrorKind, invalid};
pub use answer::json_in;
use percent_encoding::percent_decode_str;
pub use requests::{first_request, repair_request};
use serde_json::{Value, json};
use validator::Validator;

/// Maximum size of a schema as JSON, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// Maximum nesting of arrays and objects in a schema. A message that contains it stays below the limit of all
/// messages, [`DEEPEST`](acpipe_json::DEEPEST).
const MAX_LEVELS: usize = 100;

const MAX_VIOLATIONS: usize = 20;

/// Maximum length of a violation's text, in characters.
const VIOLATION_LENGTH: usize = 300;

/// A JSON Schema that was found to be valid.
#[derive(Debug)]
pub struct OutputSchema<'a>(Validator<'a>);

/// Mismatch between an answer and its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer to the value; empty for the whole answer.
    pub path: String,
    pub message: String,
}

impl<'a> OutputSchema<'a> {
    /// Compiles a schema.
    ///
    /// # Errors
    /// The reason why the schema is not valid, or not supported.
    pub fn compile(schema: &'a Value) -> Result<Self, String> {
        let text = schema.to_string();
        if text.len() > MAX_BYTES {
            return Err(format!("has more than {} KiB", MAX_BYTES >> 10));
        }
        if is_deeper(text.as_bytes(), MAX_LEVELS) {
            return Err(format!("is nested more than {MAX_LEVELS} levels deep"));
        }
        subschemas::check(schema)
            .map(Self)
            .map_err(|why| short(&why))
    }

    pub fn violations(&self, answer: &Value) -> Vec<Violation> {
        self.0.violations(answer)
    }
}

/// Checks the schema in a parameter; `field` is the path of the parameter.
///
/// # Errors
/// `invalidParams`.
pub fn check(field: &str, schema: Option<&Value>) -> Result<(), Error> {
    match schema.map(OutputSchema::compile) {
        None | Some(Ok(_)) => Ok(()),
        Some(Err(why)) => Err(invalid(field, &format!("not a valid JSON schema: {why}"))),
    }
}

/// Creates the error of an answer that does not match its schema. `raw` is the answer as the agent wrote it.
pub fn mismatch(violations: &[Violation], raw: &str) -> Error {
    let first = violations.first().map(ToString::to_string);
    let message = format!(
        "Structured output schema validation failed: {}",
        first.unwrap_or_default()
    );
    let all = violations
        .iter()
        .map(|v| json!({ "path": v.path, "message": v.message }));
    Error::new(ErrorKind::SchemaMismatch, message)
        .with("violations", Value::Array(all.collect()))
        .with("raw", raw)
}

impl Violation {
    #[must_use]
    pub fn no_json() -> Self {
        Self {
            path: String::new(),
            message: "contains no JSON value".to_owned(),
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = match self.path.as_str() {
            "" => "the answer",
            path => path,
        };
        write!(f, "{path}: {}", self.message)
    }
}

/// Returns the schema that a `$ref` names.
fn resolve<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    let pointer = reference.as_str()?.strip_prefix('#')?;
    root.pointer(&percent_decode_str(pointer).decode_utf8_lossy())
}

fn short(text: &str) -> String {
    match text.char_indices().nth(VIOLATION_LENGTH) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod suite;
#[cfg(test)]
mod tests;
