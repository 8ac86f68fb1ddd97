//! Client requests: sent, answered, timed out, withdrawn. The agent gets exactly one answer to each, whoever
//! decides.

use super::{SessionMachine, Undelivered};
use crate::core::answers;
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::ClientId;
use crate::core::client_requests::{Answered, Ask, AskKind, NO_ANSWERS, NOBODY};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::host::Ticket;
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::permit::{By, Decision};
use crate::core::request_key::RequestKey;
use crate::core::shared::RequestOwner;
use crate::core::timeout_error::millis;
use crate::proto::wire::{ClientCapabilities, LedgerEntry};
use std::sync::Arc;
use tracing::debug;

/// A question about to be sent to clients.
pub(super) struct Asking<'a> {
    pub turn_id: String,
    pub key: &'a RequestKey,
    /// The file or terminal request that is judged; `None` for a request of the agent itself.
    pub ticket: Option<Ticket>,
    pub about: AskKind,
    /// Ledger entry without the decision.
    pub entry: LedgerEntry,
}

impl SessionMachine {
    /// Sends a request to all subscribed clients that can answer it. Without such a client it is decided at
    /// once.
    pub(super) fn ask_client<C: ClientSinks>(
        &mut self,
        asking: Asking<'_>,
        request: ClientRequest,
        cx: &mut Cx<'_, C>,
    ) {
        let owner = RequestOwner::Session(self.id.clone());
        let id = cx.shared.next_ask(owner);
        let request = Arc::new(request);
        let asked = self.able(|can| request.is_answered_with(can), cx);
        // Clients need the chunks that show the question before the request.
        self.number_unsent(cx.clients);
        let seq = self.log.seq();
        for client in &asked {
            let to_send = (id, &request);
            self.subscribers.request(*client, seq, to_send, cx.clients);
        }
        let is_unanswerable = asked.is_empty();
        self.asks.push(Ask {
            id,
            agent: cx.agent.number(),
            key: asking.key.clone(),
            ticket: asking.ticket,
            since: cx.now,
            until: cx.until(Wait::Answer),
            turn_id: asking.turn_id,
            about: asking.about,
            size: request.size(),
            request,
            asked,
            entry: Box::new(asking.entry),
        });
        if is_unanswerable {
            self.decide_unanswerable(id, cx);
        }
    }

    /// Returns the subscribed clients that have a capability.
    pub(super) fn able<C>(
        &self,
        has: impl Fn(&ClientCapabilities) -> bool,
        cx: &Cx<'_, C>,
    ) -> Vec<ClientId> {
        let subscribed = self.subscribers.clients();
        let able = subscribed.filter(|client| cx.shared.clients.can(*client, &has));
        able.collect()
    }

    /// Sends the open requests to a client that has just subscribed.
    pub(super) fn ask_also<C: ClientSinks>(&mut self, client: ClientId, cx: &mut Cx<'_, C>) {
        let Some(declaration) = cx.shared.clients.get(client) else {
            return;
        };
        let can = declaration.capabilities;
        let seq = self.log.seq();
        for ask in &mut self.asks {
            if ask.request.is_answered_with(&can) && !ask.asked.contains(&client) {
                ask.asked.push(client);
                let to_send = (ask.id, &ask.request);
                self.subscribers.request(client, seq, to_send, cx.clients);
            }
        }
    }

    /// Handles a client's departure: requests that no other client can answer are decided.
    pub(super) fn end_asks_to<C: ClientSinks>(&mut self, client: ClientId, cx: &mut Cx<'_, C>) {
        let asks = self.asks.iter_mut();
        let unanswerable = asks.filter_map(|ask| ask.note_left(client).then_some(ask.id));
        for id in unanswerable.collect::<Vec<_>>() {
            self.decide_unanswerable(id, cx);
        }
    }

    /// Decides a request that no client can answer.
    fn decide_unanswerable<C: ClientSinks>(&mut self, id: AskId, cx: &mut Cx<'_, C>) {
        let Some(ask) = self.take_ask(|ask| ask.id == id) else {
            return;
        };
        let policy = &cx.shared.settings.policy;
        let decision = match &ask.about {
            AskKind::Permission { options, rule, .. } => {
                let by = By::Policy(format!("{rule}, but {NOBODY}"));
                answers::unanswered(policy, options, by)
            }
            AskKind::Question { options, .. } => {
                let by = By::Policy(NO_ANSWERS.to_owned());
                Decision::of(false, false, options, by)
            }
        };
        self.decide(ask, &decision, cx);
    }

    /// Handles a client's response to a request of this session. The first valid response decides. A response
    /// to a request that is no longer open is ignored.
    pub fn client_answered<C: ClientSinks>(
        &mut self,
        client: ClientId,
        id: AskId,
        answer: &ClientAnswer,
        cx: &mut Cx<'_, C>,
    ) {
        let Some(at) = self.asks.iter().position(|ask| ask.id == id) else {
            if !self.client_served(client, id, answer, cx) {
                debug!(id = id.0, "response to a request that is already answered");
            }
            return;
        };
        let ask = &mut self.asks[at];
        let unknown_fields = cx.shared.clients.unknown_fields(client);
        let policy = &cx.shared.settings.policy;
        let decision = match &ask.about {
            AskKind::Permission { options, rule, .. } => {
                answers::permission(options, rule, answer, policy, unknown_fields)
            }
            AskKind::Question { question, options } => {
                answers::question(question, options, answer, unknown_fields)
            }
        };
        if let Answered::Ignored = ask.note_answer(client, decision.is_ok()) {
            debug!(
                id = id.0,
                "invalid response; other clients can still answer"
            );
            return;
        }
        let ask = self.asks.remove(at);
        let mut decision = decision.unwrap_or_else(|refusal| *refusal);
        note_delivery(&ask, &mut decision, cx);
        self.withdraw_ask(&ask, &By::OtherClient, cx.clients);
        self.decide(ask, &decision, cx);
    }

