//! Questions to the client: asked, answered, given up, withdrawn. Each is answered to its agent exactly once, whoever
//! decides.

use super::{Bridge, waits::ms};
use crate::core::ask::{AskId, ClientAnswer, ClientRequest};
use crate::core::client::Outlet;
use crate::core::error::clip;
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::permit::{By, Decision};
use crate::core::policy::Effect;
use crate::core::session::{Ask, Asked, Session};
use crate::proto::wire::{LedgerEntry, PermissionAnswer, PermissionOutcome};
use serde_json::value::RawValue;
use std::time::Instant;
use tracing::{debug, warn};

impl Bridge {
    /// Asks the client something in a session.
    pub(super) fn ask_client(
        &mut self,
        session: &str,
        ask: impl FnOnce(AskId, Option<Instant>) -> Ask,
        request: ClientRequest,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.last_ask += 1;
        let id = AskId(self.last_ask);
        let until = self.settings.limits.until(Wait::Answer, now);
        if let Some(session) = self.sessions.get_mut(session) {
            session.asks.push(ask(id, until));
            // What shows the question comes before it.
            session.number_unsent(outlet);
            outlet.ask(id, request);
        }
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
                debug!(id = id.0, "an answer to a question that is decided");
                return;
            };
            match &ask.about {
                Asked::Permission { .. } => {
                    let decision = bridge.permission_answered(&ask, answer);
                    bridge.decide(&session, ask, &decision, now, outlet);
                }
            }
            bridge.go_on(now, outlet);
        });
    }

    /// What the client's answer to a permission question means.
    fn permission_answered(&self, ask: &Ask, answer: &ClientAnswer) -> Decision {
        let Asked::Permission { options, rule, .. } = &ask.about;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                warn!(error = clip(error), "the client did not answer a question");
                let mut decision = self.unanswered(ask, By::Policy(rule.clone()));
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
        match serde_json::from_str::<PermissionAnswer>(answer.get()) {
            Ok(PermissionAnswer {
                outcome: PermissionOutcome::Cancelled,
            }) => Decision::cancelled(By::Client),
            Ok(PermissionAnswer {
                outcome: PermissionOutcome::Selected { option_id, message },
            }) => match options.iter().find(|option| option.id == option_id) {
                Some(option) => Decision::chosen(option.clone(), message),
                None => refused(&format!("no option {option_id:?} was offered")),
            },
            Err(error) => refused(&clip(&error.to_string())),
        }
    }

    /// What the policy says where nobody answers.
    fn unanswered(&self, ask: &Ask, by: By) -> Decision {
        let Asked::Permission { options, .. } = &ask.about;
        let policy = &self.settings.policy;
        let allow = policy.unanswered() == Effect::Allow;
        Decision::of(allow, policy.prefers_always(), options, by)
    }

    /// Takes an open question out, with its session.
    fn take_ask(&mut self, wanted: impl Fn(&Ask) -> bool) -> Option<(String, Ask)> {
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
        let Asked::Permission { question, .. } = &ask.about;
        if let Some(session) = self.sessions.get_mut(id) {
            session.with_turn_of(&ask.turn_id, outlet, |turn, sink| {
                turn.decide(question, decision, sink);
            });
            // The agent had to wait: that was not its silence.
            session.hear(now, "answer", outlet);
        }
        let mut entry = *ask.entry;
        entry.waited_ms = Some(ms(now.saturating_duration_since(ask.since)));
        let answer = self.take_down(id, &ask.turn_id, entry, decision, now, outlet);
        self.answer_agent(&ask.key, answer.as_ref().unwrap_or(decision));
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

    /// Answers an agent's question.
    pub(super) fn answer_agent(&mut self, key: &RawValue, decision: &Decision) {
        if let Some(agent) = &mut self.agent {
            agent.dialect.answer(key, decision, &mut agent.out);
        }
    }

    /// Nobody answered in time: the policy does.
    pub(super) fn tick_asks(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let is_due = |ask: &Ask| ask.until.is_some_and(|at| at <= now);
        while let Some(session) = self.sessions.get_mut(id)
            && let Some(at) = session.asks.iter().position(is_due)
        {
            let ask = session.asks.remove(at);
            let Asked::Permission { rule, .. } = &ask.about;
            let by = By::Timeout(rule.clone());
            outlet.withdraw(ask.id, &by);
            let decision = self.unanswered(&ask, by);
            self.decide(id, ask, &decision, now, outlet);
        }
    }

    /// The agent does not wait for this answer any more.
    pub(super) fn withdrawn(&mut self, key: &RawValue, now: Instant, outlet: &mut impl Outlet) {
        if let Some((id, ask)) = self.take_ask(|ask| ask.key.get() == key.get()) {
            self.give_up_ask(&id, ask, By::Agent, now, outlet);
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
