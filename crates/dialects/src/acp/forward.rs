//! Messages that acpipe does not interpret, for clients that speak ACP.

use super::requests;
use acpipe_json::rpc;
use acpipe_model::client_answer::ClientAnswer;
use acpipe_model::event::AgentEvent;
use acpipe_model::request_key::RequestKey;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tracing::debug;

/// Returns the event of a notification of the agent, if a client speaks ACP.
pub(super) fn notification<'a>(
    has_client: bool,
    method: Cow<'a, str>,
    params: Option<&'a RawValue>,
) -> Option<AgentEvent<'a>> {
    if !has_client {
        debug!(%method, "notification ignored");
        return None;
    }
    Some(requests::forwarded(None, method, params))
}

pub(super) fn write_notification(method: &str, params: Option<&RawValue>, lines: &mut Vec<u8>) {
    rpc::write_notification(lines, method, &params);
    lines.push(b'\n');
}

/// Writes the response of a client to a request of the agent, as the client wrote it.
pub(super) fn write_answer(key: &RequestKey, answer: &ClientAnswer, lines: &mut Vec<u8>) {
    let id = key.id();
    match answer {
        Ok(result) => rpc::write_result(lines, id, result),
        Err(error) => rpc::write_error(lines, id, error),
    }
    lines.push(b'\n');
}
