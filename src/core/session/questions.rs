//! Elicitations: questions of the agent to the user that request no permission.

use super::SessionMachine;
use super::client_requests::RequestDraft;
use crate::core::client_request::ClientRequest;
use crate::core::client_requests::{OpenRequestKind, TOO_MANY_OPEN};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::decision::{Decision, DecisionSource, elicitation_options};
use crate::core::dialect::AgentAnswer;
use crate::core::event::Elicitation;
use crate::core::limits::Timeout;
use crate::core::request_key::RequestKey;
use crate::core::timeout_error::millis;
use crate::core::turn::with_call_id;
use crate::proto::wire::{AskedTool, LedgerEntry, QuestionParams};
use serde_json::value::RawValue;
use tracing::debug;

impl SessionMachine {
    /// Sends an elicitation of the agent to the clients.
    pub fn elicitation(&mut self, subagent: Option<&str>, asked: Elicitation<'_>, cx: &mut Cx<'_>) {
        let tool = asked.tool.as_deref();
        let turn_id = self.asking_turn(tool, cx);
        let allowed = self.talk.may_act(tool.unwrap_or_default()) && cx.agent.is_serving();
        let Some(turn_id) = turn_id.filter(|_| allowed) else {
            debug!("a question to the user after a cancel");
            answer(&asked.key, &Decision::cancelled(DecisionSource::Cancel), cx);
            return;
        };
        if self.talk.output.requests().are_full() {
            let by = DecisionSource::Policy(TOO_MANY_OPEN.to_owned());
            let declined = Decision::of(false, false, &elicitation_options(), by);
            answer(&asked.key, &declined, cx);
            return;
        }
        let title = asked.elicitation.message.clone();
        self.talk.note_activity(cx.now, "question", cx.clients);
        let mut shown = None;
        self.talk
            .turns
            .with_turn_of(&turn_id, &mut self.talk.output, cx.clients, |turn, sink| {
                let question = turn.elicit(subagent, tool, asked.elicitation, sink);
                let call = turn.asked(&question);
                shown = Some((question, call));
            });
        let Some((question, tool_call)) = shown else {
            return;
        };
        let called = tool_call.as_ref();
        let entry = LedgerEntry {
            what: "question".to_owned(),
            question_id: question.id.clone(),
            tool_call_id: question.tool.clone(),
            tool_name: called.map(|call| call.tool_name.clone()),
            kind: called.and_then(|call| call.kind.clone()),
            title: Some(title),
            ..LedgerEntry::default()
        };
        let asking = RequestDraft {
            turn_id,
            key: &asked.key,
            ticket: None,
            about: OpenRequestKind::Question {
                question,
                options: elicitation_options(),
            },
            entry,
        };
        let own = |params| with_call_id(params, |_| tool.map(str::to_owned));
        let renamed = asked.acp.and_then(own);
        let original = renamed.as_deref().or(asked.acp);
        self.ask_user(asking, tool_call, original, cx);
    }

    /// Sends a question for the user to the clients.
    pub(super) fn ask_user(
        &mut self,
        asking: RequestDraft<'_>,
        tool_call: Option<AskedTool>,
        original: Option<&RawValue>,
        cx: &mut Cx<'_>,
    ) {
        let question = asking.about.question();
        let Some(elicitation) = &question.elicitation else {
            return;
        };
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: Some(self.talk.id.clone()),
            turn_id: Some(asking.turn_id.clone()).filter(|id| !id.is_empty()),
            question_id: question.id.clone(),
            kind: elicitation.kind,
            message: elicitation.message.clone(),
            schema: elicitation.schema.clone(),
            url: elicitation.url.clone(),
            options: question.options().to_vec(),
            tool_call,
            deadline_ms: cx.limits().of(Timeout::Answer).map(millis),
        }));
        let request = self
            .talk
            .with_original(request, "elicitation/create", original);
        self.ask_client(asking, request, cx);
    }

    /// Records that a URL elicitation was completed. Returns `true` if an open turn knows the id.
    pub fn url_completed(&mut self, id: &str, client: &mut dyn ClientSinks) -> bool {
        let running = self.talk.turns.prompted().map(|r| r.turn_id.clone());
        let background_turn = self.talk.turns.background().map(|u| u.turn_id.clone());
        let mut known = false;
        for turn_id in running.into_iter().chain(background_turn) {
            self.talk
                .turns
                .with_turn_of(&turn_id, &mut self.talk.output, client, |turn, sink| {
                    known |= turn.url_completed(id, sink);
                });
        }
        known
    }
}

/// Answers an elicitation of the agent.
fn answer(key: &RequestKey, decision: &Decision, cx: &mut Cx<'_>) {
    if let Some(connection) = &mut cx.agent.connection {
        connection.answer(key, AgentAnswer::Elicitation(decision));
    }
}
