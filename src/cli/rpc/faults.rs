//! Errors detected before the hub: unreadable messages, answered with their id if it can be recovered, and
//! calls over a limit.

use super::{RpcClient, client_requests};
use acpipe_json::frame::{Overlong, Sniffed, sniff, sniff_all};
use acpipe_json::rpc::{ErrorObject, RpcError, code};
use acpipe_json::{TypeFault, rpc, to_raw};
use acpipe_model::error::{Error, ErrorKind};
use serde_json::value::RawValue;
use std::borrow::Cow;

impl RpcClient {
    /// Handles a message over the size limit: a request gets an error response; a response fails the request
    /// that it belongs to.
    pub(super) fn too_long(&mut self, line: &Overlong) {
        let message = format!(
            "parse error: the message has {} bytes, more than the limit; raise it with --max-line",
            line.len
        );
        self.unreadable(sniff(&line.head, &line.tail), message, true);
    }

    /// Handles a text that cannot be parsed, like `too_long`: each message in it.
    pub(super) fn not_parsed(&mut self, text: &[u8], error: &str) {
        let (why, found) = sniff_all(text, &format!("parse error: {error}"));
        for message in found {
            // Without a method it may not be a request.
            let has_method = message.method.is_some();
            self.unreadable(message, why.clone(), has_method);
        }
    }

    fn unreadable(&mut self, found: Sniffed, message: String, keeps_id: bool) {
        // An id with replacement characters is not the client's id.
        let id = found.id.filter(|id| !id.contains('\u{fffd}'));
        let id = id.and_then(|id| RawValue::from_string(id).ok());
        let id = id.filter(|id| usable_id(id).is_ok());
        if found.method.is_none()
            && let Some(id) = &id
        {
            let error = RpcError {
                code: code::PARSE_ERROR.into(),
                message: Cow::Borrowed(&message),
                data: None,
                raw: id,
            };
            let answer = client_requests::answer(Some(id), Err(error));
            if answer.is_some() {
                self.actions.extend(answer);
                return;
            }
        }
        let error = Error::new(ErrorKind::Parse, message);
        self.answer(id.as_deref().filter(|_| keeps_id), None, Err(error));
    }

    /// Responds to a header block without a usable `Content-Length`.
    pub(super) fn bad_header(&mut self, header: String) {
        let message = "parse error: the header block has no valid Content-Length";
        let error = Error::new(ErrorKind::Parse, message).with("raw", header);
        self.answer(None, None, Err(error));
    }
}

/// Appends an error response.
pub(in crate::cli) fn write_error(out: &mut Vec<u8>, id: &RawValue, error: &Error) {
    let data = to_raw(&error.data());
    let object = ErrorObject {
        code: error.kind.rpc_code(),
        message: &error.message,
        data: Some(&data),
    };
    rpc::write_error(out, id, &object);
}

/// Error: a member of the parameters, or of their member `within`, has not the form of its type.
pub(in crate::cli) fn invalid_field(within: &str, fault: &TypeFault) -> Error {
    let under = |name: &str| match (within, name) {
        ("", name) | (name, "") => name.to_owned(),
        (within, name) => format!("{within}.{name}"),
    };
    let (path, reason) = (under(&fault.to_string()), &fault.reason);
    let missing = reason.strip_prefix("missing field `");
    if let Some(name) = missing.and_then(|rest| rest.strip_suffix('`')) {
        let field = match path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let message = format!("missing field `{field}`");
        return Error::new(ErrorKind::InvalidParams, message).with("field", field);
    }
    if path.is_empty() {
        return Error::new(ErrorKind::InvalidParams, reason);
    }
    let message = format!("{path}: {reason}");
    Error::new(ErrorKind::InvalidParams, message).with("field", path)
}

/// Error: the client has too many open calls.
pub(super) fn too_many_calls() -> Error {
    let message = "too many open requests; wait for some responses, then try again";
    Error::new(ErrorKind::Overloaded, message)
}

/// Error: the client has too many open batches.
pub(super) fn too_many_batches() -> Error {
    let message = "too many open batches; wait for one of them, or send requests without a batch";
    Error::new(ErrorKind::Overloaded, message)
}

/// Error: the result does not fit into the response of its batch.
pub(super) fn too_large_batch() -> Error {
    let message = "the response is too large for a batch, but the request was carried out; send such requests without \
                       a batch";
    Error::new(ErrorKind::Overloaded, message)
}

/// Error: the client does not read, and too much output is queued.
pub(super) fn client_not_reading() -> Error {
    let message = "too many responses are waiting to be read; read stdout, then try again";
    Error::new(ErrorKind::Overloaded, message)
}

/// Checks that an id is a string, a number or null.
pub(super) fn usable_id(id: &RawValue) -> Result<(), Error> {
    let first = id.get().as_bytes().first();
    if matches!(first, Some(b'"' | b'-' | b'0'..=b'9' | b'n')) {
        return Ok(());
    }
    let message = "invalid request: id must be a string, a number or null";
    Err(Error::new(ErrorKind::InvalidRequest, message))
}
