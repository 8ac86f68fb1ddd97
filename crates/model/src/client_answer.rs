//! Response of a client to a request of acpipe.

/// Response of a client: the result as JSON, or an error.
pub type ClientAnswer = Result<Box<serde_json::value::RawValue>, ErrorResponse>;

/// Error response of a client.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ErrorResponse {
    /// JSON-RPC error code.
    pub code: i64,
    pub message: String,
    /// Additional data; `None` if the response has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Value>,
}

impl ErrorResponse {
    /// Returns the error as an agent gets it that asked the user a question. The text of a client may quote what the user
    /// typed, and in tapes and logs of what the agent receives, it looks like any other text.
    #[must_use]
    pub fn without_text(&self) -> Self {
        Self {
            code: self.code,
            message: "the client answered the question with an error".to_owned(),
            data: None,
        }
    }
}
