//! Questions to the client: asked, answered, given up, withdrawn. Each is answered to its agent exactly once, whoever
//! decides.

use super::questions::question_answered;
use super::{Agent, Bridge, waits::ms};
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::error::clip;
use crate::core::event::PermissionOption;
use crate::core::host::Ticket;
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::permit::{By, Decision, Feedback};
use crate::core::policy::Effect;
use crate::core::session::{Ask, Asked, Session, Undelivered};
use crate::core::unknown_fields;
use crate::proto::wire::{LedgerEntry, PermissionAnswer, PermissionOutcome};
use serde_json::value::RawValue;
use std::time::{Duration, Instant};
use tracing::{debug, warn};

/// What the client was asked so far.
#[derive(Debug, Default)]
pub(super) struct Asks {
    last: u64,
    /// What is asked outside of any session.
    outside: Vec<Ask>,
}

impl Asks {
    /// The id of another request.
    pub(super) fn next(&mut self) -> AskId {
        self.last += 1;
        AskId(self.last)
    }

    /// How many of those outside of sessions are open.
    pub(super) fn open_outside(&self) -> usize {
        self.outside.len()
    }

    /// When the first of those outside of sessions is given up.
    pub(super) fn due(&self) -> Option<(Instant, &'static str)> {
        let first = self.outside.iter().filter_map(|ask| ask.until).min()?;
        Some((first, "answer"))
    }

    /// For this long nobody listened: time did not run.
    pub(super) fn postpone(&mut self, by: Duration) {
        for until in self.outside.iter_mut().filter_map(|ask| ask.until.as_mut()) {
            *until += by;
        }
    }
}

/// What the client is to be asked.
pub(super) struct Asking<'a> {
    /// Where; empty outside of any session.
    pub session: &'a str,
    pub turn_id: String,
    /// The key under which the dialect expects the answer.
    pub key: &'a RawValue,
    /// What is judged, where it is a file or a command.
    pub ticket: Option<Ticket>,
    pub about: Asked,
    /// What the ledger will say of it, but for the decision.
    pub entry: LedgerEntry,
}

impl Bridge {
    /// The number of the agent that is connected: answers to another one's questions are not for it.
    pub(super) fn agent_number(&self) -> u64 {
        self.agent.as_ref().map_or(0, |agent| agent.number)
    }

    /// Asks the client something: in a session, or outside of any.
    pub(super) fn ask_client(
        &mut self,
        asking: Asking<'_>,
        request: ClientRequest,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let id = self.asks.next();
        let ask = Ask {
            id,
            agent: self.agent_number(),
            key: asking.key.to_owned(),
            ticket: asking.ticket,
            since: now,
            until: self.settings.limits.until(Wait::Answer, now),
            turn_id: asking.turn_id,
            about: asking.about,
            entry: Box::new(asking.entry),
        };
        if let Some(session) = self.sessions.get_mut(asking.session) {
            session.asks.push(ask);
            // What shows the question comes before it.
            session.number_unsent(outlet);
        } else {
            self.asks.outside.push(ask);
            self.wait_for_user();
        }
        outlet.ask(id, request);
    }

    /// The client answered a request of ours; an answer that nobody waits for any more changes nothing.
    pub fn client_answered(
        &mut self,
        id: AskId,
        answer: &ClientAnswer,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.mending(now, outlet, |bridge, outlet| {
            bridge.number_unsent(outlet);
            let Some((session, ask)) = bridge.take_ask(|ask| ask.id == id) else {
                if bridge.client_served(id, answer, now, outlet) {
                    return;
                }
                debug!(id = id.0, "an answer to a question that is decided");
                return;
            };
            let mut decision = match &ask.about {
                Asked::Permission { options, rule, .. } => {
                    bridge.permission_answered(options, rule, answer)
                }
                Asked::Question { question, options } => {
                    question_answered(question, options, answer, bridge.unknown_fields)
                }
            };
            bridge.note_delivery(&ask, &mut decision);
            bridge.decide(&session, ask, &decision, now, outlet);
            bridge.go_on(now, outlet);
        });
    }