    /// Returns `true` if the session has an open request of this agent connection with this key.
    #[must_use]
    pub fn has_question(&self, agent: u64, key: &RequestKey) -> bool {
        let mut asks = self.asks.iter();
        asks.any(|ask| ask.agent == agent && ask.key == *key)
    }

    fn take_ask(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<Ask> {
        let at = self.asks.iter().position(wanted)?;
        Some(self.asks.remove(at))
    }

    /// Applies a decision: shows it in the stream, logs it in the ledger and answers the agent.
    fn decide<C: ClientSinks>(&mut self, ask: Ask, decision: &Decision, cx: &mut Cx<'_, C>) {
        cx.close_request(ask.id);
        let question = ask.about.question();
        self.with_turn_of(&ask.turn_id, cx.clients, |turn, sink| {
            turn.decide(question, decision, sink);
        });
        // The agent was waiting for the answer, so the idle timer restarts.
        self.hear(cx.now, "answer", cx.clients);
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

    /// Logs a decision in the ledger. An approval that cannot be logged must not take effect: returns the
    /// refusal to use instead.
    pub(super) fn log_decision<C: ClientSinks>(
        &mut self,
        turn_id: &str,
        mut entry: LedgerEntry,
        decision: &Decision,
        cx: &mut Cx<'_, C>,
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

    /// Answers a permission request of the agent, or carries out the decision on a file or terminal request.
    pub(super) fn answer_agent<C>(
        &mut self,
        key: &RequestKey,
        ticket: Option<Ticket>,
        decision: &Decision,
        cx: &mut Cx<'_, C>,
    ) {
        if let Some(ticket) = ticket {
            self.host_decided(ticket, decision, cx);
        } else if let Some(connection) = &mut cx.agent.connection {
            let out = &mut connection.out;
            connection.dialect.answer(key, decision, out);
        }
    }

    /// Decides the requests that no client answered in time.
    pub(super) fn time_out_asks<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) {
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
            self.withdraw_ask(&ask, &decision.by, cx.clients);
            self.decide(ask, &decision, cx);
        }
    }

    /// Handles the agent's withdrawal of a request.
    pub fn withdrawn<C: ClientSinks>(&mut self, key: &RequestKey, cx: &mut Cx<'_, C>) {
        let number = cx.agent.number();
        let meant = |ask: &Ask| ask.agent == number && ask.key == *key;
        if let Some(ask) = self.take_ask(meant) {
            self.give_up_ask(ask, By::Agent, cx);
        }
    }

    /// Cancels all open requests of the session.
    pub(super) fn end_asks<C: ClientSinks>(&mut self, by: &By, cx: &mut Cx<'_, C>) {
        for ask in std::mem::take(&mut self.asks) {
            self.give_up_ask(ask, by.clone(), cx);
        }
    }

    /// Cancels the open requests of one turn.
    pub(super) fn end_asks_of<C: ClientSinks>(&mut self, turn_id: &str, cx: &mut Cx<'_, C>) {
        while let Some(ask) = self.take_ask(|ask| ask.turn_id == turn_id) {
            self.give_up_ask(ask, By::End, cx);
        }
    }

    /// Returns `true` if a request of an ended turn is still open.
    #[must_use]
    pub fn has_stale_asks(&self) -> bool {
        self.asks.iter().any(|ask| self.is_over(&ask.turn_id))
    }

    /// Cancels the requests of ended turns, however the turns ended.
    pub fn sweep_asks<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) {
        while let Some(at) = self.asks.iter().position(|ask| self.is_over(&ask.turn_id)) {
            let ask = self.asks.remove(at);
            self.give_up_ask(ask, By::End, cx);
        }
    }

    fn give_up_ask<C: ClientSinks>(&mut self, ask: Ask, by: By, cx: &mut Cx<'_, C>) {
        self.withdraw_ask(&ask, &by, cx.clients);
        self.decide(ask, &Decision::cancelled(by), cx);
    }

    /// Withdraws a request from all clients that could still answer it.
    fn withdraw_ask(&mut self, ask: &Ask, by: &By, clients: &mut impl ClientSinks) {
        for client in &ask.asked {
            self.subscribers.withdraw(*client, ask.id, by, clients);
        }
    }
}

/// Records in the decision whether the agent receives the user's feedback with the answer.
fn note_delivery<C>(ask: &Ask, decision: &mut Decision, cx: &Cx<'_, C>) {
    let refuses = decision.choice.as_ref().map(|option| option.kind.refuses());
    let is_for_agent = ask.ticket.is_none() && ask.about.question().is_permission();
    if let (Some(feedback), Some(refuses), Some(connection)) =
        (&mut decision.feedback, refuses, &cx.agent.connection)
    {
        let is_asker = connection.number == ask.agent;
        feedback.delivered = is_for_agent && is_asker && connection.dialect.takes_words(refuses);
    }
}
