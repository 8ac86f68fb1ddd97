//! Requests to the client: sent, answered, timed out, withdrawn. Each is answered to its agent exactly once, whoever
//! decides.

use super::{SessionMachine, Undelivered};
use crate::core::answers;
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::client_requests::{Ask, AskKind};
use crate::core::cx::Cx;
use crate::core::host::Ticket;
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::permit::{By, Decision};
use crate::core::shared::RequestOwner;
use crate::core::timeout_error::millis;
use crate::proto::wire::LedgerEntry;
use serde_json::value::RawValue;
use tracing::debug;

/// A question that the client is to be asked.
pub(super) struct Asking<'a> {
    pub turn_id: String,
    /// The key under which the dialect expects the answer.
    pub key: &'a RawValue,
    /// The file or command that is judged.
    pub ticket: Option<Ticket>,
    pub about: AskKind,
    /// Its entry in the ledger, without the decision.
    pub entry: LedgerEntry,
}

impl SessionMachine {
    /// Sends a request to the client.
    pub(super) fn ask_client<O: Outlet>(
        &mut self,
        asking: Asking<'_>,
        request: ClientRequest,
        cx: &mut Cx<'_, O>,
    ) {
        let owner = RequestOwner::Session(self.id.clone());
        let id = cx.shared.next_ask(owner);
        self.asks.push(Ask {
            id,
            agent: cx.agent.number(),
            key: asking.key.to_owned(),
            ticket: asking.ticket,
            since: cx.now,
            until: cx.until(Wait::Answer),
            turn_id: asking.turn_id,
            about: asking.about,
            size: request.size(),
            entry: Box::new(asking.entry),
        });
        // What shows the question comes before it.
        self.number_unsent(cx.client);
        cx.client.ask(id, request);
    }

    /// The client answered a request of this session; an answer that is not awaited any more changes nothing.
    pub fn client_answered<O: Outlet>(
        &mut self,
        id: AskId,
        answer: &ClientAnswer,
        cx: &mut Cx<'_, O>,
    ) {
        let Some(ask) = self.take_ask(|ask| ask.id == id) else {
            if !self.client_served(id, answer, cx) {
                debug!(id = id.0, "an answer to a request that is decided");
            }
            return;
        };
        let unknown_fields = cx.shared.client.unknown_fields;
        let policy = &cx.shared.settings.policy;
        let mut decision = match &ask.about {
            AskKind::Permission { options, rule, .. } => {
                answers::permission(options, rule, answer, policy, unknown_fields)
            }
            AskKind::Question { question, options } => {
                answers::question(question, options, answer, unknown_fields)
            }
        };
        note_delivery(&ask, &mut decision, cx);
        self.decide(ask, &decision, cx);
    }

    /// Whether it has an open question of a connection, under this key.
    #[must_use]
    pub fn has_question(&self, agent: u64, key: &RawValue) -> bool {
        let mut asks = self.asks.iter();
        asks.any(|ask| ask.agent == agent && ask.key.get() == key.get())
    }

