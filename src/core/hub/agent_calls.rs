//! Responses of agents to calls that are not about a turn: the handshake, session lists, closed sessions, and
//! failed calls.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent::Call;
use crate::core::error::Error;
use crate::core::event::{AgentInfo, CallId, ListedSession};
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use crate::core::turn_ending::Ending;

impl Hub {
    /// Completes the handshake and opens the agent's sessions.
    pub(super) fn agent_ready(
        &mut self,
        agent: AgentRef,
        info: Box<AgentInfo>,
        cx: &mut HubCx<'_>,
    ) {
        if self
            .router
            .with_agent(agent, cx, |agent, cx| agent.ready(info, cx))
        {
            for id in self.router.sessions().ids_of(agent) {
                self.router.with(&id, cx, SessionMachine::continue_restore);
            }
        }
    }

    /// Handles a page of the agent's session list.
    pub(super) fn listed(
        &mut self,
        agent: AgentRef,
        call: CallId,
        sessions: Vec<ListedSession>,
        next: Option<String>,
        cx: &mut HubCx<'_>,
    ) {
        let asked = self.router.agents_mut().get_mut(agent).take_call(call);
        if let Some(Call::ListAll) = asked {
            self.agent_listed(call, Some((sessions, next)), cx);
            return;
        }
        let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
        let page = Some((ids.as_slice(), next.as_deref()));
        match asked {
            Some(Call::List { session }) => {
                self.router.with(&session, cx, |session, cx| {
                    session.listed(page, cx);
                });
            }
            Some(Call::LookUp { session }) => {
                self.router.with(&session, cx, |session, cx| {
                    session.looked_up(page, cx);
                });
            }
            _ => {}
        }
    }

    /// Handles the success of a sign-in, sign-out or close.
    pub(super) fn call_done(&mut self, agent: AgentRef, call: CallId, cx: &mut HubCx<'_>) {
        match self.router.agents_mut().get_mut(agent).take_call(call) {
            Some(Call::Sign) => {
                self.router.with_agent(agent, cx, |agent, cx| {
                    agent.sign_in_answered(call, &Ok(()), cx);
                });
            }
            Some(Call::Close { agent_session }) => {
                self.closed(agent, &agent_session, cx);
            }
            _ => {}
        }
    }

    /// Handles a failed call.
    pub(super) fn call_failed(
        &mut self,
        agent: AgentRef,
        call: CallId,
        error: Error,
        cx: &mut HubCx<'_>,
    ) {
        let Some(asked) = self.router.agents_mut().get_mut(agent).take_call(call) else {
            return;
        };
        match asked {
            Call::Open { session } => {
                self.router.with(&session, cx, |session, cx| {
                    session.open_refused(error, cx);
                });
            }
            Call::Set(set) => {
                let id = set.session.clone();
                self.router.with(&id, cx, |session, cx| {
                    session.was_set(call, set, Err(error), cx);
                });
            }
            Call::List { session } => {
                self.router.with(&session, cx, |session, cx| {
                    session.listed(None, cx);
                });
            }
            Call::LookUp { session } => {
                self.router.with(&session, cx, |session, cx| {
                    session.looked_up(None, cx);
                });
            }
            Call::ListAll => self.agent_listed(call, None, cx),
            Call::Sign => self.router.with_agent(agent, cx, |agent, cx| {
                agent.sign_in_answered(call, &Err(error), cx);
            }),
            // The session may be opened again after a refusal, too.
            Call::Close { agent_session } => self.closed(agent, &agent_session, cx),
            Call::Forward { token } => cx.clients.reply(token, Err(error)),
            Call::Prompt { session } => {
                let ending = Ending::Failed(error);
                self.router.with(&session, cx, |session, cx| {
                    session.prompt_answered(call, ending, cx);
                });
            }
        }
    }

    /// Handles a session that the agent has closed: opens the sessions that waited for that.
    pub(super) fn closed(&mut self, agent: AgentRef, agent_session: &str, cx: &mut HubCx<'_>) {
        if let Some(connection) = self.router.agents_mut().get_mut(agent).connection_mut() {
            connection.directory.closed(agent_session);
        }
        let own = self.router.sessions().of(agent);
        let awaited_close = own.filter(|session| session.awaited_close() == Some(agent_session));
        let awaited_close: Vec<String> = awaited_close.map(|session| session.id.clone()).collect();
        for id in awaited_close {
            self.router.with(&id, cx, SessionMachine::continue_restore);
        }
    }
}
