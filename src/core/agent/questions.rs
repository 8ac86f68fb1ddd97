//! Questions of an agent that belong to no session: the client is asked, and each is answered once.

use super::cx::AgentCx;
use super::{AgentMachine, Connection};
use crate::core::answers;
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::client_requests::{Ask, AskKind, FULL, are_full};
use crate::core::error::Error;
use crate::core::event::Elicitation;
use crate::core::limits::Wait;
use crate::core::permit::{By, Decision, elicitation};
use crate::core::policy::Effect;
use crate::core::shared::RequestOwner;
use crate::core::timeout_error::millis;
use crate::core::turn::Question;
use crate::proto::wire::{LedgerEntry, QuestionParams};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};

impl AgentMachine {
    /// Asks the client a question that belongs to no session; true where it was asked.
    pub fn ask_outside<O: Outlet>(
        &mut self,
        asked: Elicitation<'_>,
        cx: &mut AgentCx<'_, O>,
    ) -> bool {
        let is_stopping = self.connection().is_none_or(Connection::is_stopping);
        if is_stopping {
            self.elicited(&asked.question, &Decision::cancelled(By::Cancel));
            return false;
        }
        if are_full(&self.questions) {
            let by = By::Policy(FULL.to_owned());
            let declined = Decision::of(false, false, &elicitation(), by);
            self.elicited(&asked.question, &declined);
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
        self.questions.push(Ask {
            id,
            agent: self.number(),
            key: asked.question,
            ticket: None,
            since: cx.now,
            until: cx.until(Wait::Answer),
            turn_id: String::new(),
            about: AskKind::Question {
                question,
                options: elicitation(),
            },
            size: request.size(),
            entry: Box::new(entry),
        });
        cx.client.ask(id, request);
        true
    }

    /// The client answered a question.
    pub fn client_answered<O>(
        &mut self,
        id: AskId,
        answer: &ClientAnswer,
        cx: &mut AgentCx<'_, O>,
    ) {
        if let Some(ask) = self.take_question(|ask| ask.id == id) {
            let (question, options) = (ask.about.question(), ask.about.options());
            let unknown_fields = cx.shared.client.unknown_fields;
            let decision = answers::question(question, options, answer, unknown_fields);
            self.decide(&ask, &decision, cx);
        }
    }

    /// The agent does not wait for the answer to this question any more; false where it is not one of these.
    pub fn withdrawn<O: Outlet>(&mut self, key: &RawValue, cx: &mut AgentCx<'_, O>) -> bool {
        let number = self.number();
        let meant = |ask: &Ask| ask.agent == number && ask.key.get() == key.get();
        let Some(ask) = self.take_question(meant) else {
            return false;
        };
        self.give_up_question(&ask, By::Agent, cx);
        true
    }

    /// Gives up all questions: the connection is over.
    pub(super) fn end_questions<O: Outlet>(&mut self, cx: &mut AgentCx<'_, O>) {
        for ask in std::mem::take(&mut self.questions) {
            self.give_up_question(&ask, By::End, cx);
        }
    }

    /// Declines the questions that the client has not answered in time.
    pub(super) fn tick_questions<O: Outlet>(&mut self, cx: &mut AgentCx<'_, O>) {
        let now = cx.now;
        while let Some(ask) = self.take_question(|ask| ask.until.is_some_and(|at| at <= now)) {
            let options = ask.about.options();
            let decision = Decision::of(false, false, options, By::Timeout(None));
            cx.client.withdraw(ask.id, &decision.by);
            self.decide(&ask, &decision, cx);
        }
    }

    pub(super) fn question_due(&self) -> Option<Instant> {
        self.questions.iter().filter_map(|ask| ask.until).min()
    }

    pub(super) fn postpone_questions(&mut self, by: Duration) {
        for until in self.questions.iter_mut().filter_map(|a| a.until.as_mut()) {
            *until += by;
        }
    }

    fn take_question(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<Ask> {
        let at = self.questions.iter().position(wanted)?;
        Some(self.questions.remove(at))
    }

    fn give_up_question<O: Outlet>(&mut self, ask: &Ask, by: By, cx: &mut AgentCx<'_, O>) {
        cx.client.withdraw(ask.id, &by);
        self.decide(ask, &Decision::cancelled(by), cx);
    }

    fn decide<O>(&mut self, ask: &Ask, decision: &Decision, cx: &mut AgentCx<'_, O>) {
        cx.shared.client_requests.remove(&ask.id);
        // A later connection may use the same keys.
        if self.number() == ask.agent {
            self.elicited(&ask.key, decision);
        }
    }

    /// Answers a question of the agent to its user.
    pub fn elicited(&mut self, key: &RawValue, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.elicited(key, decision, out);
        }
    }

    /// Refuses a permission question of a session that was not opened.
    pub fn refuse(&mut self, key: &RawValue, decision: &Decision) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.answer(key, decision, out);
        }
    }

    /// Refuses a tool that the agent reports before it runs, of a session that was not opened.
    pub fn refuse_call(&mut self, key: &RawValue) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.watched(key, Effect::Deny, out);
        }
    }

    /// Refuses a request for a file or terminal of a session that was not opened.
    pub fn refuse_host_request(&mut self, key: &RawValue, error: &Error) {
        if let Some(connection) = self.connection_mut() {
            let out = &mut connection.out;
            connection.dialect.give(key, Err(error), out);
        }
    }
}
