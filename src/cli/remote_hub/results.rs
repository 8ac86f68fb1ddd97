//! Results and errors of the daemon.

use super::requests::ExpectedResult;
use acpipe_core::client::Reply;
use acpipe_json::rpc::RpcError;
use acpipe_model::error::{Error, ErrorKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads a result.
///
/// # Errors
/// The result is not of the expected type: the daemon is of another version.
pub fn result(expected: ExpectedResult, value: &RawValue) -> Result<Reply, Error> {
    let text = value.get();
    let read = match expected {
        ExpectedResult::Initialize => serde_json::from_str(text).map(Reply::Initialize),
        ExpectedResult::Status => serde_json::from_str(text).map(Reply::Status),
        ExpectedResult::Session => serde_json::from_str(text).map(Reply::Session),
        ExpectedResult::Turn => serde_json::from_str(text).map(Reply::Turn),
        ExpectedResult::Cancel => serde_json::from_str(text).map(Reply::Cancel),
        ExpectedResult::Attached => serde_json::from_str(text).map(Reply::Attached),
        ExpectedResult::Sessions => serde_json::from_str(text).map(Reply::Sessions),
        ExpectedResult::Setting => serde_json::from_str(text).map(Reply::Setting),
    };
    read.map_err(|error| {
        let message = format!(
            "the daemon's answer is not valid ({error}): it is of another version of acpipe; run `acpipe daemon restart`"
        );
        Error::new(ErrorKind::Malformed, message)
    })
}

/// Reads an error.
pub fn error_of(error: &RpcError<'_>) -> Error {
    let data = error
        .data
        .and_then(|data| serde_json::from_str(data.get()).ok());
    let mut data: Map<String, Value> = data.unwrap_or_default();
    let name = data.remove("kind");
    let by_name = |kind: &&ErrorKind| name.as_ref().and_then(Value::as_str) == Some(kind.name());
    let kind = ErrorKind::ALL.iter().find(by_name).copied();
    Error {
        kind: kind.unwrap_or(ErrorKind::Internal),
        message: error.message.clone().into_owned(),
        data,
        acp: None,
    }
}
