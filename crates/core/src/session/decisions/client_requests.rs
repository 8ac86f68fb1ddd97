//! Client requests: sent, answered, timed out, withdrawn. The agent gets exactly one answer to each,
//! from whichever side decides.

use crate::answers;
use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ClientRequest, ClientRequestId};
use crate::client_requests::{
    ID_REUSED, NO_CLIENT, NO_QUESTION_CAPABILITY, OpenRequest, OpenRequestKind, RequestEnd,
};
use crate::client_sink::ClientSinks;
use crate::cx::{Cx, SessionRequest};
use crate::log::Record;
use crate::session::CallerSettings;
use crate::session::conversation::acp_clients::own_answer;
use crate::session::decisions::new_message::refuse_for_message;
use crate::session::decisions::updated_call::updated_call;
use crate::session::wait_notices::notify_waiting_prompts;
use crate::session::{Conversation, Decisions, UndeliveredFeedback};
use crate::shared::RequestOwner;
use crate::timeout_error::millis;
use crate::turn::written;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::host::Ticket;
use acpipe_model::limits::Timeout;
use acpipe_model::request_key::RequestKey;
use acpipe_policy::{Effect, Subject};
use acpipe_protocol::wire::{ClientCapabilities, LedgerEntry};
use std::sync::Arc;
use tracing::debug;

/// Reason that follows the rule by which an open request is refused, since the clients were asked before.
const SINCE: &str = "since the permissions of this session changed";

/// A question about to be sent to clients.
pub struct RequestDraft<'a> {
    pub turn_id: String,
    pub key: &'a RequestKey,
    /// The file or terminal request that is judged; `None` for a request of the agent itself.
    pub ticket: Option<Ticket>,
    pub about: OpenRequestKind,
    /// Subject for the policy; `None` if it has decided.
    pub subject: Option<Box<Subject>>,
    /// Ledger entry without the decision.
    pub entry: LedgerEntry,
}

impl Decisions {
    /// Sends a request to all subscribed clients that can answer it. Without such a client it is decided at
    /// once, unless a client may come back.
    pub fn ask_client(
        &mut self,
        asking: RequestDraft<'_>,
        request: ClientRequest,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let owner = RequestOwner::Session(talk.id.clone());
        let id = cx.shared.next_ask(owner);
        let request = Arc::new(request);
        let mut asked = self.clients_with(|can| request.is_answered_with(can), talk, cx);
        let answering = talk.queue.answering(&asked);
        if answering.is_some() {
            asked.clear();
        }
        // Clients need the chunks that show the question before the request.
        talk.output.number_unsent(cx.clients);
        for client in &asked {
            let to_send = (id, &request);
            talk.output.request(*client, to_send, cx.clients);
        }
        let is_unattended = asked.is_empty();
        let is_unanswerable = is_unattended && !talk.output.subscribers().are_awaited();
        let until = if is_unattended {
            cx.limits().unattended_answer(cx.now)
        } else {
            cx.until(Timeout::Answer)
        };
        talk.output.requests_mut().push(OpenRequest {
            id,
            agent: cx.agent.number(),
            key: asking.key.clone(),
            ticket: asking.ticket,
            since: cx.now,
            until,
            turn_id: asking.turn_id,
            about: asking.about,
            subject: asking.subject,
            size: request.size(),
            request,
            asked,
            entry: Box::new(asking.entry),
        });
        if let Some(client) = answering {
            if let Some(open) = talk.output.requests_mut().take(id) {
                refuse_for_message(self, open, client, talk, cx);
            }
        } else if is_unanswerable {
            self.decide_unanswerable(id, talk, cx);
        }
        notify_waiting_prompts(talk, cx);
    }

