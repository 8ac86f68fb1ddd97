//! End of an agent, ordered or unexpected, and its effect on the agent's sessions.

use super::Hub;
use super::cx::HubCx;
use super::router::panics;
use crate::core::agent::{AgentMachine, Call, ProcessEnd};
use crate::core::dialect::Child;
use crate::core::effect::AgentId;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::Exit;
use crate::core::ids::AgentRef;
use crate::core::session::{SessionMachine, Stage};

impl Hub {
    /// Begins the ordered stop of an agent: cancels running turns and closes its stdin.
    pub(super) fn stop_agent(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        for id in self.router.sessions().ids_of(agent) {
            self.router.with(&id, cx, SessionMachine::agent_stopping);
        }
        let is_over = self.router.with_agent(agent, cx, AgentMachine::stop);
        if is_over {
            self.agent_stopped(agent, cx);
        } else if self.router.agents_mut().get_mut(agent).give_up_restart() {
            let message = "the agent was disconnected before it restarted";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.fail_sessions(agent, &error, cx);
            self.router.with_agent(agent, cx, |agent, cx| {
                agent.notify_disconnected(cx);
            });
        }
    }

    /// Shortens the time that processes get to stop, after the user's second interrupt.
    pub fn expedite(&mut self, cx: &mut HubCx<'_>) {
        for agent in self.router.agents().all() {
            self.router.with_agent(agent, cx, AgentMachine::expedite);
        }
    }

    /// Handles the failure of an agent whose process may still run: fails everything that waits for the
    /// agent, and stops it.
    pub(super) fn agent_failed(&mut self, agent: AgentRef, error: &Error, cx: &mut HubCx<'_>) {
        self.fail_sessions(agent, error, cx);
        let is_over = self.router.with_agent(agent, cx, |agent, cx| {
            agent.note_crash(cx.now);
            if agent.is_renewing() {
                agent.replace(cx)
            } else if !agent.is_stopping() {
                // No turn is running now, and queued prompts go to the agent that is started next.
                agent.begin_stopping(None, None, cx)
            } else {
                false
            }
        });
        if is_over {
            self.agent_stopped(agent, cx);
        }
    }

    /// Returns the name of the agent that a process belongs to.
    #[must_use]
    pub fn agent_of_process(&self, id: AgentId) -> Option<&str> {
        let agent = self.router.agents().with_process(id)?;
        Some(self.router.agents().get(agent).name())
    }

    /// Handles the end of a stop for which no process had to exit.
    pub(super) fn agent_stopped(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        let error = Error::new(ErrorKind::Cancelled, "the agent was stopped");
        self.agent_gone(agent, &error, cx);
    }

    /// Handles the end of the agent's connection.
    pub(super) fn agent_gone(&mut self, agent: AgentRef, error: &Error, cx: &mut HubCx<'_>) {
        self.fail_sessions(agent, error, cx);
        let may_start = self.ending.is_none();
        self.router.with_agent(agent, cx, |agent, cx| {
            agent.note_crash(cx.now);
            agent.gone(error, may_start, cx);
        });
        self.router.free_waiting(agent);
        self.finish_if_done(cx.clients);
    }

    /// Ends all turns of the agent's sessions and fails all calls that wait for the agent. Its sessions are
    /// closed, or restored at the next agent process if it is being renewed.
    fn fail_sessions(&mut self, agent: AgentRef, error: &Error, cx: &mut HubCx<'_>) {
        self.router
            .with_agent(agent, cx, |agent, cx| agent.fail_calls(error, cx));
        let renews = self.router.agents().get(agent).is_renewing();
        // The end of a stopped agent is no failure of its turns; an unexpected end is.
        let broke_off = !self.router.agents().get(agent).is_stopping();
        let ids = self.router.sessions().ids_of(agent);
        for id in &ids {
            self.router.with(id, cx, |session, cx| {
                session.agent_lost(error, (broke_off, renews), cx);
            });
        }
        if renews {
            for id in &ids {
                self.reopen_at_next(agent, id);
            }
        } else {
            self.answer_renewal(agent, cx);
        }
        self.end_listings(agent, cx);
        let calls = self
            .router
            .with_agent(agent, cx, |agent, cx| agent.forget_sessions(error, cx));
        for call in calls {
            if let Call::Forward { token } = call {
                cx.clients.reply(token, Err(error.clone()));
            }
        }
    }

    /// Prepares a session to be restored at the agent process that replaces the current one.
    fn reopen_at_next(&mut self, agent: AgentRef, id: &str) {
        let session = self.router.sessions_mut().get_mut(id);
        let Some(session) = session.filter(|session| !matches!(session.stage, Stage::Resting))
        else {
            return;
        };
        let is_live = matches!(session.stage, Stage::Live { .. });
        session.reopen();
        if is_live {
            let machine = self.router.agents_mut().get_mut(agent);
            machine.note_renewed_session(id);
        }
    }

