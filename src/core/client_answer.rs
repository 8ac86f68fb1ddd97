//! Response of a client to a request of acpipe.

/// Response of a client: the result as JSON, or an error.
pub type ClientAnswer = Result<Box<serde_json::value::RawValue>, ErrorResponse>;

/// Error response of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorResponse {
    /// JSON-RPC error code.
    pub code: i64,
    /// Error message.
    pub message: String,
}