    /// What the client's answer to a permission question means.
    fn permission_answered(
        &self,
        options: &[PermissionOption],
        rule: &str,
        answer: &ClientAnswer,
    ) -> Decision {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let error = &error.message;
                warn!(error = clip(error), "the client did not answer a question");
                let mut decision = self.unanswered(options, By::Policy(rule.to_owned()));
                decision.reason = format!(
                    "{}; the client answered with an error: {}",
                    decision.reason,
                    clip(error)
                );
                return decision;
            }
        };
        let refused = |why: &str| {
            warn!(
                why,
                "the client's answer is none: it is taken for a refusal"
            );
            let mut decision = Decision::of(false, false, options, By::Client);
            decision.reason = format!("refused, since the client's answer is none: {why}");
            decision
        };
        match unknown_fields::read::<PermissionAnswer>(answer, self.unknown_fields) {
            Ok(PermissionAnswer { outcome }) => match outcome {
                PermissionOutcome::Cancelled {
                    message,
                    feedback_delivery,
                } => Decision {
                    feedback: Feedback::of(message, feedback_delivery.is_some()),
                    ..Decision::cancelled(By::Client)
                },
                PermissionOutcome::Selected {
                    option_id,
                    message,
                    feedback_delivery,
                } => {
                    let feedback = Feedback::of(message, feedback_delivery.is_some());
                    match options.iter().find(|option| option.id == option_id) {
                        Some(option) => Decision::chosen(option.clone(), feedback),
                        None => Decision {
                            feedback,
                            ..refused(&format!("no option {option_id:?} was offered"))
                        },
                    }
                }
            },
            Err(why) => refused(&why),
        }
    }

    /// Says of a person's words whether the agent gets them with the answer.
    fn note_delivery(&self, ask: &Ask, decision: &mut Decision) {
        let refuses = decision.choice.as_ref().map(|option| option.kind.refuses());
        let is_for_agent = ask.ticket.is_none() && ask.about.question().is_permission();
        if let (Some(feedback), Some(refuses), Some(agent)) =
            (&mut decision.feedback, refuses, &self.agent)
        {
            let is_asker = agent.number == ask.agent;
            feedback.delivered = is_for_agent && is_asker && agent.dialect.takes_words(refuses);
        }
    }

    /// What the policy says where nobody answers.
    fn unanswered(&self, options: &[PermissionOption], by: By) -> Decision {
        let policy = &self.settings.policy;
        let allow = policy.unanswered() == Effect::Allow;
        Decision::of(allow, policy.prefers_always(), options, by)
    }

    /// Takes an open question out, with its session.
    fn take_ask(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<(String, Ask)> {
        if let Some(at) = self.asks.outside.iter().position(&wanted) {
            return Some((String::new(), self.asks.outside.remove(at)));
        }
        let found = self.sessions.values().find_map(|session| {
            let at = session.asks.iter().position(&wanted)?;
            Some((session.id.clone(), at))
        });
        let (id, at) = found?;
        let ask = self.sessions.get_mut(&id)?.asks.remove(at);
        Some((id, ask))
    }

    /// A question is decided: the stream shows it, the ledger has it, the agent is told.
    pub(super) fn decide(
        &mut self,
        id: &str,
        ask: Ask,
        decision: &Decision,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let question = ask.about.question();
        if let Some(session) = self.sessions.get_mut(id) {
            session.with_turn_of(&ask.turn_id, outlet, |turn, sink| {
                turn.decide(question, decision, sink);
            });
            // The agent had to wait: that was not its silence.
            session.hear(now, "answer", outlet);
        }
        let mut entry = *ask.entry;
        entry.waited_ms = Some(ms(now.saturating_duration_since(ask.since)));
        entry.content = question.content(decision);
        if let Some(feedback) = &decision.feedback {
            entry.feedback = Some(feedback.words.clone());
            entry.feedback_delivered = Some(feedback.delivered);
        }
        if let (Some(feedback), Some(session)) = (decision.undelivered(), self.sessions.get_mut(id))
        {
            let words = Undelivered::new(&entry, decision.approved(), feedback);
            session.keep_words(&ask.turn_id, words);
        }
        let other = self.take_down(id, &ask.turn_id, entry, decision, now, outlet);
        let decision = other.as_ref().unwrap_or(decision);
        let is_asker = |agent: &Agent| agent.number == ask.agent;
        if !self.agent.as_ref().is_some_and(is_asker) {
            // Another agent has the same keys.
            return;
        }
        if ask.about.question().is_permission() {
            self.answer_agent(&ask.key, ask.ticket, decision);
        } else if let Some(agent) = &mut self.agent {
            agent.dialect.elicited(&ask.key, decision, &mut agent.out);
        }
    }

    /// Takes a decision down in the ledger. What cannot be taken down is not allowed: the answer to give instead.
    pub(super) fn take_down(
        &mut self,
        id: &str,
        turn_id: &str,
        mut entry: LedgerEntry,
        decision: &Decision,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<Decision> {
        let at = self.time(now);
        let session = self.sessions.get_mut(id)?;
        entry.approved = decision.approved();
        if entry.approved && entry.what == "permission" && decision.by == By::Client {
            let (kind, command) = (entry.kind.as_deref(), entry.command.as_deref());
            session.granted.add(kind, &entry.paths, command);
        }
        entry.option_id = decision.choice.as_ref().map(|option| option.id.clone());
        decision.by.word().clone_into(&mut entry.by);
        entry.rule = decision.by.rule().map(str::to_owned).or(entry.rule);
        entry.reason.clone_from(&decision.reason);
        session.log.append(&Record::Decision {
            at: &at,
            turn_id,
            decision: &entry,
        });
        let written = self.write(id, now, outlet);
        let lost = written.is_err() && decision.approved();
        lost.then(|| Decision::cancelled(By::End))
    }

    /// Answers a permission question of the agent, or goes on with what was judged.
    pub(super) fn answer_agent(
        &mut self,
        key: &RawValue,
        ticket: Option<Ticket>,
        decision: &Decision,
    ) {
        if let Some(ticket) = ticket {
            self.decided(ticket, decision);
        } else if let Some(agent) = &mut self.agent {
            agent.dialect.answer(key, decision, &mut agent.out);
        }
    }

    /// Nobody answered in time: the policy does, or nobody.
    pub(super) fn tick_asks(&mut self, now: Instant, outlet: &mut impl Outlet) {
        while let Some((id, ask)) = self.take_ask(|ask| ask.until.is_some_and(|at| at <= now)) {
            let decision = match &ask.about {
                Asked::Permission { options, rule, .. } => {
                    self.unanswered(options, By::Timeout(Some(rule.clone())))
                }
                Asked::Question { options, .. } => {
                    Decision::of(false, false, options, By::Timeout(None))
                }
            };
            outlet.withdraw(ask.id, &decision.by);
            self.decide(&id, ask, &decision, now, outlet);
        }
    }

    /// The agent does not wait for this answer any more.
    pub(super) fn withdrawn(&mut self, key: &RawValue, now: Instant, outlet: &mut impl Outlet) {
        let number = self.agent_number();
        let meant = |ask: &Ask| ask.agent == number && ask.key.get() == key.get();
        if let Some((id, ask)) = self.take_ask(meant) {
            self.give_up_ask(&id, ask, By::Agent, now, outlet);
        } else {
            self.unwanted(key, outlet);
        }
    }

    /// What a session asks its client needs no answer any more.
    pub(super) fn end_asks(&mut self, id: &str, by: &By, now: Instant, outlet: &mut impl Outlet) {
        let asks = self
            .sessions
            .get_mut(id)
            .map(|s| std::mem::take(&mut s.asks));
        for ask in asks.unwrap_or_default() {
            self.give_up_ask(id, ask, by.clone(), now, outlet);
        }
    }

    /// The same with what the agent asked outside of any session.
    pub(super) fn end_asks_outside(&mut self, now: Instant, outlet: &mut impl Outlet) {
        for ask in std::mem::take(&mut self.asks.outside) {
            self.give_up_ask("", ask, By::End, now, outlet);
        }
    }

    /// The same with what was asked in one turn.
    pub(super) fn end_asks_of(
        &mut self,
        id: &str,
        turn_id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        while let Some(session) = self.sessions.get_mut(id)
            && let Some(at) = session.asks.iter().position(|ask| ask.turn_id == turn_id)
        {
            let ask = session.asks.remove(at);
            self.give_up_ask(id, ask, By::End, now, outlet);
        }
    }

    fn give_up_ask(&mut self, id: &str, ask: Ask, by: By, now: Instant, outlet: &mut impl Outlet) {
        outlet.withdraw(ask.id, &by);
        self.decide(id, ask, &Decision::cancelled(by), now, outlet);
    }

    /// Gives up what was asked in turns that are over, however they ended.
    pub(super) fn sweep_asks(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let over = |session: &Session| {
            let mut turns = session.asks.iter().map(|ask| &ask.turn_id);
            let over = turns.find(|turn| session.is_over(turn))?;
            Some((session.id.clone(), over.clone()))
        };
        loop {
            let next = self.sessions.awake().find_map(over);
            let Some((id, turn_id)) = next else { return };
            self.end_asks_of(&id, &turn_id, now, outlet);
        }
    }
}