    /// Returns the clients that have a capability and may control the session.
    pub fn clients_with(
        &self,
        has: impl Fn(&ClientCapabilities) -> bool,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Vec<ClientId> {
        let controllers = talk.output.subscribers().controllers();
        let clients_with = controllers.filter(|client| cx.shared.clients.can(*client, &has));
        clients_with.collect()
    }

    /// Sends the open requests that a client did not receive yet.
    pub fn send_open_requests(
        &mut self,
        client: ClientId,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let Some(declaration) = cx.shared.clients.get(client) else {
            return;
        };
        let can = declaration.capabilities;
        let is_unlimited = cx.limits().of(Timeout::Answer).is_none();
        talk.output
            .send_open_requests(client, can, is_unlimited, cx.clients);
    }

    /// Handles a client that can no longer answer. Requests that no other client can answer are decided, or wait
    /// if a client may come back.
    pub fn drop_requests_to(&mut self, client: ClientId, talk: &mut Conversation, cx: &mut Cx<'_>) {
        let unanswerable = talk.output.requests_mut().remove_client(client);
        if talk.output.subscribers().are_awaited() || talk.output.subscribers().any_continues() {
            let until = cx.limits().unattended_answer(cx.now);
            talk.output.requests_mut().limit(&unanswerable, until);
            return;
        }
        for id in unanswerable {
            self.decide_unanswerable(id, talk, cx);
        }
    }

    pub fn decide_unanswerable(
        &mut self,
        id: ClientRequestId,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let Some(open) = talk.output.requests_mut().take(id) else {
            return;
        };
        let policy = cx.policy();
        let decision = match &open.about {
            OpenRequestKind::Permission { options, rule, .. } => {
                let by = DecisionSource::Policy(format!("{rule}, but {NO_CLIENT}"));
                answers::unanswered(policy, options, by)
            }
            OpenRequestKind::Question { options, .. } => {
                let by = DecisionSource::Policy(NO_QUESTION_CAPABILITY.to_owned());
                Decision::of(false, false, options, by)
            }
        };
        self.decide(open, &decision, talk, cx);
    }

    /// Handles a client's response to an open request. The first valid response decides. Returns `false` if the request is
    /// not open.
    pub fn request_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some(open) = talk.output.requests().get(id) else {
            return false;
        };
        let unknown_fields = cx.shared.clients.unknown_fields(client);
        let policy = cx.policy();
        let decision = match &open.about {
            OpenRequestKind::Permission { options, rule, .. } => {
                answers::permission(options, rule, answer, policy, unknown_fields)
                    .and_then(|decision| self.check_updated_input(open, decision, talk, cx))
            }
            OpenRequestKind::Question { question, options } => {
                answers::question(question, options, answer, unknown_fields)
            }
        };
        let decided = talk
            .output
            .requests_mut()
            .answered(id, client, decision.is_ok());
        let Some(mut open) = decided else {
            debug!(
                id = id.0,
                "invalid response; other clients can still answer"
            );
            return true;
        };
        let own = own_answer(client, &open.request, answer, &decision, cx);
        let mut decision = decision.unwrap_or_else(|refusal| *refusal);
        decision.acp = own;
        note_delivery(&open, &mut decision, cx);
        let deciding = cx.shared.clients.deciding(client);
        if decision.by == DecisionSource::Client {
            open.entry.client.clone_from(&deciding.name);
        }
        self.withdraw_request(
            &open,
            &DecisionSource::OtherClient(deciding),
            talk,
            cx.clients,
        );
        self.decide(open, &decision, talk, cx);
        true
    }

    /// Returns `true` if the session has an open request of this agent connection with this key, which ends so.
    #[must_use]
    pub fn has_question(
        &self,
        agent: u64,
        key: &RequestKey,
        how: RequestEnd,
        talk: &Conversation,
    ) -> bool {
        let mut open = talk.output.requests().iter();
        open.any(|open| open.agent == agent && open.key == *key && how.ends(open))
    }

