//! Errors that the client gets from this side of the hub: messages that cannot be read, each answered with its id where
//! enough of it was seen, and calls for which there is no room.

use super::{RpcClient, asks, usable_id};
use crate::core::error::{Error, ErrorKind};
use crate::proto::frame::{Overlong, sniff};
use crate::proto::json::to_raw;
use crate::proto::rpc::{self, ErrorObject, RpcError, code};
use serde_json::value::RawValue;
use std::borrow::Cow;

impl RpcClient {
    /// Answers a message over the cap: a request with its id, an answer by failing what it was for.
    pub(super) fn too_long(&mut self, line: &Overlong) {
        let message = format!(
            "parse error: {} bytes are over the cap: raise --max-line",
            line.len
        );
        self.unreadable(&line.head, &line.tail, message);
    }

    /// Answers a message that is not UTF-8.
    pub(super) fn not_utf8(&mut self, message: &[u8]) {
        let text = "parse error: the message is not UTF-8";
        self.unreadable(message, message, text.to_owned());
    }

    fn unreadable(&mut self, head: &[u8], tail: &[u8], message: String) {
        let found = sniff(head, tail);
        // An id with bytes that were replaced is not the client's.
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
            let answer = asks::answer(Some(id), Err(error));
            if answer.is_some() {
                self.actions.extend(answer);
                return;
            }
        }
        let error = Error::new(ErrorKind::Parse, message);
        self.answer(id.as_deref(), None, Err(error));
    }

    /// Answers a header block without a usable `Content-Length`.
    pub(super) fn bad_header(&mut self, header: String) {
        let message = "parse error: a header block without a usable Content-Length";
        let error = Error::new(ErrorKind::Parse, message).with("raw", header);
        self.answer(None, None, Err(error));
    }
}

pub(super) fn parse_error(e: &serde_json::Error) -> Error {
    Error::new(ErrorKind::Parse, format!("parse error: {e}"))
}

/// Appends an error as the answer of a call.
pub(super) fn write_error(out: &mut Vec<u8>, id: &RawValue, error: &Error) {
    let data = to_raw(&error.data());
    let object = ErrorObject {
        code: error.kind.rpc_code(),
        message: &error.message,
        data: Some(&data),
    };
    rpc::write_error(out, id, &object);
}

/// The client has too many calls without an answer.
pub(super) fn too_many_calls() -> Error {
    let message =
        "too many calls are not answered yet: wait for some of their answers, then call again";
    Error::new(ErrorKind::Overloaded, message)
}

/// The client has too many batches without an answer.
pub(super) fn too_many_batches() -> Error {
    let message =
        "too many batches are not answered yet: call without a batch, or wait for one of them";
    Error::new(ErrorKind::Overloaded, message)
}

/// The answer of a call does not fit into the answer of its batch.
pub(super) fn too_large_batch() -> Error {
    let message = "the answer is too large for a batch, though the call was carried out: make such calls without a batch";
    Error::new(ErrorKind::Overloaded, message)
}

/// Too many answers wait for a client that does not read.
pub(super) fn unread() -> Error {
    let message = "too many calls wait for you to read what was written: read on, then call again";
    Error::new(ErrorKind::Overloaded, message)
}
