//! Messages that acpipe does not interpret, for clients that speak ACP.

use super::pending::Pending;
use super::{Acp, requests};
use crate::core::client_answer::ClientAnswer;
use crate::core::event::{AgentEvent, CallId};
use crate::core::request_key::RequestKey;
use crate::proto::rpc;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use tracing::debug;

impl Acp {
    /// Passes on a notification of the agent, if a client speaks ACP.
    pub(super) fn forward_notification<'a>(
        &self,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
        events: &mut Vec<AgentEvent<'a>>,
    ) {
        if self.offer.acp.is_some() {
            events.push(requests::forwarded(None, method, params));
        } else {
            debug!(%method, "notification ignored");
        }
    }

    /// Writes a message of a client to the agent; `call` is `None` for a notification.
    pub(super) fn pass_on(
        &mut self,
        call: Option<CallId>,
        method: &str,
        params: Option<&RawValue>,
        lines: &mut Vec<u8>,
    ) {
        match call {
            Some(call) => {
                self.last_id += 1;
                rpc::write_request(lines, &self.last_id, method, &params);
                self.pending.insert(self.last_id, Pending::Forward(call));
            }
            None => rpc::write_notification(lines, method, &params),
        }
        lines.push(b'\n');
    }

    /// Withdraws a request of a client that was passed on.
    pub(super) fn withdraw(&self, call: CallId, lines: &mut Vec<u8>) {
        let mut pending = self.pending.iter();
        let sent = pending.find(|(_, sent)| matches!(sent, Pending::Forward(of) if *of == call));
        if let Some((id, _)) = sent {
            let params = json!({ "requestId": id });
            rpc::write_notification(lines, "$/cancel_request", &params);
            lines.push(b'\n');
        }
    }
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