    /// Applies a decision: shows it in the stream, logs it in the ledger and answers the agent.
    pub fn decide(
        &mut self,
        open: OpenRequest,
        decision: &Decision,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        cx.close_request(open.id);
        let question = open.about.question();
        // Before the agent gets the answer and any client sees the decision.
        question.learn_typed(decision, &cx.shared.settings.secrets);
        let rewritten = updated_call(&open, decision, cx);
        let rewritten = rewritten.map(|call| (self.subject_of_call(&call, talk), call));
        talk.turns
            .with_turn_of(&open.turn_id, &mut talk.output, cx.clients, |turn, sink| {
                if let Some((subject, call)) = &rewritten {
                    turn.rewrite(question, call, subject, sink);
                }
                turn.decide(question, decision, sink);
            });
        // The agent was waiting for the answer, so the idle timer restarts.
        talk.note_activity(cx.now, "answer", cx.clients);
        let mut entry = *open.entry;
        entry.waited_ms = Some(millis(cx.now.saturating_duration_since(open.since)));
        entry.content = question.content(decision);
        if let Some((subject, call)) = rewritten {
            entry.updated_input = written(&call).remove("rawInput");
            entry.title = subject.title;
            entry.paths = subject.paths;
            entry.command = subject.command;
        }
        if let Some(feedback) = &decision.feedback {
            entry.feedback = Some(feedback.words.clone());
            entry.feedback_delivered = Some(feedback.delivered);
        }
        if let Some(feedback) = decision.undelivered() {
            let words = UndeliveredFeedback::new(&entry, decision.approved(), feedback);
            self.keep_late_feedback(&open.turn_id, words, talk);
        }
        let other = self.log_decision(&open.turn_id, entry, decision, talk, cx);
        let decision = other.as_ref().unwrap_or(decision);
        if cx.agent.number() != open.agent {
            // A later connection may use the same keys.
            return;
        }
        if open.about.question().is_permission() {
            self.answer_agent(&open.key, open.ticket, decision, talk, cx);
        } else if let Some(connection) = &mut cx.agent.connection {
            connection.answer(&open.key, AgentAnswer::Elicitation(decision));
        }
    }

