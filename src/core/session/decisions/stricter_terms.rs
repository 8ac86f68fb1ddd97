//! Open requests when another client's terms come to hold: judged again, and refused if the policy now denies them.

use crate::core::cx::Cx;
use crate::core::decision::{Decision, DecisionSource};
use crate::core::limits::Timeout;
use crate::core::policy::Effect;
use crate::core::session::{Conversation, Decisions};
use crate::core::terms::CallerTerms;

/// Reason that follows the rule, since the clients were asked before.
const SINCE: &str = "since the permissions of this session changed";

impl Decisions {
    /// Adds the terms of a client that steers or takes over the running turn.
    pub fn add_terms(
        &mut self,
        caller: Option<&CallerTerms>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        talk.add_terms(caller, cx);
        self.judge_again(talk, cx);
    }

    /// Judges the open requests by the policy that holds now. Those that it denies are refused. The others stay open, no
    /// longer than the limit on answers that holds now.
    pub fn judge_again(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        if talk.output.requests().is_empty() {
            return;
        }
        let limit = cx.limits().of(Timeout::Answer);
        talk.output.requests_mut().shorten(limit);
        let mut denied = Vec::new();
        for open in talk.output.requests().iter() {
            let verdict = self.verdict(&open.subject, talk, cx);
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
}
