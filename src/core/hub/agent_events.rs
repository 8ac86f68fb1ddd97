//! Routing of agent events to sessions.

use super::Hub;
use super::cx::HubCx;
use super::router::storage;
use crate::core::agent::Call;
use crate::core::client_requests::RequestEnd;
use crate::core::client_sink::ClientSinks;
use crate::core::decision::{Decision, DecisionSource};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{
    AgentEvent, Elicitation, HostRequestReceived, Original, Permission, Update,
};
use crate::core::ids::AgentRef;
use crate::core::limits::Timeout;
use crate::core::request_key::RequestKey;
use crate::core::session::{SessionMachine, UpdateOrigin};
use crate::core::turn_ending::Ending;
use crate::proto::wire::Protocol;
use tracing::{debug, warn};

impl Hub {
    /// Routes an event of an agent.
    pub(super) fn event(&mut self, agent: AgentRef, event: AgentEvent<'_>, cx: &mut HubCx<'_>) {
        if !matches!(event, AgentEvent::Update { .. }) {
            storage::number_unsent(&mut self.router, cx.clients);
            if let Some(key) = event.request_key() {
                self.end_request(agent, key, RequestEnd::IdReused, cx);
            }
        }
        match event {
            AgentEvent::Update {
                session,
                update,
                original,
            } => self.update_of_call(agent, &session, update, original, cx),
            AgentEvent::CallLost(lost) => self.call_lost(agent, &lost, cx),
            AgentEvent::Permission(permission) => {
                self.permission(agent, *permission, cx);
            }
            AgentEvent::ToolHook(call) => self.judge_call(agent, *call, cx),
            AgentEvent::Elicitation(asked) => self.elicitation(agent, *asked, cx),
            AgentEvent::UrlCompleted { id } => self.url_completed(&id, cx.clients),
            AgentEvent::Wanted(wanted) => self.host_request(agent, *wanted, cx),
            AgentEvent::Forward(message) => self.forward_to_client(agent, &message, cx.clients),
            AgentEvent::Forwarded { call, result } => {
                self.forwarded_answered(agent, call, result, cx.clients);
            }
            AgentEvent::Withdrawn { key } => {
                self.end_request(agent, &key, RequestEnd::Withdrawn, cx);
            }
            AgentEvent::TurnEnded { call, end } => {
                let ending = Ending::Answered(end);
                if let Some(Call::Prompt { session }) =
                    self.router.agents_mut().get_mut(agent).take_call(call)
                {
                    self.router.with(&session, cx, |session, cx| {
                        session.prompt_answered(call, ending, cx);
                    });
                }
            }
            AgentEvent::TurnFailing { session, failing } => {
                let session = self.router.routed(agent, &session);
                if let Some(running) = session.and_then(|s| s.running.as_mut()) {
                    running.turn.note_failure(failing);
                }
            }
            AgentEvent::SessionOpened {
                call,
                agent_session,
                state,
            } => {
                if let Some(Call::Open { session }) =
                    self.router.agents_mut().get_mut(agent).take_call(call)
                {
                    self.router.with(&session, cx, |session, cx| {
                        session.opened(agent_session, &state, cx);
                    });
                }
            }
            AgentEvent::Listed {
                call,
                sessions,
                next,
            } => self.listed(agent, call, sessions, next, cx),
            AgentEvent::Set { call, state } => {
                if let Some(Call::Set(set)) =
                    self.router.agents_mut().get_mut(agent).take_call(call)
                {
                    let id = set.session.clone();
                    self.router.with(&id, cx, |session, cx| {
                        session.was_set(call, set, Ok(&state), cx);
                    });
                }
            }
            AgentEvent::Done { call } => self.call_done(agent, call, cx),
            AgentEvent::Failed { call, error } => {
                self.call_failed(agent, call, error, cx);
            }
            AgentEvent::Ready(info) => self.agent_ready(agent, info, cx),
            AgentEvent::NotReady(error) => self.agent_failed(agent, &error, cx),
            AgentEvent::SessionLost { session, error } => {
                self.router.with_routed(agent, &session, cx, |session, cx| {
                    session.session_lost(&error, cx);
                });
            }
            AgentEvent::SessionRenamed { session, to } => {
                let connection = self.router.agents_mut().get_mut(agent).connection_mut();
                let id = connection.and_then(|c| c.directory.rename(&session, to.clone()));
                if let Some(id) = id {
                    self.router
                        .with(&id, cx, |session, cx| session.renamed(to, cx));
                }
            }
            AgentEvent::QueuedPromptBegan { call } => {
                if let Some(Call::Prompt { session }) = self.router.agents().get(agent).call(call) {
                    let id = session.clone();
                    self.router.with(&id, cx, SessionMachine::begin_prompt);
                }
            }
            AgentEvent::BackgroundTurnBegan { session } => {
                self.router.with_routed(agent, &session, cx, |session, cx| {
                    session.background_begins(cx);
                });
            }
            AgentEvent::BackgroundTurnEnded { session, end } => {
                self.router.with_routed(agent, &session, cx, |session, cx| {
                    session.finish_unprompted(&end, cx);
                });
            }
        }
    }

