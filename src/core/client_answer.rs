//! The client's answer to a request of acpipe.

/// What came back: the result as JSON, or an error.
pub type ClientAnswer = Result<Box<serde_json::value::RawValue>, Refusal>;

/// The error with which a client answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub code: i64,
    pub message: String,
}
