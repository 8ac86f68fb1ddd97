//! Errors as responses to the client.

use crate::core::error::{Error, ErrorKind};
use crate::proto::acp::RESOURCE_NOT_FOUND;
use crate::proto::json::to_raw;
use crate::proto::rpc::{self, ErrorObject};
use crate::proto::wire::TurnError;
use serde_json::value::RawValue;

/// Converts an error of a turn.
pub fn error_of(error: &TurnError) -> Error {
    let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == error.kind);
    let mut converted = Error::new(kind.copied().unwrap_or(ErrorKind::Session), &*error.message);
    converted.data = error.data.as_object().cloned().unwrap_or_default();
    converted.acp.clone_from(&error.acp);
    converted
}

/// Replaces the remedy of an error about an unknown session, which names a method that ACP does not have.
pub fn with_methods_of_acp(mut error: Error) -> Error {
    if error.kind == ErrorKind::SessionNotFound && error.acp.is_none() {
        let what = error.message.split("; call session/ensure").next();
        let what = what.unwrap_or_default();
        error.message = format!("{what}; call session/list for the known sessions, or session/new");
    }
    error
}

/// Appends an error response: the agent's own error as it is, or an error of acpipe.
pub fn write_error(out: &mut Vec<u8>, id: &RawValue, error: &Error) {
    let own = error.acp.as_deref();
    if let Some(own) = own.and_then(|json| serde_json::from_str::<&RawValue>(json).ok()) {
        rpc::write_error(out, id, &own);
        return;
    }
    let data = to_raw(&error.data());
    let code = match error.kind {
        ErrorKind::SessionNotFound | ErrorKind::ResourceNotFound => RESOURCE_NOT_FOUND,
        kind => kind.rpc_code(),
    };
    let error = ErrorObject {
        code,
        message: &error.message,
        data: Some(&data),
    };
    rpc::write_error(out, id, &error);
}