    fn take_ask(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<Ask> {
        let at = self.asks.iter().position(wanted)?;
        Some(self.asks.remove(at))
    }

    /// A question is decided: the stream shows it, the ledger has it, the agent is answered.
    fn decide<O: Outlet>(&mut self, ask: Ask, decision: &Decision, cx: &mut Cx<'_, O>) {
        cx.close_request(ask.id);
        let question = ask.about.question();
        self.with_turn_of(&ask.turn_id, cx.client, |turn, sink| {
            turn.decide(question, decision, sink);
        });
        // The agent had to wait: that was not its silence.
        self.hear(cx.now, "answer", cx.client);
        let mut entry = *ask.entry;
        entry.waited_ms = Some(millis(cx.now.saturating_duration_since(ask.since)));
        entry.content = question.content(decision);
        if let Some(feedback) = &decision.feedback {
            entry.feedback = Some(feedback.words.clone());
            entry.feedback_delivered = Some(feedback.delivered);
        }
        if let Some(feedback) = decision.undelivered() {
            let words = Undelivered::new(&entry, decision.approved(), feedback);
            self.keep_words(&ask.turn_id, words);
        }
        let other = self.log_decision(&ask.turn_id, entry, decision, cx);
        let decision = other.as_ref().unwrap_or(decision);
        if cx.agent.number() != ask.agent {
            // A later connection may use the same keys.
            return;
        }
        if ask.about.question().is_permission() {
            self.answer_agent(&ask.key, ask.ticket, decision, cx);
        } else if let Some(connection) = &mut cx.agent.connection {
            let out = &mut connection.out;
            connection.dialect.elicited(&ask.key, decision, out);
        }
    }

    /// Logs a decision in the ledger. What cannot be logged is not allowed: returns the decision to take instead.
    pub(super) fn log_decision<O: Outlet>(
        &mut self,
        turn_id: &str,
        mut entry: LedgerEntry,
        decision: &Decision,
        cx: &mut Cx<'_, O>,
    ) -> Option<Decision> {
        let at = cx.time();
        entry.approved = decision.approved();
        if entry.approved && entry.what == "permission" && decision.by == By::Client {
            let (kind, command) = (entry.kind.as_deref(), entry.command.as_deref());
            self.granted.add(kind, &entry.paths, command);
        }
        entry.option_id = decision.choice.as_ref().map(|option| option.id.clone());
        decision.by.word().clone_into(&mut entry.by);
        entry.rule = decision.by.rule().map(str::to_owned).or(entry.rule);
        entry.reason.clone_from(&decision.reason);
        self.log.append(&Record::Decision {
            at: &at,
            turn_id,
            decision: &entry,
        });
        let written = self.write(cx);
        let lost = written.is_err() && decision.approved();
        lost.then(|| Decision::cancelled(By::End))
    }

    /// Answers a permission question of the agent, or carries out the decision about a file or command.
    pub(super) fn answer_agent<O>(
        &mut self,
        key: &RawValue,
        ticket: Option<Ticket>,
        decision: &Decision,
        cx: &mut Cx<'_, O>,
    ) {
        if let Some(ticket) = ticket {
            self.host_decided(ticket, decision, cx);
        } else if let Some(connection) = &mut cx.agent.connection {
            let out = &mut connection.out;
            connection.dialect.answer(key, decision, out);
        }
    }

    /// Decides the questions that the client has not answered in time.
    pub fn tick_asks<O: Outlet>(&mut self, cx: &mut Cx<'_, O>) {
        let now = cx.now;
        while let Some(ask) = self.take_ask(|ask| ask.until.is_some_and(|at| at <= now)) {
            let decision = match &ask.about {
                AskKind::Permission { options, rule, .. } => {
                    let by = By::Timeout(Some(rule.clone()));
                    answers::unanswered(&cx.shared.settings.policy, options, by)
                }
                AskKind::Question { options, .. } => {
                    Decision::of(false, false, options, By::Timeout(None))
                }
            };
            cx.client.withdraw(ask.id, &decision.by);
            self.decide(ask, &decision, cx);
        }
    }

    /// The agent does not wait for the answer to this question any more.
    pub fn withdrawn<O: Outlet>(&mut self, key: &RawValue, cx: &mut Cx<'_, O>) {
        let number = cx.agent.number();
        let meant = |ask: &Ask| ask.agent == number && ask.key.get() == key.get();
        if let Some(ask) = self.take_ask(meant) {
            self.give_up_ask(ask, By::Agent, cx);
        }
    }

    /// Gives up all questions of the session.
    pub(super) fn end_asks<O: Outlet>(&mut self, by: &By, cx: &mut Cx<'_, O>) {
        for ask in std::mem::take(&mut self.asks) {
            self.give_up_ask(ask, by.clone(), cx);
        }
    }

    /// Gives up the questions that were asked in one turn.
    pub(super) fn end_asks_of<O: Outlet>(&mut self, turn_id: &str, cx: &mut Cx<'_, O>) {
        while let Some(ask) = self.take_ask(|ask| ask.turn_id == turn_id) {
            self.give_up_ask(ask, By::End, cx);
        }
    }

    /// Whether a question is open whose turn is over.
    #[must_use]
    pub fn has_stale_asks(&self) -> bool {
        self.asks.iter().any(|ask| self.is_over(&ask.turn_id))
    }

    /// Gives up the questions whose turns are over, however they ended.
    pub fn sweep_asks<O: Outlet>(&mut self, cx: &mut Cx<'_, O>) {
        while let Some(at) = self.asks.iter().position(|ask| self.is_over(&ask.turn_id)) {
            let ask = self.asks.remove(at);
            self.give_up_ask(ask, By::End, cx);
        }
    }

    fn give_up_ask<O: Outlet>(&mut self, ask: Ask, by: By, cx: &mut Cx<'_, O>) {
        cx.client.withdraw(ask.id, &by);
        self.decide(ask, &Decision::cancelled(by), cx);
    }
}

/// Notes whether the agent gets a person's words with the answer.
fn note_delivery<O>(ask: &Ask, decision: &mut Decision, cx: &Cx<'_, O>) {
    let refuses = decision.choice.as_ref().map(|option| option.kind.refuses());
    let is_for_agent = ask.ticket.is_none() && ask.about.question().is_permission();
    if let (Some(feedback), Some(refuses), Some(connection)) =
        (&mut decision.feedback, refuses, &cx.agent.connection)
    {
        let is_asker = connection.number == ask.agent;
        feedback.delivered = is_for_agent && is_asker && connection.dialect.takes_words(refuses);
    }
}
