//! Requests that were sent to an agent and have no response yet.
//!
//! Owns their ids, and whether an error without an id can only mean the last of them. It may not decide what a response means: it
//! says to which request it belongs.

use super::pending::Pending;
use acpipe_json::rpc;
use acpipe_model::event::CallId;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Requests to one agent without a response.
#[derive(Debug, Default)]
pub(super) struct SentRequests {
    last_id: u64,
    pending: HashMap<u64, Pending>,
    /// `true` if an error without an id can mean something else than the last request: another message followed it, or
    /// the agent has sent output since, so that it has read the request.
    may_mean_other: bool,
}

impl SentRequests {
    pub(super) fn number_from(&mut self, before_first: u64) {
        self.last_id = before_first;
    }

    pub(super) fn send(
        &mut self,
        pending: Pending,
        params: &impl serde::Serialize,
        lines: &mut Vec<u8>,
    ) {
        let method = pending.method();
        self.add(pending, method, params, lines);
        self.may_mean_other = false;
    }

    pub(super) fn pass_on(
        &mut self,
        call: CallId,
        method: &str,
        params: Option<&RawValue>,
        lines: &mut Vec<u8>,
    ) {
        self.add(Pending::Forward(call), method, &params, lines);
    }

    fn add(
        &mut self,
        pending: Pending,
        method: &str,
        params: &impl serde::Serialize,
        lines: &mut Vec<u8>,
    ) {
        // Small positive integers are the only form of id that every agent echoes.
        self.last_id += 1;
        rpc::write_request(lines, &self.last_id, method, params);
        lines.push(b'\n');
        self.pending.insert(self.last_id, pending);
    }

    pub(super) fn withdraw(&self, call: CallId, lines: &mut Vec<u8>) {
        let mut pending = self.pending.iter();
        let sent = pending.find(|(_, sent)| matches!(sent, Pending::Forward(of) if *of == call));
        if let Some((id, _)) = sent {
            let params = json!({ "requestId": id });
            rpc::write_notification(lines, "$/cancel_request", &params);
            lines.push(b'\n');
        }
    }

    /// Forgets a prompt, whose response has no meaning any more.
    pub(super) fn forget_prompt(&mut self, call: CallId) {
        let is_it = |pending: &Pending| matches!(pending, Pending::Prompt(of) if *of == call);
        self.pending.retain(|_, pending| !is_it(pending));
    }

    /// Notes that another message was sent, or that the agent has sent output.
    pub(super) fn note_other(&mut self) {
        self.may_mean_other = true;
    }

    pub(super) fn take(&mut self, id: u64) -> Option<Pending> {
        self.pending.remove(&id)
    }

    /// Removes the only request that an error without an id can mean.
    pub(super) fn take_only(&mut self) -> Option<Pending> {
        let mut ids = self.pending.keys().copied();
        let only = ids.next().filter(|_| !self.may_mean_other);
        let only = only.filter(|_| ids.next().is_none())?;
        self.take(only)
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Pending> {
        self.pending.drain().map(|(_, pending)| pending)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Returns `true` if `initialize` has no response yet.
    pub(super) fn are_starting(&self) -> bool {
        let mut pending = self.pending.values();
        pending.any(|pending| matches!(pending, Pending::Initialize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_an_id_means_the_only_request_unless_something_followed_it() {
        let (mut sent, mut lines) = (SentRequests::default(), Vec::new());
        sent.number_from(6);
        sent.send(Pending::Prompt(CallId(1)), &json!({}), &mut lines);
        assert!(sent.get(7).is_some());
        sent.note_other();
        assert!(sent.take_only().is_none());
        sent.send(Pending::List(CallId(2)), &json!({}), &mut lines);
        assert!(sent.take_only().is_none());
        sent.forget_prompt(CallId(1));
        assert!(matches!(sent.take_only(), Some(Pending::List(CallId(2)))));
        assert!(sent.take(8).is_none());
    }

    #[test]
    fn a_request_that_was_passed_on_is_withdrawn_by_its_own_id() {
        let (mut sent, mut lines) = (SentRequests::default(), Vec::new());
        sent.pass_on(CallId(1), "_own/method", None, &mut lines);
        lines.clear();
        sent.withdraw(CallId(2), &mut lines);
        assert!(lines.is_empty());
        sent.withdraw(CallId(1), &mut lines);
        let line = String::from_utf8(lines).unwrap();
        assert!(line.contains(r#""requestId":1"#), "{line}");
    }
}