    /// Routes the report that the user has visited the address of an elicitation.
    fn url_completed(&mut self, id: &str, clients: &mut dyn ClientSinks) {
        let mut known = false;
        self.router
            .sessions_mut()
            .for_each_awake(|session| known |= session.url_completed(id, clients));
        if !known {
            debug!(id, "URL of an unknown turn was opened");
        }
    }

    /// Routes an update that names no tool call. The hot path is an update of a running turn.
    pub(super) fn take_update(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut HubCx<'_>,
    ) -> bool {
        self.router.shared_mut().counters.updates += 1;
        let may_have_run = match self
            .router
            .routed(agent, agent_session)
            .and_then(|session| session.turn_update(update, original, cx.now, cx.clients))
        {
            Some(may_have_run) => may_have_run,
            None => self.other_update(agent, agent_session, update, original, cx),
        };
        if self.router.shared().clients.have_acp() {
            self.pass_update(agent, agent_session, update, original, cx.clients);
        }
        may_have_run
    }

    /// Passes an update on to the clients of its session that speak ACP.
    fn pass_update(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let is_acp = self.router.agents().get(agent).spec().protocol == Protocol::Acp;
        let routed = self.router.routed_with_subagents(agent, agent_session);
        if let Some((session, is_of_subagent)) = routed {
            let origin = UpdateOrigin {
                session: agent_session,
                is_of_subagent,
                is_acp,
            };
            session.pass_update(origin, update, original, clients);
        }
    }

    /// Routes an update that does not belong to a running turn. Returns `true` if a tool may have run without
    /// a permission request.
    fn other_update(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut HubCx<'_>,
    ) -> bool {
        let Some(connection) = self.router.agents_mut().get_mut(agent).connection_mut() else {
            return false;
        };
        let Some(route) = connection.directory.route(agent_session) else {
            let directory = &mut connection.directory;
            directory.note_early(agent_session, update, original, cx.now);
            if matches!(update, Update::Tool(_)) {
                self.call_of_unknown_session(agent, agent_session, cx);
            }
            return false;
        };
        let taken = self.router.with(&route.session, cx, |session, cx| {
            session.other_update(route.subagent.as_deref(), update, original, cx)
        });
        taken.unwrap_or(false)
    }

    fn permission(&mut self, agent: AgentRef, mut permission: Permission<'_>, cx: &mut HubCx<'_>) {
        let routed = self.router.route(agent, &permission.session);
        let asked = routed.and_then(|(id, subagent)| {
            self.router.with(&id, cx, |session, cx| {
                let subagent = subagent.as_deref();
                session.identify_asked_call(subagent, &mut permission.tool);
                session.permission(("permission", None), subagent, &permission, cx);
            })
        });
        if asked.is_none() {
            let session = &permission.session;
            warn!(%session, "refused a question of a session that is not open");
            let cancelled = Decision::cancelled(DecisionSource::End);
            let machine = self.router.agents_mut().get_mut(agent);
            machine.refuse(&permission.key, &cancelled);
        }
    }

