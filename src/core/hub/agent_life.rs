//! End of an agent, ordered or unexpected, and its effect on the agent's sessions.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent::{Call, ProcessEnd, Renewal, timeouts};
use crate::core::dialect::{Child, TransportOrder};
use crate::core::effect::AgentId;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::Exit;
use crate::core::ids::AgentRef;
use crate::core::session::{SessionMachine, Stage};
use crate::proto::wire::AgentState;

impl Hub {
    /// Begins the ordered stop of an agent: cancels running turns and closes its stdin.
    pub(super) fn stop_agent(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        for id in self.sessions_of(agent) {
            self.with(
                &id,
                cx,
                super::super::session::SessionMachine::agent_stopping,
            );
        }
        let is_over = self.with_agent(agent, cx, super::super::agent::AgentMachine::stop);
        if is_over {
            self.agent_stopped(agent, cx);
        } else if self.agents.get_mut(agent).give_up_restart() {
            let message = "the agent was disconnected before it restarted";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.fail_sessions(agent, &error, cx);
            self.with_agent(agent, cx, |agent, cx| {
                cx.notify_state(agent.name(), AgentState::Disconnected, None);
            });
        }
    }

    /// Shortens the time that processes get to stop, after the user's second interrupt.
    pub fn expedite(&mut self, cx: &mut HubCx<'_>) {
        for agent in self.agents.all() {
            self.with_agent(agent, cx, |agent, cx| {
                if let Some(connection) = agent.connection_mut() {
                    connection.expedite(cx);
                }
            });
        }
    }

    /// Handles the failure of an agent whose process may still run: fails everything that waits for the
    /// agent, and stops it.
    pub(super) fn agent_failed(&mut self, agent: AgentRef, error: &Error, cx: &mut HubCx<'_>) {
        self.fail_sessions(agent, error, cx);
        let is_over = self.with_agent(agent, cx, |agent, cx| {
            agent.note_crash(cx.now);
            if agent.renewal().is_some_and(Renewal::is_pending) {
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
        let agent = self.agents.with_process(id)?;
        Some(self.agents.get(agent).name())
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
        self.with_agent(agent, cx, |agent, cx| {
            agent.note_crash(cx.now);
            agent.gone(error, may_start, cx);
        });
        let waiting = self.sessions.of(agent);
        let waiting =
            waiting.filter(|s| !s.queue.is_empty() || s.prompting.waits_for_agent(&s.talk));
        let waiting: Vec<String> = waiting.map(|session| session.id.clone()).collect();
        self.pending.freed.extend(waiting);
        self.finish_if_done(cx.clients);
    }

    /// Ends all turns of the agent's sessions and fails all calls that wait for the agent. Its sessions are
    /// closed, or restored at the next agent process if it is being renewed.
    fn fail_sessions(&mut self, agent: AgentRef, error: &Error, cx: &mut HubCx<'_>) {
        self.with_agent(agent, cx, |agent, cx| agent.fail_calls(error, cx));
        let renews = self
            .agents
            .get(agent)
            .renewal()
            .is_some_and(Renewal::is_pending);
        // The end of a stopped agent is no failure of its turns; an unexpected end is.
        let broke_off = !self.agents.get(agent).is_stopping();
        let ids = self.sessions_of(agent);
        for id in &ids {
            self.with(id, cx, |session, cx| {
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
        let calls = self.with_agent(agent, cx, |agent, cx| agent.forget_sessions(error, cx));
        for call in calls {
            if let Call::Forward { token } = call {
                cx.clients.reply(token, Err(error.clone()));
            }
        }
    }

    /// Prepares a session to be restored at the agent process that replaces the current one.
    fn reopen_at_next(&mut self, agent: AgentRef, id: &str) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        match session.talk.stage {
            Stage::Resting => return,
            Stage::Live { .. } => {
                if let Some(renewal) = self.agents.get_mut(agent).renewal_mut() {
                    renewal.note_session(id);
                }
            }
            Stage::Opening(_) => {}
        }
        session.reopen();
    }

    /// Continues a renewal: stops the current agent process once it has no work left, or answers the waiting
    /// calls once the new process has the sessions.
    pub(super) fn continue_renewal(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        let Some(renewal) = self.agents.get(agent).renewal() else {
            return;
        };
        if renewal.has_started() {
            self.answer_renewal(agent, cx);
            return;
        }
        let ahead = |token| renewal.is_ahead(token);
        let has_to_do = |s: &SessionMachine| s.turns.is_prompted() || s.queue.tokens().any(ahead);
        if self.sessions.of(agent).any(has_to_do) {
            return;
        }
        let is_over = self.with_agent(agent, cx, super::super::agent::AgentMachine::replace);
        if is_over {
            self.agent_stopped(agent, cx);
        }
    }

    fn answer_renewal(&mut self, agent: AgentRef, cx: &mut HubCx<'_>) {
        let Some(renewal) = self.agents.get(agent).renewal() else {
            return;
        };
        let opening: Vec<String> = renewal
            .sessions()
            .filter(|id| {
                self.sessions
                    .get(id)
                    .is_some_and(|session| session.talk.is_opening())
            })
            .cloned()
            .collect();
        self.with_agent(agent, cx, |agent, cx| {
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
        let gone = self.with_agent(agent, cx, |agent, cx| {
            agent.process_ended(child, Ok(exit), cx)
        });
        if self.is_over(agent, gone, cx) {
            let machine = self.agents.get(agent);
            let error = timeouts::exit_error(machine.connection(), machine.spec(), exit);
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
        let gone = self.with_agent(agent, cx, |agent, cx| {
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
            .agents
            .get_mut(agent)
            .connection_mut()
            .and_then(|c| c.process_failed(child, error))
        else {
            return;
        };
        if self.is_over(agent, gone, cx) {
            self.agent_failed(agent, error, cx);
        } else if let Some(connection) = self.agents.get_mut(agent).connection_mut() {
            connection.order(child, TransportOrder::Stop);
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
}