    /// Continues a renewal: stops the current agent process once it has no work left, or answers the waiting
    /// calls once the new process has the sessions.
    pub(super) fn continue_renewal(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        let Some(renewal) = self.router.agents().get(agent).renewal() else {
            return;
        };
        if renewal.has_started() {
            self.answer_renewal(agent, cx);
            return;
        }
        let ahead = |token| renewal.is_ahead(token);
        let has_to_do = |s: &SessionMachine| s.running.is_some() || s.queue.tokens().any(ahead);
        if self.router.sessions().of(agent).any(has_to_do) {
            return;
        }
        let is_over = self.router.with_agent(agent, cx, AgentMachine::replace);
        if is_over {
            self.agent_stopped(agent, cx);
        }
    }

    fn answer_renewal(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        let Some(renewal) = self.router.agents().get(agent).renewal() else {
            return;
        };
        let opening: Vec<String> = renewal
            .sessions()
            .filter(|id| {
                self.router
                    .sessions()
                    .get(id)
                    .is_some_and(SessionMachine::is_opening)
            })
            .cloned()
            .collect();
        self.router.with_agent(agent, cx, |agent, cx| {
            agent.answer_renewal(|id| opening.iter().any(|open| open == id), cx);
        });
    }

    /// Handles the exit of an agent process.
    pub(super) fn process_exited(
        &mut self,
        agent: AgentRef,
        child: Child,
        exit: &Exit,
        cx: &mut HubCx<'_>,
    ) {
        let gone = self.router.with_agent(agent, cx, |agent, cx| {
            agent.process_ended(child, Ok(exit), cx)
        });
        if self.is_over(agent, gone, cx) {
            let error = self.router.agents().get(agent).exit_error(exit);
            self.agent_gone(agent, &error, cx);
        }
    }

    /// Handles an agent process that could not be started.
    pub(super) fn process_not_started(
        &mut self,
        agent: AgentRef,
        child: Child,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        let gone = self.router.with_agent(agent, cx, |agent, cx| {
            agent.process_ended(child, Err(error), cx)
        });
        if self.is_over(agent, gone, cx) {
            self.agent_gone(agent, error, cx);
        }
    }

    /// Handles an agent process that can no longer be used, though it may still run.
    pub(super) fn process_failed(
        &mut self,
        agent: AgentRef,
        child: Child,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        let Some(gone) = self
            .router
            .agents_mut()
            .get_mut(agent)
            .process_failed(child, error)
        else {
            return;
        };
        if self.is_over(agent, gone, cx) {
            self.agent_failed(agent, error, cx);
        } else {
            self.router.agents_mut().get_mut(agent).stop_process(child);
        }
    }

    /// Performs the consequences of a process's end. Returns `true` if the agent as a whole has ended.
    fn is_over(&mut self, agent: AgentRef, gone: ProcessEnd, cx: &mut HubCx<'_>) -> bool {
        match gone {
            ProcessEnd::Nothing => false,
            ProcessEnd::All => true,
            ProcessEnd::Closed(agent_session) => {
                self.closed(agent, &agent_session, cx);
                false
            }
            ProcessEnd::Events(events, goes_on) => {
                for event in events {
                    self.event(agent, event, cx);
                }
                !goes_on
            }
        }
    }

    /// Like `catch_panic`, for output of a process. If the session is not known, the process has failed: returns
    /// `false`, and no more of its output is to be read.
    pub(super) fn catch_in_output(
        &mut self,
        agent: AgentRef,
        child: Child,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>),
    ) -> bool {
        let Err(panic) = panics::catch_panic(self, cx, act) else {
            return true;
        };
        if panic.mended {
            return true;
        }
        self.router.agents_mut().get_mut(agent).ignore_output(child);
        let ended = panics::catch_panic(self, cx, |hub, cx| {
            hub.process_failed(agent, child, &panic.error, cx);
        });
        if ended.is_err() {
            panics::catch_and_repair(self, cx, |hub, cx| {
                hub.agent_failed(agent, &panic.error, cx);
            });
        }
        false
    }

    /// Like `catch_panic`, for another process event. The agent has failed if the session is not known, or if the
    /// process `ends`, since other sessions may have missed the event.
    pub(super) fn catch_in_process_event(
        &mut self,
        agent: AgentRef,
        ends: bool,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>),
    ) {
        if let Err(panic) = panics::catch_panic(self, cx, act)
            && (ends || !panic.mended)
        {
            panics::catch_and_repair(self, cx, |hub, cx| {
                hub.agent_failed(agent, &panic.error, cx);
            });
        }
    }
}
