//! Ends of agents and their processes, ordered or unexpected, and their effect on the agents' sessions.

use super::AgentEvents;
use super::answers::closed;
use crate::agent::{AgentMachine, Call, ProcessEnd, Renewal, timeouts};
use crate::hub::ClientId;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::{SessionMachine, Stage};
use acpipe_model::dialect::{Child, TransportOrder};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::Exit;
use acpipe_protocol::wire::{AgentState, OnDisconnect};

impl AgentEvents {
    /// Begins the ordered stop of an agent: cancels running turns and closes its stdin.
    pub(in crate::hub) fn stop_agent(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
    ) {
        for id in router.sessions().ids_of(agent) {
            router.with(&id, cx, SessionMachine::agent_stopping);
        }
        let is_over = router.with_agent(agent, cx, AgentMachine::stop);
        if is_over {
            self.agent_stopped(router, agent, cx);
        } else if router.agents_mut().get_mut(agent).give_up_restart() {
            let message = "the agent was disconnected before it restarted";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.fail_sessions(router, agent, &error, cx);
            router.with_agent(agent, cx, |agent, cx| {
                cx.notify_state(agent.name(), AgentState::Disconnected, None);
            });
        }
    }

    /// Retires the agents that a client registered which has left. An agent stays if it works on turns that are to go on.
    pub(in crate::hub) fn retire_of(
        &mut self,
        router: &mut Router,
        client: ClientId,
        on_disconnect: OnDisconnect,
        cx: &mut HubCx<'_>,
    ) {
        let own: Vec<AgentRef> = router
            .agents()
            .present()
            .filter(|agent| router.agents().owner(*agent) == Some(client))
            .collect();
        for agent in own {
            let variants = router.agents().with_variants(agent);
            let is_busy = variants
                .iter()
                .any(|agent| router.sessions().are_busy(*agent));
            if on_disconnect == OnDisconnect::Continue && is_busy {
                router.agents_mut().set_owner(agent, None);
                continue;
            }
            for agent in variants {
                router.agents_mut().retire(agent);
                self.stop_agent(router, agent, cx);
            }
        }
    }

