//! Requests of the CLI that need a response: permission requests, and tool calls that its hook reports.

use super::write;
use crate::claude::permission_requests::PendingPermission;
use crate::claude::{permission_requests, pre_tool_hook};
use acpipe_json::{Members, to_raw};
use acpipe_model::decision::{Decision, Effect};
use acpipe_model::dialect::Child;
use acpipe_model::event::{AgentEvent, ToolUpdate};
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::{RequestId, RequestKey};
use acpipe_protocol::claude::{Frame, word};
use serde::Serialize;
use serde_json::value::RawValue;
use tracing::debug;

/// Requests of a CLI process without a response. The CLI may use an id for several of them: the oldest is answered
/// first, as the core does.
#[derive(Debug, Default)]
pub struct CliRequests {
    questions: Vec<(RequestId, PendingPermission)>,
    /// Tool calls that the hook reported.
    calls: Vec<RequestId>,
}

impl CliRequests {
    /// Reads a request.
    ///
    /// # Errors
    /// It has no id, so that it cannot be answered.
    pub fn read<'a>(
        &mut self,
        session: &str,
        child: Child,
        frame: &Frame<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Vec<u8>,
    ) -> Result<(), UnusableLine> {
        let id = frame.request_id.ok_or(UnusableLine)?;
        let subtype = frame.request.map(|request| {
            let members = Members::of(request);
            word(members.get("subtype")).to_owned()
        });
        let subtype = subtype.unwrap_or_default();
        let request = frame.request.unwrap_or(RawValue::NULL);
        let key = RequestKey::new(child, id);
        let own = key.id.clone();
        match subtype.as_str() {
            "can_use_tool" => {
                let read = permission_requests::read(session, key, request);
                if let Some((question, asked)) = read {
                    self.questions.push((own, asked));
                    events.push(AgentEvent::Permission(Box::new(question)));
                    return Ok(());
                }
            }
            "hook_callback" => {
                if let Some(call) = pre_tool_hook::read(session, key, request) {
                    self.calls.push(own);
                    events.push(AgentEvent::ToolHook(Box::new(call)));
                    return Ok(());
                }
            }
            _ => {}
        }
        debug!(%subtype, "unsupported request of the agent");
        let error = format!("acpipe does not support {subtype:?} with these fields");
        refuse(id, &error, out);
        Ok(())
    }

    pub fn withdraw(&mut self, child: Child, frame: &Frame<'_>, events: &mut Vec<AgentEvent<'_>>) {
        let Some(id) = frame.request_id else {
            return;
        };
        let key = RequestKey::new(child, id);
        self.calls.retain(|call| *call != key.id);
        if self.take_question(&key).is_some() {
            events.push(AgentEvent::Withdrawn { key });
        }
    }

    fn take_question(&mut self, key: &RequestKey) -> Option<PendingPermission> {
        let at = self.questions.iter().position(|(id, _)| *id == key.id)?;
        Some(self.questions.remove(at).1)
    }

    /// Responds to a permission request, unless it was withdrawn.
    pub fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Vec<u8>) {
        if let Some(asked) = self.take_question(key) {
            let answer = permission_requests::answer(&asked, decision);
            respond(key.id(), &answer, out);
        }
    }

    /// Describes the call of an open permission request with another input.
    pub fn rewritten(&self, key: &RequestKey, input: &RawValue) -> Option<ToolUpdate<'static>> {
        let mut questions = self.questions.iter();
        let (_, asked) = questions.find(|(id, _)| *id == key.id)?;
        permission_requests::rewritten(asked, input)
    }

    pub fn answer_hook(&mut self, key: &RequestKey, effect: Effect, out: &mut Vec<u8>) {
        if let Some(at) = self.calls.iter().position(|id| *id == key.id) {
            self.calls.remove(at);
            respond(key.id(), &pre_tool_hook::answer(effect), out);
        }
    }
}

fn respond(id: &RawValue, answer: &RawValue, out: &mut Vec<u8>) {
    write_response(id, "success", "response", &answer, out);
}

pub(super) fn refuse(id: &RawValue, error: &str, out: &mut Vec<u8>) {
    write_response(id, "error", "error", &error, out);
}

/// Writes a response, with the id byte for byte as the CLI sent it.
fn write_response(
    id: &RawValue,
    subtype: &str,
    member: &'static str,
    value: &impl Serialize,
    out: &mut Vec<u8>,
) {
    let mut response = Members::default();
    response.set_owned("subtype", &subtype);
    response.set_owned("request_id", &id);
    response.set_owned(member, value);
    let mut frame = Members::default();
    frame.set_owned("type", &"control_response");
    frame.set_owned("response", &to_raw(&response));
    write(&frame, out);
}
