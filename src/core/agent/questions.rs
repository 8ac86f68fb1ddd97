//! Elicitations of an agent that belong to no session: sent to the clients, and each answered once.

use super::cx::AgentCx;
use super::{AgentMachine, Connection};
use crate::core::answers;
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::ClientId;
use crate::core::client_requests::{Answered, Ask, AskKind, FULL, NO_ANSWERS, are_full};
use crate::core::client_sink::{ClientSink as _, ClientSinks};
use crate::core::error::Error;
use crate::core::event::Elicitation;
use crate::core::limits::Wait;
use crate::core::permit::{By, Decision, elicitation};
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
    pub fn ask_outside<C: ClientSinks>(
        &mut self,
        asked: Elicitation<'_>,
        cx: &mut AgentCx<'_, C>,
    ) -> bool {
        let is_stopping = self.connection().is_none_or(Connection::is_stopping);
        if is_stopping {
            self.elicited(&asked.key, &Decision::cancelled(By::Cancel));
            return false;
        }
        if are_full(&self.questions) {
            let by = By::Policy(FULL.to_owned());
            let declined = Decision::of(false, false, &elicitation(), by);
            self.elicited(&asked.key, &declined);
            return false;
        }
        let title = asked.inquiry.message.clone();
        let question = Question::outside(cx.shared.next_id("ask"), asked.inquiry);
        let Some(inquiry) = &question.inquiry else {
            return false;
        };
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: None,
            turn_id: None,
            question_id: question.id.clone(),
            kind: inquiry.kind,
            message: inquiry.message.clone(),
            schema: inquiry.schema.clone(),
            url: inquiry.url.clone(),
            options: question.options().to_vec(),
            tool_call: None,
            deadline_ms: cx.shared.settings.limits.of(Wait::Answer).map(millis),
        }));
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
            .that_can(|can| request.is_answered_with(can));
        let able: Vec<ClientId> = able.collect();
        for client in &able {
            if let Some(sink) = cx.clients.sink(*client) {
                sink.ask(id, &request);
            }
        }
        let is_unanswerable = able.is_empty();
        self.questions.push(Ask {
            id,
            agent: self.number(),
            key: asked.key,
            ticket: None,
            since: cx.now,
            until: cx.until(Wait::Answer),
            turn_id: String::new(),
            about: AskKind::Question {
                question,
                options: elicitation(),
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
    pub fn client_left<C: ClientSinks>(&mut self, client: ClientId, cx: &mut AgentCx<'_, C>) {
        let questions = self.questions.iter_mut();
        let unanswerable = questions.filter_map(|ask| ask.note_left(client).then_some(ask.id));
        for id in unanswerable.collect::<Vec<_>>() {
            self.decline_unanswerable(id, cx);
        }
    }

    fn decline_unanswerable<C: ClientSinks>(&mut self, id: AskId, cx: &mut AgentCx<'_, C>) {
        if let Some(ask) = self.take_question(|ask| ask.id == id) {
            let by = By::Policy(NO_ANSWERS.to_owned());
            let decision = Decision::of(false, false, ask.about.options(), by);
            self.decide(&ask, &decision, cx);
        }
    }

    /// Handles a client's answer; the first valid answer decides.
    pub fn client_answered<C: ClientSinks>(
        &mut self,
        client: ClientId,
        id: AskId,
        answer: &ClientAnswer,
        cx: &mut AgentCx<'_, C>,
    ) {
        let Some(at) = self.questions.iter().position(|ask| ask.id == id) else {
            return;
        };
        let ask = &mut self.questions[at];
        let (question, options) = (ask.about.question(), ask.about.options());
        let unknown_fields = cx.shared.clients.unknown_fields(client);
        let decision = answers::question(question, options, answer, unknown_fields);
        if let Answered::Ignored = ask.note_answer(client, decision.is_ok()) {
            return;
        }
        let ask = self.questions.remove(at);
        let decision = decision.unwrap_or_else(|refusal| *refusal);
        withdraw(&ask, &By::OtherClient, cx);
        self.decide(&ask, &decision, cx);
    }

    /// Handles an elicitation that the agent has withdrawn; returns `false` if this machine does not have it.
    pub fn withdrawn<C: ClientSinks>(&mut self, key: &RequestKey, cx: &mut AgentCx<'_, C>) -> bool {
        let number = self.number();
        let meant = |ask: &Ask| ask.agent == number && ask.key == *key;
        let Some(ask) = self.take_question(meant) else {
            return false;
        };
        self.give_up_question(&ask, By::Agent, cx);
        true
    }

    /// Cancels the elicitations of processes that have ended.
    pub(super) fn end_questions_of_ended<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) {
        let connection = self.connection();
        let takes = |ask: &Ask| connection.is_some_and(|c| c.dialect.takes_answer(&ask.key));
        let ended = self.questions.iter().filter(|ask| !takes(ask));
        for id in ended.map(|ask| ask.id).collect::<Vec<_>>() {
            if let Some(ask) = self.take_question(|ask| ask.id == id) {
                self.give_up_question(&ask, By::End, cx);
            }
        }
    }

    /// Cancels all elicitations after the end of the connection.
    pub(super) fn end_questions<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) {
        for ask in std::mem::take(&mut self.questions) {
            self.give_up_question(&ask, By::End, cx);
        }
    }

    /// Declines the elicitations that no client has answered in time.
    pub(super) fn time_out_questions<C: ClientSinks>(&mut self, cx: &mut AgentCx<'_, C>) {
        let now = cx.now;
        while let Some(ask) = self.take_question(|ask| ask.until.is_some_and(|at| at <= now)) {
            let options = ask.about.options();
            let decision = Decision::of(false, false, options, By::Timeout(None));
            withdraw(&ask, &decision.by, cx);
            self.decide(&ask, &decision, cx);
        }
    }

    fn take_question(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<Ask> {
        let at = self.questions.iter().position(wanted)?;
        Some(self.questions.remove(at))
    }

    fn give_up_question<C: ClientSinks>(&mut self, ask: &Ask, by: By, cx: &mut AgentCx<'_, C>) {
        withdraw(ask, &by, cx);
        self.decide(ask, &Decision::cancelled(by), cx);
    }

    fn decide<C>(&mut self, ask: &Ask, decision: &Decision, cx: &mut AgentCx<'_, C>) {
        cx.shared.client_requests.remove(&ask.id);
        // A later connection may use the same keys.
        if self.number() == ask.agent {
            self.elicited(&ask.key, decision);
        }
    }

    /// Answers an elicitation.
    pub fn elicited(&mut self, key: &RequestKey, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.elicited(key, decision, out);
        }
    }

    /// Refuses a permission request of a session that is not open.
    pub fn refuse(&mut self, key: &RequestKey, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.answer(key, decision, out);
        }
    }

    /// Refuses a tool call that the agent reports before it runs, in a session that is not open.
    pub fn refuse_call(&mut self, key: &RequestKey) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.watched(key, Effect::Deny, out);
        }
    }

    /// Refuses a file or terminal request of a session that is not open.
    pub fn refuse_host_request(&mut self, key: &RequestKey, error: &Error) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.give(key, Err(error), out);
        }
    }
}

/// Withdraws an elicitation from all clients that could still answer it.
fn withdraw<C: ClientSinks>(ask: &Ask, by: &By, cx: &mut AgentCx<'_, C>) {
    for client in &ask.asked {
        if let Some(sink) = cx.clients.sink(*client) {
            sink.withdraw(ask.id, by);
        }
    }
}
