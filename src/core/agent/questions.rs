//! Elicitations of an agent that belong to no session: sent to the clients, and each answered once.

use super::cx::AgentCx;
use super::{AgentMachine, Connection};
use crate::core::acp_client::AcpRequest;
use crate::core::answers;
use crate::core::client::ClientId;
use crate::core::client_request::{ClientAnswer, ClientRequest, ClientRequestId};
use crate::core::client_requests::{
    NO_QUESTION_CAPABILITY, OpenRequest, OpenRequestKind, TOO_MANY_OPEN,
};
use crate::core::decision::{Decision, DecisionSource, elicitation_options};
use crate::core::dialect::AgentAnswer;
use crate::core::error::Error;
use crate::core::event::Elicitation;
use crate::core::limits::Timeout;
use crate::core::policy::Effect;
use crate::core::request_key::RequestKey;
use crate::core::shared::RequestOwner;
use crate::core::timeout_error::millis;
use crate::core::turn::Question;
use crate::proto::wire::{LedgerEntry, QuestionParams};
use std::sync::Arc;

impl AgentMachine {
    /// Sends an elicitation that belongs to no session to the clients. Returns `false` if it was declined or
    /// cancelled at once.
    pub fn ask_without_session(&mut self, asked: Elicitation<'_>, cx: &mut AgentCx<'_>) -> bool {
        let is_stopping = self.connection().is_none_or(Connection::is_stopping);
        if is_stopping {
            self.answer_elicitation(&asked.key, &Decision::cancelled(DecisionSource::Cancel));
            return false;
        }
        if self.questions.are_full() {
            let by = DecisionSource::Policy(TOO_MANY_OPEN.to_owned());
            let declined = Decision::of(false, false, &elicitation_options(), by);
            self.answer_elicitation(&asked.key, &declined);
            return false;
        }
        let title = asked.elicitation.message.clone();
        let question = Question::outside(cx.shared.next_id("ask"), asked.elicitation);
        let Some(elicitation) = &question.elicitation else {
            return false;
        };
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: None,
            turn_id: None,
            question_id: question.id.clone(),
            kind: elicitation.kind,
            message: elicitation.message.clone(),
            schema: elicitation.schema.clone(),
            url: elicitation.url.clone(),
            options: question.options().to_vec(),
            tool_call: None,
            deadline_ms: self
                .limits(&cx.shared.settings)
                .of(Timeout::Answer)
                .map(millis),
        }));
        let acp = asked.acp.filter(|_| cx.shared.clients.acp().is_some());
        let request = match acp {
            Some(params) => {
                let original = AcpRequest::of("elicitation/create", Some(params));
                ClientRequest::Acp(Box::new(original), Some(Box::new(request)))
            }
            None => request,
        };
        let entry = LedgerEntry {
            what: "question".to_owned(),
            question_id: question.id.clone(),
            title: Some(title),
            ..LedgerEntry::default()
        };
        let id = cx.shared.next_ask(RequestOwner::Agent(self.reference));
        let request = Arc::new(request);
        let able = cx
            .shared
            .clients
            .with_capability(|can| request.is_answered_with(can));
        let able: Vec<ClientId> = able.collect();
        for client in &able {
            if let Some(sink) = cx.clients.sink(*client) {
                sink.ask(id, &request);
            }
        }
        let is_unanswerable = able.is_empty();
        self.questions.push(OpenRequest {
            id,
            agent: self.number(),
            key: asked.key,
            ticket: None,
            since: cx.now,
            until: self.until(Timeout::Answer, cx),
            turn_id: String::new(),
            about: OpenRequestKind::Question {
                question,
                options: elicitation_options(),
            },
            size: request.size(),
            request,
            asked: able,
            entry: Box::new(entry),
        });
        if is_unanswerable {
            self.decline_unanswerable(id, cx);
        }
        !is_unanswerable
    }

    /// Handles a client that has left: declines elicitations that no other client can answer.
    pub fn client_left(&mut self, client: ClientId, cx: &mut AgentCx<'_>) {
        for id in self.questions.remove_client(client) {
            self.decline_unanswerable(id, cx);
        }
    }

    fn decline_unanswerable(&mut self, id: ClientRequestId, cx: &mut AgentCx<'_>) {
        if let Some(open) = self.questions.take(id) {
            let by = DecisionSource::Policy(NO_QUESTION_CAPABILITY.to_owned());
            let decision = Decision::of(false, false, open.about.options(), by);
            self.decide(&open, &decision, cx);
        }
    }

    /// Handles a client's answer; the first valid answer decides.
    pub fn client_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        cx: &mut AgentCx<'_>,
    ) {
        let Some(open) = self.questions.get(id) else {
            return;
        };
        let (question, options) = (open.about.question(), open.about.options());
        let unknown_fields = cx.shared.clients.unknown_fields(client);
        let decision = answers::question(question, options, answer, unknown_fields);
        let Some(open) = self.questions.answered(id, client, decision.is_ok()) else {
            return;
        };
        let is_original =
            matches!(*open.request, ClientRequest::Acp(..)) && cx.shared.clients.speaks_acp(client);
        // As for the questions of sessions: an error is passed on, an invalid result is not.
        let passes = is_original && (decision.is_ok() || answer.is_err());
        let own = passes.then(|| answer.clone());
        let mut decision = decision.unwrap_or_else(|refusal| *refusal);
        decision.acp = own;
        let by = DecisionSource::OtherClient(cx.shared.clients.deciding(client));
        withdraw(&open, &by, cx);
        self.decide(&open, &decision, cx);
    }

    /// Handles an elicitation that the agent has withdrawn, or whose id it uses for another request; returns `false` if
    /// this machine does not have it.
    pub fn withdrawn(&mut self, key: &RequestKey, cx: &mut AgentCx<'_>) -> bool {
        let number = self.number();
        let meant = |open: &OpenRequest| open.agent == number && open.key == *key;
        let Some(open) = self.questions.take_first(meant) else {
            return false;
        };
        self.give_up_question(&open, DecisionSource::Agent, cx);
        true
    }

    /// Cancels the elicitations of processes that have ended.
    pub(super) fn end_questions_of_ended(&mut self, cx: &mut AgentCx<'_>) {
        let connection = self.connection();
        let takes = |open: &OpenRequest| connection.is_some_and(|c| c.request(&open.key).is_some());
        let ended = self.questions.iter().filter(|open| !takes(open));
        for id in ended.map(|open| open.id).collect::<Vec<_>>() {
            if let Some(open) = self.questions.take(id) {
                self.give_up_question(&open, DecisionSource::End, cx);
            }
        }
    }

    /// Cancels all elicitations after the end of the connection.
    pub(super) fn end_questions(&mut self, cx: &mut AgentCx<'_>) {
        for open in self.questions.take_all() {
            self.give_up_question(&open, DecisionSource::End, cx);
        }
    }

    /// Declines the elicitations that no client has answered in time.
    pub(super) fn time_out_questions(&mut self, cx: &mut AgentCx<'_>) {
        while let Some(open) = self.questions.take_due(cx.now) {
            let options = open.about.options();
            let decision = Decision::of(false, false, options, DecisionSource::Timeout(None));
            withdraw(&open, &decision.by, cx);
            self.decide(&open, &decision, cx);
        }
    }

    fn give_up_question(&mut self, open: &OpenRequest, by: DecisionSource, cx: &mut AgentCx<'_>) {
        withdraw(open, &by, cx);
        self.decide(open, &Decision::cancelled(by), cx);
    }

    fn decide(&mut self, open: &OpenRequest, decision: &Decision, cx: &mut AgentCx<'_>) {
        cx.shared.client_requests.remove(&open.id);
        let question = open.about.question();
        question.learn_typed(decision, &cx.shared.settings.secrets);
        // A later connection may use the same keys.
        if self.number() == open.agent {
            self.answer_elicitation(&open.key, decision);
        }
    }

    /// Answers an elicitation.
    pub fn answer_elicitation(&mut self, key: &RequestKey, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            connection.answer(key, AgentAnswer::Elicitation(decision));
        }
    }

    /// Refuses a permission request of a session that is not open.
    pub fn refuse(&mut self, key: &RequestKey, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            connection.answer(key, AgentAnswer::Permission(decision));
        }
    }

    /// Refuses a tool call that the agent reports before it runs, in a session that is not open.
    pub fn refuse_call(&mut self, key: &RequestKey) {
        if let Some(connection) = self.connection_mut() {
            connection.answer(key, AgentAnswer::Hook(Effect::Deny));
        }
    }

    /// Refuses a file or terminal request of a session that is not open.
    pub fn refuse_host_request(&mut self, key: &RequestKey, error: &Error) {
        if let Some(connection) = self.connection_mut() {
            connection.answer(key, AgentAnswer::Host(Err(error)));
        }
    }
}

/// Withdraws an elicitation from all clients that could still answer it.
fn withdraw(open: &OpenRequest, by: &DecisionSource, cx: &mut AgentCx<'_>) {
    for client in &open.asked {
        if let Some(sink) = cx.clients.sink(*client) {
            sink.withdraw(open.id, by);
        }
    }
}