    /// Logs a decision in the ledger. An approval that cannot be logged must not take effect: returns the
    /// refusal to use instead.
    pub fn log_decision(
        &mut self,
        turn_id: &str,
        mut entry: LedgerEntry,
        decision: &Decision,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Option<Decision> {
        let at = cx.time();
        entry.approved = decision.approved();
        entry.option_id = decision.choice.as_ref().map(|option| option.id.clone());
        decision.by.word().clone_into(&mut entry.by);
        entry.rule = decision.by.rule().map(str::to_owned).or(entry.rule);
        entry.reason.clone_from(&decision.reason);
        talk.output.record(&Record::Decision {
            at: &at,
            turn_id,
            decision: &entry,
        });
        let written = talk.write(cx);
        let lost = written.is_err() && decision.approved();
        if !lost {
            self.approvals.note_decision(&entry, decision);
        }
        lost.then(|| Decision::cancelled(DecisionSource::End))
    }

    /// Answers a permission request of the agent, or carries out the decision on a file or terminal request.
    pub fn answer_agent(
        &mut self,
        key: &RequestKey,
        ticket: Option<Ticket>,
        decision: &Decision,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if let Some(ticket) = ticket {
            self.host_decided(ticket, decision, talk, cx);
        } else if let Some(connection) = &mut cx.agent.connection {
            connection.answer(key, AgentAnswer::Permission(decision));
        }
    }

    pub fn time_out_requests(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        while let Some(open) = talk.output.requests_mut().take_due(cx.now) {
            let decision = match &open.about {
                OpenRequestKind::Permission { options, rule, .. } => {
                    let by = DecisionSource::Timeout(Some(rule.clone()));
                    answers::unanswered(cx.policy(), options, by)
                }
                OpenRequestKind::Question { options, .. } => {
                    Decision::of(false, false, options, DecisionSource::Timeout(None))
                }
            };
            self.withdraw_request(&open, &decision.by, talk, cx.clients);
            self.decide(open, &decision, talk, cx);
        }
    }

    /// Adds the terms of a client that steers or takes over the running turn.
    pub fn add_terms(&mut self, caller: &CallerSettings, talk: &mut Conversation, cx: &mut Cx<'_>) {
        talk.add_terms(caller, cx);
        self.judge_again(talk, cx);
    }

    /// Judges the open requests by the policy that holds now. Those that it denies are refused. The others stay open, no
    /// longer than the limit on answers that holds now.
    pub fn judge_again(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        // The agent's questions without a session may belong to this one.
        let mut owners = cx.shared.client_requests.values();
        if owners.any(|owner| matches!(owner, RequestOwner::Agent(_))) {
            cx.requests.push(SessionRequest::JudgeAgentQuestions);
        }
        if talk.output.requests().is_empty() {
            return;
        }
        let limit = cx.limits().of(Timeout::Answer);
        talk.output.requests_mut().shorten(limit);
        let mut denied = Vec::new();
        for open in talk.output.requests().iter() {
            let Some(subject) = &open.subject else {
                continue;
            };
            let verdict = self.verdict(subject, talk, cx);
            if verdict.effect == Effect::Deny {
                denied.push((open.id, format!("{}, {SINCE}", verdict.by)));
            }
        }
        for (id, by) in denied {
            let Some(open) = talk.output.requests_mut().take(id) else {
                continue;
            };
            let by = DecisionSource::Policy(by);
            self.withdraw_request(&open, &by, talk, cx.clients);
            let refused = Decision::of(false, false, open.about.options(), by);
            if !open.about.question().is_permission() {
                self.show_declined_question(
                    &open.turn_id,
                    open.about.question(),
                    &refused,
                    talk,
                    cx,
                );
            }
            self.decide(open, &refused, talk, cx);
        }
    }

    pub fn end_request(
        &mut self,
        key: &RequestKey,
        how: RequestEnd,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let number = cx.agent.number();
        let meant = |open: &OpenRequest| open.agent == number && open.key == *key && how.ends(open);
        let Some(open) = talk.output.requests_mut().take_first(meant) else {
            return;
        };
        match how {
            RequestEnd::Withdrawn => self.cancel_request(open, DecisionSource::Agent, talk, cx),
            RequestEnd::IdReused => {
                let by = DecisionSource::Policy(ID_REUSED.to_owned());
                self.withdraw_request(&open, &by, talk, cx.clients);
                let refused = Decision::of(false, false, open.about.options(), by);
                self.decide(open, &refused, talk, cx);
            }
        }
    }

    pub fn cancel_requests(
        &mut self,
        by: &DecisionSource,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        for open in talk.output.requests_mut().take_all() {
            self.cancel_request(open, by.clone(), talk, cx);
        }
    }

    pub fn cancel_requests_of(&mut self, turn_id: &str, talk: &mut Conversation, cx: &mut Cx<'_>) {
        while let Some(open) = talk
            .output
            .requests_mut()
            .take_first(|open| open.turn_id == turn_id)
        {
            self.cancel_request(open, DecisionSource::End, talk, cx);
        }
    }

    /// Cancels the requests of ended turns, however the turns ended.
    pub fn cancel_stale_requests(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        let stale = talk.output.requests().iter();
        let stale = stale.filter(|open| talk.turns.is_over(&open.turn_id));
        for id in stale.map(|open| open.id).collect::<Vec<_>>() {
            if let Some(open) = talk.output.requests_mut().take(id) {
                self.cancel_request(open, DecisionSource::End, talk, cx);
            }
        }
    }

    pub fn cancel_request(
        &mut self,
        open: OpenRequest,
        by: DecisionSource,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.withdraw_request(&open, &by, talk, cx.clients);
        self.decide(open, &Decision::cancelled(by), talk, cx);
    }

    /// Withdraws a request from all clients that could still answer it.
    pub fn withdraw_request(
        &mut self,
        open: &OpenRequest,
        by: &DecisionSource,
        talk: &mut Conversation,
        clients: &mut dyn ClientSinks,
    ) {
        for client in &open.asked {
            talk.output.withdraw(*client, open.id, by, clients);
        }
    }
}

/// Records in the decision whether the agent receives the user's feedback with the answer.
fn note_delivery(open: &OpenRequest, decision: &mut Decision, cx: &Cx<'_>) {
    let refuses = decision.choice.as_ref().map(|option| option.kind.refuses());
    let is_for_agent = open.ticket.is_none() && open.about.question().is_permission();
    if let (Some(feedback), Some(refuses), Some(connection)) =
        (&mut decision.feedback, refuses, &cx.agent.connection)
    {
        let is_asker = connection.number == open.agent;
        feedback.delivered =
            is_for_agent && is_asker && refuses && connection.facts().delivers_feedback;
    }
}
