//! Policy for tools that an agent reports before it runs them without a permission request.
//!
//! If the policy has rules, or the agent was started with a list of allowed tools that does not count for the client of
//! the prompt, its decisions apply to these tools, including those by default: a tool is denied, or the
//! agent has to request permission for it. By default, tools that only read need no request.

use super::SessionMachine;
use super::permissions::entry;
use super::settings::SessionSettings;
use super::unapproved_runs::is_against;
use crate::core::cx::Cx;
use crate::core::decision::{Decision, DecisionSource};
use crate::core::dialect::AgentAnswer;
use crate::core::event::Permission;
use crate::core::policy::Effect;
use crate::core::turn::written;
use tracing::warn;

/// Returns `true` if the policy judges the tools that the agent reports before it runs them.
pub(super) fn judges_calls(settings: &SessionSettings, cx: &Cx<'_>) -> bool {
    let has_list = !settings.options().allowed_tools.is_empty();
    cx.policy().has_rules() || (has_list && cx.policy().ignores_lists())
}

impl SessionMachine {
    /// Decides about a tool: the agent runs it, requests permission, or must not run it. A tool that cannot
    /// be judged is denied.
    pub fn judge_call(&mut self, subagent: Option<&str>, call: &Permission<'_>, cx: &mut Cx<'_>) {
        let effect = self.effect_of(subagent, call, cx);
        if let Some(connection) = &mut cx.agent.connection {
            connection.answer(&call.key, AgentAnswer::Hook(effect));
        }
    }

    fn effect_of(
        &mut self,
        subagent: Option<&str>,
        call: &Permission<'_>,
        cx: &mut Cx<'_>,
    ) -> Effect {
        if !judges_calls(&self.talk.settings, cx) {
            return Effect::Allow;
        }
        let Some((turn_id, subject)) = self.subject_of(subagent, call, cx) else {
            warn!(session = %call.session, "refused a tool of a session that is not open");
            return Effect::Deny;
        };
        let verdict = self.verdict_without_request(&subject, cx);
        match verdict.effect {
            Effect::Deny => {}
            // A permission request follows. If the agent runs the tool without one, that is reported.
            Effect::Ask if is_against(&verdict, &subject, false) => return Effect::Ask,
            Effect::Ask | Effect::Allow => {
                // The tool is judged here, so that it needs no notice for running without a permission request.
                self.talk.turns.with_turn_of(
                    &turn_id,
                    &mut self.talk.output,
                    cx.clients,
                    |turn, _| {
                        turn.note_allowed(&call.tool, &subject);
                    },
                );
                return Effect::Allow;
            }
        }
        let decision = Decision::of(
            false,
            false,
            &call.options,
            DecisionSource::Policy(verdict.by),
        );
        self.talk.note_activity(cx.now, "tool", cx.clients);
        let mut shown = None;
        self.talk
            .turns
            .with_turn_of(&turn_id, &mut self.talk.output, cx.clients, |turn, sink| {
                let question = turn.ask(subagent, call, &subject, true, sink);
                turn.decide(&question, &decision, sink);
                let tool = turn.asked(&question).unwrap_or_default();
                shown = Some((question, tool));
            });
        if let Some((question, tool)) = shown {
            let mut entry = entry("permission", &question.id, &tool, subject);
            entry.tool_call = written(&call.tool);
            self.log_decision(&turn_id, entry, &decision, cx);
        }
        Effect::Deny
    }
}
