//! Failures of requests: an HTTP status, and plain text that the AI SDK shows, or JSON with the kind of the error.

use acpipe_host::ConnectionError;
use acpipe_model::error::{Error, ErrorKind};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Failure of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpFailure {
    /// HTTP status.
    pub status: StatusCode,
    /// One line: the failure, its cause, and the next step.
    pub message: String,
    /// Error of the hub, if it is one.
    error: Option<Box<Error>>,
}

impl HttpFailure {
    /// Creates a failure.
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            error: None,
        }
    }

    /// Creates the failure of a request that is not valid.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Creates the failure of a connection that was closed from inside.
    pub fn closed() -> Self {
        let message = "acpipe closed the connection; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// Creates the failure of a call whose reply is of another kind than its result.
    pub fn unexpected_reply() -> Self {
        let message = "acpipe failed internally: a call got the reply of another; please report it";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    /// Returns `true` if another call has to come first.
    pub fn is_out_of_order(&self) -> bool {
        self.is_of(ErrorKind::OutOfOrder)
    }

    /// Returns `true` if the session does not exist.
    pub fn is_session_not_found(&self) -> bool {
        self.is_of(ErrorKind::SessionNotFound)
    }

    /// Returns `true` if a turn of the session runs, or prompts wait.
    pub fn is_busy(&self) -> bool {
        self.is_of(ErrorKind::Busy)
    }

    fn is_of(&self, kind: ErrorKind) -> bool {
        let error = self.error.as_ref();
        error.is_some_and(|error| error.kind == kind)
    }
}

impl From<Error> for HttpFailure {
    fn from(error: Error) -> Self {
        Self {
            status: status_of(&error),
            message: error.message.clone(),
            error: Some(Box::new(error)),
        }
    }
}

impl From<ConnectionError> for HttpFailure {
    fn from(error: ConnectionError) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl IntoResponse for HttpFailure {
    fn into_response(self) -> Response {
        let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
        let mut response = (self.status, plain, self.message.clone()).into_response();
        // For `with_kind`.
        response.extensions_mut().insert(self);
        response
    }
}

/// Replaces the text of a failure that has a kind by JSON: `{kind, message, data}`. For clients that accept JSON.
pub fn with_kind(response: Response) -> Response {
    let failure = response.extensions().get::<HttpFailure>();
    let Some((failure, error)) = failure.and_then(|f| Some((f, f.error.as_ref()?))) else {
        return response;
    };
    let body = json!({ "kind": error.kind.name(), "message": failure.message, "data": error.data });
    let json = [(header::CONTENT_TYPE, "application/json")];
    (failure.status, json, body.to_string()).into_response()
}

/// Returns the HTTP status of an error.
fn status_of(error: &Error) -> StatusCode {
    use ErrorKind::{
        AgentNotFound, Busy, Cancelled, DuplicateAgent, Forbidden, Internal, InvalidParams,
        InvalidRequest, InvalidTool, MessageExists, MessageNotFound, OutOfOrder, Overloaded, Parse,
        SessionExists, SessionLocked, SessionNotFound, Storage, Timeout, TurnUnfinished,
    };
    match error.kind {
        // A name that the request has, not a program that the machine has not.
        AgentNotFound if error.data.contains_key("field") => StatusCode::BAD_REQUEST,
        InvalidParams | InvalidRequest | Parse | InvalidTool => StatusCode::BAD_REQUEST,
        Forbidden => StatusCode::FORBIDDEN,
        SessionNotFound | MessageNotFound => StatusCode::NOT_FOUND,
        Busy | SessionLocked | SessionExists | MessageExists | DuplicateAgent | OutOfOrder
        | TurnUnfinished | Cancelled => StatusCode::CONFLICT,
        Overloaded => StatusCode::SERVICE_UNAVAILABLE,
        Timeout => StatusCode::GATEWAY_TIMEOUT,
        Internal | Storage => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_GATEWAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_follow_the_kinds_of_errors() {
        let failure = |kind: ErrorKind| HttpFailure::from(Error::new(kind, "m"));
        for (kind, status) in [
            (ErrorKind::InvalidParams, 400),
            (ErrorKind::SessionNotFound, 404),
            (ErrorKind::Busy, 409),
            (ErrorKind::Overloaded, 503),
            (ErrorKind::AgentStart, 502),
            (ErrorKind::Timeout, 504),
            (ErrorKind::Storage, 500),
        ] {
            assert_eq!(failure(kind).status.as_u16(), status, "{}", kind.name());
        }
        let unknown = Error::new(ErrorKind::AgentNotFound, "m").with("field", "agent");
        assert_eq!(HttpFailure::from(unknown).status.as_u16(), 400);
        assert_eq!(failure(ErrorKind::AgentNotFound).status.as_u16(), 502);
        assert!(failure(ErrorKind::SessionNotFound).is_session_not_found());
    }
}
