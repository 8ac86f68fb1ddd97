//! Permission questions of a turn: shown when they are asked, and again when they are decided.
//!
//! While one is open nothing may be shown of its call (notes on the emitter, rule 9): what changes meanwhile is
//! shown with the answer.

use super::call::Call;
use super::{ChunkSink, Tools};
use crate::core::event::{Permission, ToolUpdate};
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::core::policy::{Subject, Tool};
use crate::proto::chunk::{Chunk, Named};
use crate::proto::json::{Members, Raw, shortened, shortened_raw, to_raw};
use crate::proto::wire::{AskedTool, OfferedOption};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// How much of each field of a question's call is kept with the question, in bytes.
const WRITTEN: usize = 4 << 10;

/// A question that was shown.
#[derive(Debug)]
pub struct Question {
    /// Its id.
    pub id: String,
    /// Id of the tool call, where one asks.
    pub tool: Option<String>,
    /// The subagent that asks.
    pub subagent: Option<String>,
    /// What `data-permission` says of it, where it is whether a tool may run.
    pub(super) permission: Option<Members<'static>>,
    /// What the user is asked, where it is more than that.
    pub inquiry: Option<Inquiry>,
    /// What he can choose, where he is asked to choose.
    pub(super) options: Vec<OfferedOption>,
}

impl Question {
    /// Whether it is about a permission, whatever else it asks.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        self.permission.is_some()
    }
}

impl Tools {
    /// What a question is about, with all that is known of its call.
    pub fn subject(&self, asked: &ToolUpdate<'_>, cwd: &str) -> Subject {
        let asking = Tool {
            name: asked.name.as_deref(),
            title: asked.title.as_deref(),
            kind: asked.kind.as_deref(),
            input: asked.input.as_deref(),
            locations: asked.locations.as_deref(),
            content: asked.content.as_deref(),
        };
        match self.by_id.get(asked.id.as_ref()) {
            Some(&at) => Subject::of_tools(&[&asking, &self.calls[at].facts()], cwd),
            None => Subject::of_tool(&asking, cwd),
        }
    }

    /// Shows a permission question; `automatic` where the policy answers it, `calls` are those that it stands for.
    pub fn ask(
        &mut self,
        permission: &Permission<'_>,
        calls: &[String],
        automatic: bool,
        sink: &mut impl ChunkSink,
    ) -> Question {
        let at = self.call(&permission.tool);
        let id = self.next_question();
        let call = &mut self.calls[at];
        let changed = call.merge_question(&permission.tool);
        call.consent.asked = true;
        call.show_asked(changed, sink);
        let data = asked_data(permission, calls);
        show(&id, &to_raw(&data), sink);
        let question = Question {
            permission: Some(data),
            tool: Some(call.id().to_owned()),
            subagent: None,
            inquiry: None,
            options: Vec::new(),
            id,
        };
        if call.begin_question(&question.id, !automatic) {
            let options = to_raw(&permission.raw_options.map(Raw));
            request(call, &question.id, &options, automatic, sink);
        }
        question
    }

    /// Shows the answer to a question.
    pub fn decide(&mut self, question: &Question, decision: &Decision, sink: &mut impl ChunkSink) {
        self.permit(question, decision, sink);
        self.show_inquiry(question, Some(decision), sink);
    }

