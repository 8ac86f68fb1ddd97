//! Control requests to the CLI that have no response yet.
//!
//! Owns their ids and what each is for. It may not decide what a response means.

use super::write;
use acpipe_model::event::CallId;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Control requests to one process without a response.
#[derive(Debug, Default)]
pub(super) struct SentControls {
    /// By our ids.
    pending: HashMap<u64, PendingControl>,
    last_id: u64,
}

/// Control request without a response.
#[derive(Debug)]
pub(super) enum PendingControl {
    Initialize,
    Servers,
    Interrupt,
    /// Withdrawal of a prompt.
    Withdraw,
    Set {
        call: CallId,
        mode: Option<String>,
    },
}

impl SentControls {
    pub(super) fn number_from(&mut self, before_first: u64) {
        self.last_id = before_first;
    }

    pub(super) fn send(&mut self, pending: PendingControl, request: &Value, out: &mut Vec<u8>) {
        self.last_id += 1;
        self.pending.insert(self.last_id, pending);
        let id = self.last_id.to_string();
        let frame = json!({ "type": "control_request", "request_id": id, "request": request });
        write(&frame, out);
    }

    pub(super) fn interrupt(&mut self, out: &mut Vec<u8>) {
        self.send(
            PendingControl::Interrupt,
            &json!({ "subtype": "interrupt" }),
            out,
        );
    }

    /// Writes the withdrawal of a message that waits in the CLI.
    pub(super) fn withdraw(&mut self, message: &str, out: &mut Vec<u8>) {
        let request = json!({ "subtype": "cancel_async_message", "message_uuid": message });
        self.send(PendingControl::Withdraw, &request, out);
    }

    pub(super) fn take(&mut self, id: u64) -> Option<PendingControl> {
        self.pending.remove(&id)
    }

    /// Removes all requests; returns the calls that set something.
    pub(super) fn into_settings(self) -> impl Iterator<Item = CallId> {
        self.pending
            .into_values()
            .filter_map(|pending| match pending {
                PendingControl::Set { call, .. } => Some(call),
                PendingControl::Initialize
                | PendingControl::Servers
                | PendingControl::Interrupt
                | PendingControl::Withdraw => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_numbered_and_taken_once() {
        let (mut sent, mut out) = (SentControls::default(), Vec::new());
        sent.number_from(4);
        sent.interrupt(&mut out);
        sent.withdraw("message", &mut out);
        assert!(matches!(sent.take(5), Some(PendingControl::Interrupt)));
        assert!(sent.take(5).is_none());
        let lines = String::from_utf8(out).unwrap();
        assert!(
            lines
                .lines()
                .last()
                .unwrap()
                .contains(r#""request_id":"6""#)
        );
        assert_eq!(sent.into_settings().count(), 0);
    }
}
