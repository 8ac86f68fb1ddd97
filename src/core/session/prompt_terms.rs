//! Flow of the terms of prompts: those of a prompt that begins, and of a client that joins a turn.

use super::terms::Shown;
use super::{SessionMachine, Stage};
use crate::core::cx::Cx;
use crate::core::ids::AgentRef;
use crate::core::limits::Timeout;
use crate::core::terms::{CallerTerms, Terms};

impl SessionMachine {
    /// Sets the agent of the session.
    pub fn set_agent(&mut self, agent: AgentRef) {
        self.agent = agent;
        self.terms.forget_stricter();
    }

    /// Begins the terms of a prompt: those of the session's agent and of the client that sent it.
    pub(super) fn begin_terms(&mut self, caller: Option<&CallerTerms>, cx: &mut Cx<'_>) {
        if let Some(caller) = caller {
            let own = Terms::of(cx.agent.definition, &cx.shared.settings);
            self.terms.set_terms(&own, caller, &self.settings, cx);
            self.recheck_asking(cx);
        }
    }

    /// Adds the terms of a client that steers or takes over the running turn.
    pub(super) fn add_terms(&mut self, caller: Option<&CallerTerms>, cx: &mut Cx<'_>) {
        let Some(caller) = caller else {
            return;
        };
        let held = Terms {
            policy: cx.policy().clone(),
            limits: *cx.limits(),
        };
        self.terms.set_terms(&held, caller, &self.settings, cx);
        self.recheck_asking(cx);
        if let Some(running) = self.turns.prompted_mut() {
            let limit = cx.limits().of(Timeout::Turn);
            let until = limit.and_then(|limit| running.started.checked_add(limit));
            running.limit = running.limit.into_iter().chain(until).min();
        }
        if let Some(timer) = &mut self.idle_timer {
            timer.shorten(cx.limits().of(Timeout::Prompt));
        }
        if let Some(turn) = self.turns.id().map(str::to_owned) {
            self.terms
                .show_changed_terms(&turn, &mut self.output, cx.clients);
        }
    }

    /// Checks again whether the agent asks, after the session's state has changed.
    pub(super) fn recheck_asking(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.stage, Stage::Live { .. }) {
            let shown = Shown {
                settings: &self.settings,
                output: &mut self.output,
                turn: self.turns.id(),
            };
            self.terms.watch_asking(None, shown, cx);
        }
    }
}
