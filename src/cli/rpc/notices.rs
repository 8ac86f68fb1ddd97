//! Notifications to the client.

use acpipe_core::client::Notice;
use acpipe_json::frame::{Framing, write_framed};
use acpipe_json::rpc;
use serde::Serialize;

/// Appends a notification, unless it is only for clients that speak ACP.
pub fn write(out: &mut Vec<u8>, framing: Framing, notice: &Notice) {
    match notice {
        Notice::Activity(params) => notification(out, framing, "session/activity", params),
        Notice::SessionState(params) => notification(out, framing, "session/state", params),
        Notice::AgentState(params) => notification(out, framing, "agent/state", params),
        Notice::Presence(params) => notification(out, framing, "session/presence", params),
        Notice::UserMessage(params) => {
            notification(out, framing, "session/userMessage", params.as_ref());
        }
        Notice::Acp(_) | Notice::Restored(..) | Notice::PolicyWarning(..) => {}
    }
}

fn notification(out: &mut Vec<u8>, framing: Framing, method: &str, params: &impl Serialize) {
    write_framed(out, framing, |out| {
        rpc::write_notification(out, method, params);
    });
}
