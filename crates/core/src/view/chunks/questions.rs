//! Chunks of permission requests and questions: when they begin, when they are decided, and when the agent
//! reports that the user has visited an address.

use super::ChunkSink;
use crate::turn::{Call, Question, written};
use acpipe_json::{Members, Raw, to_raw};
use acpipe_model::decision::Decision;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::Permission;
use acpipe_protocol::chunk::{Chunk, Named};
use acpipe_protocol::wire::QuestionAction;
use serde_json::json;
use serde_json::value::RawValue;

/// Maximum number of addresses that are remembered, equal to that of the turn.
const MOST_VISITS: usize = 16;

#[derive(Debug, Default)]
pub struct Questions {
    /// Open permission requests, with the data of their `data-permission`.
    permissions: Vec<ShownQuestion>,
    /// Questions that sent the user to an address, with the last data of their `data-question`.
    visits: Vec<ShownQuestion>,
}

#[derive(Debug)]
struct ShownQuestion {
    question: String,
    data: Members<'static>,
}

impl Questions {
    /// Shows a permission request; `calls` are the ids of the calls that it covers.
    pub fn ask(
        &mut self,
        question: &Question,
        permission: &Permission<'_>,
        calls: &[String],
        sink: &mut impl ChunkSink,
    ) {
        let data = permission_data(permission, calls);
        show_permission(&question.id, &to_raw(&data), sink);
        self.permissions.push(ShownQuestion {
            question: question.id.clone(),
            data,
        });
    }

    pub fn decide(&mut self, question: &Question, decision: &Decision, sink: &mut impl ChunkSink) {
        if question.is_permission() {
            self.decide_permission(question, decision, sink);
        }
        self.show_inquiry(question, Some(decision), sink);
    }

    fn decide_permission(
        &mut self,
        question: &Question,
        decision: &Decision,
        sink: &mut impl ChunkSink,
    ) {
        let mut open = self.permissions.iter();
        let Some(at) = open.position(|shown| shown.question == question.id) else {
            return;
        };
        let mut data = self.permissions.swap_remove(at).data;
        let outcome = match &decision.choice {
            Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        data.set_owned("outcome", &outcome);
        data.set_owned("approved", &decision.approved());
        data.set_owned("reason", &decision.reason);
        data.set_owned("by", &decision.by.word());
        if let Some(rule) = decision.by.rule() {
            data.set_owned("rule", &rule);
        }
        if let Some(feedback) = &decision.feedback {
            data.set_owned("feedback", &feedback.words);
            data.set_owned("feedbackDelivered", &feedback.delivered);
        }
        show_permission(&question.id, &to_raw(&data), sink);
    }

    pub fn show_inquiry(
        &mut self,
        question: &Question,
        decision: Option<&Decision>,
        sink: &mut impl ChunkSink,
    ) {
        let Some(elicitation) = &question.elicitation else {
            return;
        };
        let mut data = inquiry_data(question, elicitation);
        if let Some(decision) = decision {
            decided(&mut data, question, decision);
        }
        show_inquiry(&question.id, &data, sink);
        if elicitation.id.is_some() {
            self.visits.retain(|visit| visit.question != question.id);
            if self.visits.len() == MOST_VISITS {
                self.visits.remove(0);
            }
            self.visits.push(ShownQuestion {
                question: question.id.clone(),
                data,
            });
        }
    }

    pub fn url_completed(&mut self, question: &str, sink: &mut impl ChunkSink) {
        let mut visits = self.visits.iter_mut();
        if let Some(visit) = visits.find(|visit| visit.question == question) {
            visit.data.set_owned("completed", &true);
            show_inquiry(question, &visit.data, sink);
        }
    }
}

/// Shows that the agent refused to run a tool without a permission request.
pub fn show_refusal(call: &str, question: &str, reason: &str, sink: &mut impl ChunkSink) {
    let data = json!({
        "toolCallId": call, "options": [], "approved": false, "reason": reason, "by": "agent",
    });
    show_permission(question, &to_raw(&data), sink);
}

fn inquiry_data(question: &Question, elicitation: &ElicitationDetails) -> Members<'static> {
    // The agent's own fields come first, so that they cannot replace those of acpipe.
    let mut data = Members::default();
    for (name, said) in &elicitation.other {
        data.set_owned(name.clone(), said);
    }
    data.set_owned("kind", &elicitation.kind);
    data.set_owned("message", &elicitation.message);
    if let Some(tool) = &question.tool {
        data.set_owned("toolCallId", tool);
    }
    if let Some(schema) = &elicitation.schema {
        data.set_owned("schema", schema);
    }
    if let Some(url) = &elicitation.url {
        data.set_owned("url", url);
    }
    if !question.options().is_empty() {
        data.set_owned("options", &question.options());
    }
    data
}

fn decided(data: &mut Members<'static>, question: &Question, decision: &Decision) {
    let action = match &decision.choice {
        None => QuestionAction::Cancel,
        Some(_) if decision.approved() => QuestionAction::Accept,
        Some(_) => QuestionAction::Decline,
    };
    data.set_owned("action", &action);
    if let Some(content) = question.content(decision) {
        data.set_owned("content", &content);
    } else if let Some(option) = decision
        .choice
        .as_ref()
        .filter(|_| !question.options().is_empty())
    {
        let mut content = json!({ "optionId": option.id });
        if let Some(feedback) = &decision.feedback {
            content["feedback"] = feedback.words.as_str().into();
            data.set_owned("feedbackDelivered", &feedback.delivered);
        }
        data.set_owned("content", &content);
    }
    data.set_owned("reason", &decision.reason);
    data.set_owned("by", &decision.by.word());
    if let Some(rule) = decision.by.rule() {
        data.set_owned("rule", &rule);
    }
}

fn show_inquiry(id: &str, data: &Members<'static>, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataQuestion {
        id,
        data: Raw(&to_raw(data)),
    });
}

/// Data of `data-permission` before the decision.
fn permission_data(permission: &Permission<'_>, calls: &[String]) -> Members<'static> {
    // The agent's own fields come first, so that they cannot replace those of acpipe.
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

pub fn request(
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

pub fn respond(approval: &str, approved: bool, reason: &str, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::ToolApprovalResponse {
        approval_id: approval,
        approved,
        reason,
    });
}

fn show_permission(approval: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataPermission {
        id: approval,
        data: Raw(data),
    });
}