    /// Shows whether the tool may run, where that was asked.
    fn permit(&mut self, question: &Question, decision: &Decision, sink: &mut impl ChunkSink) {
        let (Some(data), Some(tool)) = (&question.permission, &question.tool) else {
            return;
        };
        let (approved, reason) = (decision.approved(), decision.reason.as_str());
        if let Some(&at) = self.by_id.get(tool.as_str()) {
            let call = &mut self.calls[at];
            if call.asks(&question.id) {
                respond(&question.id, approved, reason, sink);
                call.end_question(approved, sink);
            }
            self.note_settled(at);
        }
        let mut data = data.clone();
        let outcome = match &decision.choice {
            Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        data.set_owned("outcome", &outcome);
        data.set_owned("approved", &approved);
        data.set_owned("reason", &reason);
        data.set_owned("by", &decision.by.word());
        if let Some(rule) = decision.by.rule() {
            data.set_owned("rule", &rule);
        }
        if let Some(feedback) = &decision.feedback {
            data.set_owned("feedback", &feedback.words);
            data.set_owned("feedbackDelivered", &feedback.delivered);
        }
        show(&question.id, &to_raw(&data), sink);
    }

    /// Shows that the agent refused to run a tool, without a question.
    pub fn refused(&mut self, tool: &str, reason: &str, sink: &mut impl ChunkSink) {
        let at = self.call(&ToolUpdate {
            id: tool.into(),
            ..ToolUpdate::default()
        });
        let id = self.next_question();
        let call = &mut self.calls[at];
        call.consent.asked = true;
        call.show_asked(None, sink);
        if call.begin_question(&id, false) {
            request(call, &id, &to_raw(&json!([])), true, sink);
            respond(&id, false, reason, sink);
            call.end_question(false, sink);
            call.refuse(reason);
        }
        let data = json!({
            "toolCallId": tool, "options": [], "approved": false, "reason": reason, "by": "agent",
        });
        show(&id, &to_raw(&data), sink);
        self.note_settled(at);
    }

    /// The call as a client is asked about it.
    pub fn asked(&self, id: &str) -> Option<AskedTool> {
        let call = self.by_id.get(id).map(|&at| &self.calls[at]);
        call.map(Call::asked)
    }

    pub(super) fn next_question(&mut self) -> String {
        self.asked += 1;
        format!("{}.ask{}", self.message_id, self.asked)
    }
}

/// What the agent wrote in the call of its question, cut where it is long. What the policy answers at once is
/// replaced before anything else could show it.
#[must_use]
pub fn written(tool: &ToolUpdate<'_>) -> Map<String, Value> {
    let mut written = Map::new();
    let words = [("title", &tool.title), ("kind", &tool.kind)];
    for (name, word) in words {
        if let Some(word) = word {
            written.insert(
                name.to_owned(),
                shortened(&Value::from(word.as_ref()), WRITTEN),
            );
        }
    }
    let raws = [("rawInput", &tool.input), ("content", &tool.content)];
    for (name, raw) in raws {
        if let Some(raw) = raw
            .as_deref()
            .filter(|raw| !matches!(raw.get(), "{}" | "[]"))
        {
            written.insert(name.to_owned(), shortened_raw(raw, WRITTEN));
        }
    }
    written
}

/// What `data-permission` says of a question before it is decided.
fn asked_data(permission: &Permission<'_>, calls: &[String]) -> Members<'static> {
    // The agent's own fields may not take the place of ours.
    let mut data = permission.other.clone();
    data.set_owned("toolCallId", &permission.tool.id);
    data.set_owned("toolCall", &written(&permission.tool));
    if !calls.is_empty() {
        data.set_owned("standsFor", &calls);
    }
    data.set_owned("options", &permission.raw_options.map(Raw));
    if let Some(status) = &permission.tool.status {
        data.set_owned("status", status);
    }
    data.into_owned()
}

fn request(
    call: &Call,
    approval: &str,
    options: &RawValue,
    is_automatic: bool,
    sink: &mut impl ChunkSink,
) {
    let descriptor = to_raw(&Named("options", Raw(options)));
    sink.chunk(&Chunk::ToolApprovalRequest {
        approval_id: approval,
        tool_call_id: call.id(),
        approval_descriptor: Raw(&descriptor),
        is_automatic: Some(is_automatic),
    });
}

pub(super) fn respond(approval: &str, approved: bool, reason: &str, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::ToolApprovalResponse {
        approval_id: approval,
        approved,
        reason,
    });
}

fn show(approval: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataPermission {
        id: approval,
        data: Raw(data),
    });
}