    /// Handles the failure of an agent whose process may still run: fails everything that waits for the
    /// agent, and stops it.
    pub(in crate::hub) fn agent_failed(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        self.fail_sessions(router, agent, error, cx);
        let is_over = router.with_agent(agent, cx, |agent, cx| {
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
            self.agent_stopped(router, agent, cx);
        }
    }

    /// Handles the end of a stop for which no process had to exit.
    pub(in crate::hub) fn agent_stopped(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
    ) {
        let error = Error::new(ErrorKind::Cancelled, "the agent was stopped");
        self.agent_gone(router, agent, &error, cx);
    }

    fn agent_gone(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        self.fail_sessions(router, agent, error, cx);
        let may_start = !self.is_ending;
        router.with_agent(agent, cx, |agent, cx| {
            agent.note_crash(cx.now);
            agent.gone(error, may_start, cx);
        });
        router.free_waiting(agent);
    }

    /// Ends all turns of the agent's sessions and fails all calls that wait for the agent. Its sessions are
    /// closed, or restored at the next agent process if it is being renewed.
    fn fail_sessions(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        router.with_agent(agent, cx, |agent, cx| agent.fail_calls(error, cx));
        let renews = router
            .agents()
            .get(agent)
            .renewal()
            .is_some_and(Renewal::is_pending);
        // The end of a stopped agent is no failure of its turns; an unexpected end is.
        let broke_off = !router.agents().get(agent).is_stopping();
        let ids = router.sessions().ids_of(agent);
        for id in &ids {
            router.with(id, cx, |session, cx| {
                session.agent_lost(error, (broke_off, renews), cx);
            });
        }
        if renews {
            for id in &ids {
                reopen_at_next(router, agent, id);
            }
        } else {
            answer_renewal(router, agent, cx);
        }
        self.listings.end_of(router, agent, cx);
        let calls = router.with_agent(agent, cx, |agent, cx| agent.forget_sessions(error, cx));
        for call in calls {
            if let Call::Forward { token } = call {
                cx.clients.reply(token, Err(error.clone()));
            }
        }
    }

    /// Continues a renewal: stops the current agent process once it has no work left, or answers the waiting
    /// calls once the new process has the sessions.
    pub(in crate::hub) fn continue_renewal(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
    ) {
        let Some(renewal) = router.agents().get(agent).renewal() else {
            return;
        };
        if renewal.has_started() {
            answer_renewal(router, agent, cx);
            return;
        }
        let ahead = |token| renewal.is_ahead(token);
        let has_to_do = |s: &SessionMachine| s.turns.is_prompted() || s.queue.tokens().any(ahead);
        if router.sessions().of(agent).any(has_to_do) {
            return;
        }
        let is_over = router.with_agent(agent, cx, AgentMachine::replace);
        if is_over {
            self.agent_stopped(router, agent, cx);
        }
    }

    pub(super) fn process_exited(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        exit: &Exit,
        cx: &mut HubCx<'_>,
    ) {
        let gone = router.with_agent(agent, cx, |agent, cx| {
            agent.process_ended(child, Ok(exit), cx)
        });
        if self.is_over(router, agent, gone, cx) {
            let machine = router.agents().get(agent);
            let error = timeouts::exit_error(machine.connection(), machine.spec(), exit);
            self.agent_gone(router, agent, &error, cx);
        }
    }

    pub(super) fn process_not_started(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        let gone = router.with_agent(agent, cx, |agent, cx| {
            agent.process_ended(child, Err(error), cx)
        });
        if self.is_over(router, agent, gone, cx) {
            self.agent_gone(router, agent, error, cx);
        }
    }

    /// Handles an agent process that can no longer be used, though it may still run.
    pub(in crate::hub) fn process_failed(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        error: &Error,
        cx: &mut HubCx<'_>,
    ) {
        let Some(gone) = router
            .agents_mut()
            .get_mut(agent)
            .connection_mut()
            .and_then(|c| c.process_failed(child, error))
        else {
            return;
        };
        if self.is_over(router, agent, gone, cx) {
            self.agent_failed(router, agent, error, cx);
        } else if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
            connection.order(child, TransportOrder::Stop);
        }
    }

    /// Performs the consequences of a process's end. Returns `true` if the agent as a whole has ended.
    fn is_over(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        gone: ProcessEnd,
        cx: &mut HubCx<'_>,
    ) -> bool {
        match gone {
            ProcessEnd::Nothing => false,
            ProcessEnd::All => true,
            ProcessEnd::Closed(agent_session) => {
                closed(router, agent, &agent_session, cx);
                false
            }
            ProcessEnd::Events(events, goes_on) => {
                for event in events {
                    self.event(router, agent, event, cx);
                }
                !goes_on
            }
        }
    }
}

/// Prepares a session to be restored at the agent process that replaces the current one.
fn reopen_at_next(router: &mut Router, agent: AgentRef, id: &str) {
    let session = router.sessions_mut().get_mut(id);
    let Some(session) = session.filter(|session| !matches!(session.stage, Stage::Resting)) else {
        return;
    };
    let is_live = matches!(session.stage, Stage::Live { .. });
    session.reopen();
    if is_live && let Some(renewal) = router.agents_mut().get_mut(agent).renewal_mut() {
        renewal.note_session(id);
    }
}

fn answer_renewal(router: &mut Router, agent: AgentRef, cx: &mut HubCx<'_>) {
    let Some(renewal) = router.agents().get(agent).renewal() else {
        return;
    };
    let opening: Vec<String> = renewal
        .sessions()
        .filter(|id| {
            router
                .sessions()
                .get(id)
                .is_some_and(|session| session.talk.is_opening())
        })
        .cloned()
        .collect();
    router.with_agent(agent, cx, |agent, cx| {
        agent.answer_renewal(|id| opening.iter().any(|open| open == id), cx);
    });
}
