//! Errors as responses to the client.

use acpipe_json::rpc::ErrorObject;
use acpipe_json::{rpc, to_raw};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::acp::RESOURCE_NOT_FOUND;
use acpipe_protocol::wire::TurnError;
use serde_json::value::RawValue;

/// Converts an error of a turn.
pub fn error_of(error: &TurnError) -> Error {
    let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == error.kind);
    let mut converted = Error::new(kind.copied().unwrap_or(ErrorKind::Session), &*error.message);
    converted.data = error.data.as_object().cloned().unwrap_or_default();
    converted.acp.clone_from(&error.acp);
    converted
}

/// Remedies of errors that name methods which ACP does not have, and what a client of ACP can do.
const REMEDIES: &[(&str, &str)] = &[
    (
        "; call session/ensure",
        "; call session/list for the known sessions, or session/new",
    ),
    ("; call agent/connect", "; send the request again"),
    (
        "; omit cwd to continue it there",
        "; load it with its own directory as cwd, or create a session with session/new",
    ),
    (
        "; close it there (session/close)",
        "; close it in the other window, or create a session with session/new",
    ),
];

/// Replaces the remedy of an error of acpipe by one that a client of ACP has.
pub fn with_methods_of_acp(mut error: Error) -> Error {
    if error.acp.is_some() {
        return error;
    }
    for (remedy, of_acp) in REMEDIES {
        if let Some(at) = error.message.find(remedy) {
            error.message.truncate(at);
            error.message += of_acp;
        }
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
