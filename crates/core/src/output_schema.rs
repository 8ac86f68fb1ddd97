//! Output schemas: JSON Schemas of clients that the answers of agents must match.
//!
//! A schema comes from a client and an answer from a model, so the work for both is bounded: the size of a
//! schema, the steps of a comparison (`work.rs`), the backtracking of a pattern and the number of violations.
//! Nothing is read from files or the network: references must stay within the schema.

mod answer;
mod keywords;
mod requests;
mod subschemas;
mod work;

use acpipe_json::is_deeper;
use acpipe_model::error::{Error, ErrorKind, invalid};
pub use answer::json_in;
use jsonschema::{PatternOptions, ValidationError, Validator};
pub use requests::{first_request, repair_request};
use serde_json::{Value, json};
use work::Work;

/// Maximum size of a schema as JSON, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// Maximum nesting of arrays and objects in a schema. A message that contains it stays below the limit of all
/// messages, [`DEEPEST`](acpipe_json::DEEPEST).
const MAX_LEVELS: usize = 100;

const MAX_VIOLATIONS: usize = 20;

/// Maximum number of steps of a comparison of which all violations are collected. Of a larger one only the
/// first is, because the validator cannot stop after some of them.
const SMALL_WORK: u32 = 20_000;

/// Maximum number of steps back in one match of a pattern.
const BACKTRACKS: usize = 100_000;

/// Maximum size of a compiled pattern, in bytes. Compiling one of this size takes milliseconds.
const PATTERN_BYTES: usize = 256 << 10;

/// Maximum length of a violation's text, in characters.
const VIOLATION_LENGTH: usize = 300;

/// A JSON Schema that was found to be valid.
#[derive(Debug)]
pub struct OutputSchema<'a> {
    schema: &'a Value,
    validator: Validator,
}

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
        subschemas::check(schema)?;
        let patterns = PatternOptions::fancy_regex()
            .backtrack_limit(BACKTRACKS)
            .size_limit(PATTERN_BYTES);
        let options = jsonschema::options().with_pattern_options(patterns);
        match options.build(schema) {
            Ok(validator) => Ok(Self { schema, validator }),
            Err(error) => Err(fault(&error)),
        }
    }

    pub fn violations(&self, answer: &Value) -> Vec<Violation> {
        let mut work = Work::new(self.schema);
        if !work.fits(answer) {
            return vec![Violation {
                path: String::new(),
                message:
                    "cannot be checked: the schema takes too many steps for an answer of this size"
                        .to_owned(),
            }];
        }
        if work.done() > SMALL_WORK {
            let first = self.validator.validate(answer).err();
            return first.iter().map(violation).collect();
        }
        let all = self.validator.iter_errors(answer);
        all.take(MAX_VIOLATIONS).map(|e| violation(&e)).collect()
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

fn violation(error: &ValidationError<'_>) -> Violation {
    Violation {
        path: error.instance_path().to_string(),
        // The values themselves may be large, and the path names their place.
        message: short(&error.masked().to_string()),
    }
}

fn fault(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().to_string();
    let message = short(&error.to_string());
    if path.is_empty() {
        message
    } else {
        format!("{path}: {message}")
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(VIOLATION_LENGTH) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
