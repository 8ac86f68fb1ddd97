//! Idle timeout: releases unused sessions and stops agents without live sessions.
//!
//! Sessions are released after the timeout, or when too many are live. Released sessions and stopped agents
//! are restored on the next use; only a session that can be restored is released.

use super::Hub;
use super::cx::HubCx;
use super::router::room;
use crate::core::agent::AgentMachine;
use crate::core::client::Command;
use crate::core::ids::AgentRef;
use crate::core::session::{SessionMachine, Stage};
use std::time::{Duration, Instant};

/// Time of the next check for idle sessions and agents.
#[derive(Debug, Default)]
pub(super) struct IdleCheck(pub(super) Option<Instant>);

impl Hub {
    /// Notes a command as use: schedules a check, and starts an agent again that is stopping because it was
    /// idle.
    pub(super) fn note_use(&mut self, command: &Command, cx: &HubCx<'_>) {
        if let Some(limit) = self.router.shared().settings.idle_after {
            self.idle.0.get_or_insert(cx.now + limit);
        }
        if command.method().needs_agent {
            // The agent that the command concerns is not known yet. Agents that stop because they are idle
            // have no sessions.
            for agent in self.router.agents_mut().iter_mut() {
                if agent.is_stopping_by_itself() {
                    agent.renew_now();
                }
            }
        }
    }

    /// Releases everything that was idle for long enough, and schedules the next check.
    pub(super) fn check_idle(&mut self, cx: &mut HubCx<'_>) {
        let Some(limit) = self.router.shared().settings.idle_after else {
            return;
        };
        self.idle.0 = Some(cx.now + limit);
        for agent in self.router.agents().all() {
            if self.router.agents().get(agent).renewal().is_some() {
                continue;
            }
            for id in self.router.sessions().ids_of(agent) {
                self.check_idle_session(&id, limit, cx);
            }
            self.stop_idle_agent(agent, limit, cx);
        }
        let used = self
            .router
            .sessions()
            .values()
            .filter_map(|session| session.used);
        let used = used.chain(self.router.agents().iter().filter_map(AgentMachine::used));
        // A session or agent that stays although its timeout has passed does not cause a check of its own.
        let next = used
            .map(|used| used + limit)
            .filter(|at| *at > cx.now)
            .min();
        let is_connected = self.router.agents().iter().any(AgentMachine::is_connected);
        let nothing = !is_connected && self.router.sessions().is_empty();
        self.idle.0 = Some(next.unwrap_or(cx.now + limit)).filter(|_| !nothing);
    }

    fn check_idle_session(&mut self, id: &str, limit: Duration, cx: &mut HubCx<'_>) {
        let idle = room::is_idle(&self.router, id);
        let Some(session) = self.router.sessions_mut().get_mut(id) else {
            return;
        };
        let used = *session.used.get_or_insert(cx.now);
        if !idle {
            session.used = Some(cx.now);
        } else if used + limit <= cx.now {
            room::release(&mut self.router, id, cx);
        }
    }

    /// Stops an agent that has had no session for long enough. The next call that needs it starts it again.
    fn stop_idle_agent(&mut self, agent: AgentRef, limit: Duration, cx: &mut HubCx<'_>) {
        let resting = |s: &SessionMachine| matches!(s.stage, Stage::Resting);
        let is_unused = self.router.sessions().of(agent).all(resting);
        let is_listed = self.events.listings().reads_list_of(agent);
        if !is_unused || is_listed {
            self.router.agents_mut().get_mut(agent).note_use(cx.now);
        }
        let is_over = self
            .router
            .with_agent(agent, cx, |agent, cx| agent.stop_idle(limit, cx));
        if is_over {
            self.events.agent_stopped(&mut self.router, agent, cx);
        }
    }
}
