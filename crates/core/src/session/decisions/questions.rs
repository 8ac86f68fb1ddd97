//! Elicitations: questions of the agent to the user that request no permission.

use crate::answers::refusal;
use crate::client_request::ClientRequest;
use crate::client_requests::{OpenRequest, OpenRequestKind, TOO_MANY_OPEN};
use crate::cx::Cx;
use crate::session::decisions::client_requests::RequestDraft;
use crate::session::decisions::updated_call::updated_call;
use crate::session::policy_notices::PolicyNotice;
use crate::session::{Conversation, Decisions};
use crate::timeout_error::millis;
use crate::turn::{Question, with_call_id};
use acpipe_model::decision::{Decision, DecisionSource, elicitation_options};
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::error::clip;
use acpipe_model::event::{Elicitation, ToolUpdate};
use acpipe_model::limits::Timeout;
use acpipe_model::request_key::RequestKey;
use acpipe_policy::{Effect, Policy, Subject, ToolProperties};
use acpipe_protocol::wire::{AskedTool, LedgerEntry, QuestionParams};
use serde_json::value::RawValue;
use tracing::debug;

impl Decisions {
    pub fn elicitation(
        &mut self,
        subagent: Option<&str>,
        asked: Elicitation<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let tool = asked.tool.as_deref();
        let turn_id = self.asking_turn(tool, talk, cx);
        let allowed = talk.may_act(tool.unwrap_or_default()) && cx.agent.is_serving();
        let Some(turn_id) = turn_id.filter(|_| allowed) else {
            debug!("a question to the user after a cancel");
            answer(&asked.key, &Decision::cancelled(DecisionSource::Cancel), cx);
            return;
        };
        if talk.output.requests().are_full() {
            let by = DecisionSource::Policy(TOO_MANY_OPEN.to_owned());
            let declined = Decision::of(false, false, &elicitation_options(), by);
            answer(&asked.key, &declined, cx);
            return;
        }
        let title = asked.elicitation.message.clone();
        let subject = Subject::of_question(&title, &talk.cwd);
        let verdict = self.verdict(&subject, talk, cx);
        talk.note_activity(cx.now, "question", cx.clients);
        let mut shown = None;
        talk.turns
            .with_turn_of(&turn_id, &mut talk.output, cx.clients, |turn, sink| {
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
        if verdict.effect == Effect::Deny {
            let by = DecisionSource::Policy(verdict.by);
            let declined = Decision::of(false, false, &elicitation_options(), by);
            self.show_declined_question(&turn_id, &question, &declined, talk, cx);
            talk.turns
                .with_turn_of(&turn_id, &mut talk.output, cx.clients, |turn, sink| {
                    turn.decide(&question, &declined, sink);
                });
            self.log_decision(&turn_id, entry, &declined, talk, cx);
            answer(&asked.key, &declined, cx);
            return;
        }
        let asking = RequestDraft {
            turn_id,
            key: &asked.key,
            ticket: None,
            subject: Some(Box::new(subject)),
            about: OpenRequestKind::Question {
                question,
                options: elicitation_options(),
            },
            entry,
        };
        let own = |params| with_call_id(params, |_| tool.map(str::to_owned));
        let renamed = asked.acp.and_then(own);
        let original = renamed.as_deref().or(asked.acp);
        self.ask_user(asking, tool_call, original, talk, cx);
    }

    pub fn show_declined_question(
        &mut self,
        turn_id: &str,
        question: &Question,
        declined: &Decision,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let message = question.elicitation.as_ref();
        let message = message.map_or("", |elicitation| &elicitation.message);
        let rule = declined.by.rule().unwrap_or_default();
        let description = format!("{:?} was not asked: {rule}", clip(message));
        let notice = PolicyNotice {
            severity: "info",
            title: "The policy declined a question of the agent",
            description: &description,
            call: None,
        };
        notice.show(Some(turn_id), &mut talk.output, cx.clients);
    }

    pub fn ask_user(
        &mut self,
        asking: RequestDraft<'_>,
        tool_call: Option<AskedTool>,
        original: Option<&RawValue>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let question = asking.about.question();
        let Some(elicitation) = &question.elicitation else {
            return;
        };
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: Some(talk.id.clone()),
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
        let request = talk.with_original(request, "elicitation/create", original);
        self.ask_client(asking, request, talk, cx);
    }
}

fn answer(key: &RequestKey, decision: &Decision, cx: &mut Cx<'_>) {
    if let Some(connection) = &mut cx.agent.connection {
        connection.answer(key, AgentAnswer::Elicitation(decision));
    }
}

impl Decisions {
    /// Checks that the call may run with the input that the client gives.
    ///
    /// # Errors
    /// The option refuses the call, the agent runs it only with its own input, or the policy denies it with
    /// the new input. The error is the decision to use if no other client can answer.
    pub fn check_updated_input(
        &self,
        open: &OpenRequest,
        decision: Decision,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Result<Decision, Box<Decision>> {
        if decision.updated_input.is_none() {
            return Ok(decision);
        }
        let options = open.about.options();
        let refused = |why: &str| Err(Box::new(refusal(options, why)));
        if !decision.approved() {
            return refused("updatedInput needs an option that allows the call");
        }
        let Some(call) = updated_call(open, &decision, cx) else {
            return refused(
                "updatedInput is not possible: the agent runs calls only with their own input",
            );
        };
        let verdict = self.verdict(&self.subject_of_call(&call, talk), talk, cx);
        if verdict.effect != Effect::Deny {
            return Ok(decision);
        }
        let by = format!("{}, for the input that the client gave", verdict.by);
        let by = DecisionSource::Policy(by);
        Err(Box::new(Decision::of(false, false, options, by)))
    }

    /// Returns the subject of a call that is described by an update alone.
    #[must_use]
    pub fn subject_of_call(&self, call: &ToolUpdate<'_>, talk: &Conversation) -> Subject {
        let tool = ToolProperties {
            name: call.name.as_deref(),
            title: call.title.as_deref(),
            kind: call.kind.as_deref(),
            input: call.input.as_deref(),
            locations: call.locations.as_deref(),
            content: None,
        };
        Subject::of_tool(&tool, &talk.cwd)
    }
}

/// Returns the rule by which the terms of the running turn deny a question of the agent; `None` without a turn. `own`
/// is the policy of the agent.
#[must_use]
pub fn denies_question(message: &str, own: &Policy, talk: &Conversation) -> Option<String> {
    talk.turns.id()?;
    let stricter = talk.terms.stricter();
    let policy = stricter.as_ref().map_or(own, |terms| &terms.policy);
    let subject = Subject::of_question(message, &talk.cwd);
    let verdict = policy.judge_in(&subject, talk.settings.options());
    (verdict.effect == Effect::Deny).then_some(verdict.by)
}