    fn judge_call(&mut self, agent: AgentRef, mut call: Permission<'_>, cx: &mut HubCx<'_>) {
        let routed = self.router.route(agent, &call.session);
        let judged = routed.and_then(|(id, subagent)| {
            self.router.with(&id, cx, |session, cx| {
                session.identify_asked_call(subagent.as_deref(), &mut call.tool);
                session.judge_call(subagent.as_deref(), &call, cx);
            })
        });
        if judged.is_none() {
            warn!(session = %call.session, "refused a tool of a session that is not open");
            self.router
                .agents_mut()
                .get_mut(agent)
                .refuse_call(&call.key);
        }
    }

    /// Routes an elicitation. The agent's machine handles one that belongs to no session.
    fn elicitation(&mut self, agent: AgentRef, mut asked: Elicitation<'_>, cx: &mut HubCx<'_>) {
        let named = asked.session.as_deref();
        let named = named.and_then(|session| self.router.route(agent, session));
        let (session, subagent) = named.unzip();
        let prompted = || match self.router.agents().get(agent).call(asked.call?)? {
            Call::Prompt { session } => Some(session.clone()),
            _ => None,
        };
        if let Some(id) = session.or_else(prompted) {
            self.router.with(&id, cx, |session, cx| {
                let own = asked.tool.as_deref().and_then(|id| session.call_named(id));
                asked.tool = own.map(Into::into).or(asked.tool.take());
                session.elicitation(subagent.flatten().as_deref(), asked, cx);
            });
            return;
        }
        let is_asked = self
            .router
            .with_agent(agent, cx, |agent, cx| agent.ask_without_session(asked, cx));
        if is_asked {
            self.wait_for_user(agent);
        }
    }

    /// Extends the timeouts of calls to the agent by the time that the user has to answer an elicitation
    /// outside of an open session.
    fn wait_for_user(&mut self, agent: AgentRef) {
        let limits = self
            .router
            .agents()
            .get(agent)
            .limits(&self.router.shared().settings);
        let Some(by) = limits.of(Timeout::Answer) else {
            return;
        };
        self.router.agents_mut().get_mut(agent).wait_for_user(by);
        self.router.sessions_mut().for_each_awake(|session| {
            if session.is_opening() && session.agent == agent {
                session.postpone(by);
            }
        });
    }

    fn host_request(
        &mut self,
        agent: AgentRef,
        wanted: HostRequestReceived<'_>,
        cx: &mut HubCx<'_>,
    ) {
        let HostRequestReceived {
            session,
            key,
            request,
            method,
            acp,
        } = wanted;
        let routed = self.router.route(agent, &session).map(|(id, _)| id);
        let id = routed.filter(|id| self.router.sessions().contains_key(id));
        if let Some(id) = id {
            let original = acp.map(|params| (&*method, params));
            self.router.with(&id, cx, |session, cx| {
                session.host_request(key, request, original, cx);
            });
            return;
        }
        let message =
            format!("session {session:?} not found: acpipe cannot serve files or terminals for it");
        let error = Error::new(ErrorKind::InvalidParams, message);
        self.router
            .agents_mut()
            .get_mut(agent)
            .refuse_host_request(&key, &error);
    }

    /// Ends the open request of the agent with this key.
    fn end_request(
        &mut self,
        agent: AgentRef,
        key: &RequestKey,
        how: RequestEnd,
        cx: &mut HubCx<'_>,
    ) {
        let is_withdrawn = how == RequestEnd::Withdrawn;
        if !is_withdrawn && self.router.shared().client_requests.is_empty() {
            return;
        }
        if self
            .router
            .with_agent(agent, cx, |agent, cx| agent.withdrawn(key, cx))
            || is_withdrawn && self.forward_withdrawn(agent, key, cx.clients)
        {
            return;
        }
        let number = self.router.agents().get(agent).number();
        let find = |has: &dyn Fn(&SessionMachine) -> bool| {
            let mut sessions = self.router.sessions().values();
            let found = sessions.find(|session| has(session))?;
            Some(found.id.clone())
        };
        if let Some(id) = find(&|session| session.has_question(number, key, how)) {
            self.router.with(&id, cx, |session, cx| {
                session.end_request(key, how, cx);
            });
        } else if is_withdrawn && let Some(id) = find(&|session| session.has_host_call(number, key))
        {
            self.router.with(&id, cx, |session, cx| {
                session.host_call_withdrawn(key, cx);
            });
        }
    }
}
