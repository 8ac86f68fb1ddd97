//! Tools that an agent runs without asking: rules hold for them, too.
//!
//! With rules a policy is a wall: what it denies is denied, be it by default. To ask about what the agent takes for
//! harmless takes a rule of its own.

use super::Bridge;
use super::permissions::entry;
use crate::core::client::Outlet;
use crate::core::event::Permission;
use crate::core::permit::{By, Decision};
use crate::core::policy::Effect;
use crate::core::turn::written;
use std::time::Instant;
use tracing::warn;

impl Bridge {
    /// Lets a tool run, has the agent ask, or refuses it; what cannot be judged is refused.
    pub(super) fn watch(&mut self, call: &Permission<'_>, now: Instant, outlet: &mut impl Outlet) {
        let effect = self.rule_on(call, now, outlet);
        if let Some(agent) = &mut self.agent {
            let out = &mut agent.out;
            agent.dialect.watched(&call.question, effect, out);
        }
    }

    fn rule_on(&mut self, call: &Permission<'_>, now: Instant, outlet: &mut impl Outlet) -> Effect {
        let Some((route, turn_id, subject)) = self.subject_of(call, now, outlet) else {
            warn!(session = %call.session, "a tool of a session that nobody opened is refused");
            return Effect::Deny;
        };
        let verdict = self.settings.policy.judge(&subject);
        if let Some(session) = self.sessions.get_mut(&route.session) {
            // It is judged here: that it runs without a question is nothing to tell.
            let calls = [call.tool.id.clone().into_owned()];
            session.with_turn_of(&turn_id, outlet, |turn, _| turn.note_asked(&calls));
        }
        match verdict.effect {
            Effect::Deny => {}
            Effect::Ask if verdict.is_explicit => return Effect::Ask,
            Effect::Ask | Effect::Allow => return Effect::Allow,
        }
        let decision = Decision::of(false, false, &call.options, By::Policy(verdict.by));
        let (id, subagent) = (route.session.as_str(), route.subagent.as_deref());
        let Some(session) = self.sessions.get_mut(id) else {
            return Effect::Deny;
        };
        session.hear(now, "tool", outlet);
        let mut shown = None;
        session.with_turn_of(&turn_id, outlet, |turn, sink| {
            let question = turn.ask(subagent, call, &[], true, sink);
            turn.decide(&question, &decision, sink);
            let tool = turn.asked(&question).unwrap_or_default();
            shown = Some((question, tool));
        });
        if let Some((question, tool)) = shown {
            let mut entry = entry("permission", &question.id, &tool, subject);
            entry.tool_call = written(&call.tool);
            self.take_down(id, &turn_id, entry, &decision, now, outlet);
        }
        Effect::Deny
    }
}
