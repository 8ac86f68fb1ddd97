//! Input from agents: output and events of their processes, the events that dialects read from the output, and the ends
//! of processes and connections.
//!
//! Owns the calls at agents that belong to no machine (`session/list` of clients, the agent's own requests that go on to
//! clients which speak ACP), and the state of reading: which processes have output that clients have no room for, and a message that
//! was found inside a log line and may follow again. It passes events to machines through the router, and touches
//! nothing of sessions but by their methods. It handles no command of a client, and knows no names of agents.

mod answers;
mod backpressure;
mod ends;
pub(super) mod forwards;
mod lines;
mod listings;
mod readable;
mod requests;
mod unusable_lines;
mod updates;

use crate::agent::Call;
use crate::client_requests::RequestEnd;
use crate::effect::AgentId;
use crate::hub::agent_events::forwards::forwarded_answered;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::hub::router::{Router, storage};
use crate::ids::AgentRef;
use crate::session::{BackgroundEvent, RestoreEvent, SessionMachine};
use crate::turn_ending::Ending;
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, CallId, ListedSession};
use acpipe_model::request_key::RequestKey;
use std::collections::BTreeSet;
use std::time::Instant;

use answers::{agent_ready, call_done, closed, session_renamed};
use forwards::AcpForwards;
use listings::Listings;
use requests::{elicitation, host_request, judge_call, permission, url_completed};
use unusable_lines::QuotedMessage;
use updates::{call_lost, update_of_call};

/// Reader of what agents send.
#[derive(Debug, Default)]
pub(super) struct AgentEvents {
    listings: Listings,
    forwards: AcpForwards,
    /// Processes with received output that their clients have no room for.
    waiting: BTreeSet<AgentId>,
    /// Message that was read out of a log line, and may follow on a line of its own.
    quoted: Option<QuotedMessage>,
    /// `true` once the program is to exit: no agent is started in place of one that ends.
    is_ending: bool,
}

impl AgentEvents {
    fn event(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        event: AgentEvent<'_>,
        cx: &mut HubCx<'_>,
    ) {
        if !matches!(event, AgentEvent::Update { .. }) {
            storage::number_unsent(router, cx.clients);
            if let Some(key) = event.request_key() {
                self.end_request(router, agent, key, RequestEnd::IdReused, cx);
            }
        }
        match event {
            AgentEvent::Update {
                session,
                update,
                original,
            } => update_of_call(router, agent, &session, update, original, cx),
            AgentEvent::CallLost(lost) => call_lost(router, agent, &lost, cx),
            AgentEvent::Permission(asked) => permission(router, agent, *asked, cx),
            AgentEvent::ToolHook(call) => judge_call(router, agent, *call, cx),
            AgentEvent::Elicitation(asked) => elicitation(router, agent, *asked, cx),
            AgentEvent::UrlCompleted { id } => url_completed(router.sessions_mut(), &id, cx),
            AgentEvent::Wanted(wanted) => host_request(router, agent, *wanted, cx),
            AgentEvent::Forward(message) => self.forwards.pass_on(router, agent, &message, cx),
            AgentEvent::Forwarded { call, result } => {
                forwarded_answered(router.agents_mut(), agent, (call, result), cx.clients);
            }
            AgentEvent::Withdrawn { key } => {
                self.end_request(router, agent, &key, RequestEnd::Withdrawn, cx);
            }
            AgentEvent::TurnEnded { call, end } => {
                let ending = Ending::Answered(end);
                if let Some(Call::Prompt { session }) = router.agents_mut().take_call(agent, call) {
                    router.with(&session, cx, |session, cx| {
                        session.prompt_answered(call, ending, cx);
                    });
                }
            }
            AgentEvent::TurnFailing { session, failing } => {
                let session = router.routed(agent, &session);
                if let Some(running) = session.and_then(|s| s.turns.prompted_mut()) {
                    running.turn.note_failure(failing);
                }
            }
            AgentEvent::SessionOpened {
                call,
                agent_session,
                state,
            } => {
                if let Some(Call::Open { session }) = router.agents_mut().take_call(agent, call) {
                    router.with(&session, cx, |session, cx| {
                        session.restore(RestoreEvent::Opened(agent_session, &state), cx);
                    });
                }
            }
            AgentEvent::Listed {
                call,
                sessions,
                next,
            } => self.listed(router, agent, call, sessions, next, cx),
            AgentEvent::Set { call, state } => {
                if let Some(Call::Set(set)) = router.agents_mut().take_call(agent, call) {
                    let id = set.session.clone();
                    router.with(&id, cx, |session, cx| {
                        session.was_set(call, set, Ok(&state), cx);
                    });
                }
            }
            AgentEvent::Done { call } => call_done(router, agent, call, cx),
            AgentEvent::Failed { call, error } => {
                self.call_failed(router, agent, call, error, cx);
            }
            AgentEvent::Ready(info) => agent_ready(router, agent, info, cx),
            AgentEvent::NotReady(error) => self.agent_failed(router, agent, &error, cx),
            AgentEvent::SessionLost { session, error } => {
                router.with_routed(agent, &session, cx, |session, cx| {
                    session.session_lost(&error, cx);
                });
            }
            AgentEvent::SessionRenamed { session, to } => {
                session_renamed(router, agent, &session, to, cx);
            }
            AgentEvent::QueuedPromptBegan { call } => {
                if let Some(Call::Prompt { session }) = router.agents().call(agent, call) {
                    let id = session.clone();
                    router.with(&id, cx, |session, cx| {
                        session.background(BackgroundEvent::PromptBegan, cx);
                    });
                }
            }
            AgentEvent::BackgroundTurnBegan { session } => {
                router.with_routed(agent, &session, cx, |session, cx| {
                    session.background(BackgroundEvent::Began, cx);
                });
            }
            AgentEvent::BackgroundTurnEnded { session, end } => {
                router.with_routed(agent, &session, cx, |session, cx| {
                    session.background(BackgroundEvent::Ended(&end), cx);
                });
            }
        }
    }

    fn listed(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        call: CallId,
        sessions: Vec<ListedSession>,
        next: Option<String>,
        cx: &mut HubCx<'_>,
    ) {
        let asked = router.agents_mut().take_call(agent, call);
        if let Some(Call::ListAll) = asked {
            self.listings
                .agent_listed(router, call, Some((sessions, next)), cx);
            return;
        }
        let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
        let page = Some((ids.as_slice(), next.as_deref()));
        match asked {
            Some(Call::List { session }) => {
                router.with(&session, cx, |session, cx| {
                    session.restore(RestoreEvent::Listed(page), cx);
                });
            }
            Some(Call::LookUp { session }) => {
                router.with(&session, cx, |session, cx| {
                    session.looked_up(page, cx);
                });
            }
            _ => {}
        }
    }

    fn call_failed(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        call: CallId,
        error: Error,
        cx: &mut HubCx<'_>,
    ) {
        let Some(asked) = router.agents_mut().take_call(agent, call) else {
            return;
        };
        match asked {
            Call::Open { session } => {
                router.with(&session, cx, |session, cx| {
                    session.restore(RestoreEvent::Refused(error), cx);
                });
            }
            Call::Set(set) => {
                let id = set.session.clone();
                router.with(&id, cx, |session, cx| {
                    session.was_set(call, set, Err(error), cx);
                });
            }
            Call::List { session } => {
                router.with(&session, cx, |session, cx| {
                    session.restore(RestoreEvent::Listed(None), cx);
                });
            }
            Call::LookUp { session } => {
                router.with(&session, cx, |session, cx| {
                    session.looked_up(None, cx);
                });
            }
            Call::ListAll => self.listings.agent_listed(router, call, None, cx),
            Call::Sign => router.with_agent(agent, cx, |agent, cx| {
                agent.sign_in_answered(call, &Err(error), cx);
            }),
            // The session may be opened again after a refusal, too.
            Call::Close { agent_session } => closed(router, agent, &agent_session, cx),
            Call::Forward { token } => cx.clients.reply(token, Err(error)),
            Call::Prompt { session } => {
                let ending = Ending::Failed(error);
                router.with(&session, cx, |session, cx| {
                    session.prompt_answered(call, ending, cx);
                });
            }
        }
    }

    fn end_request(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        key: &RequestKey,
        how: RequestEnd,
        cx: &mut HubCx<'_>,
    ) {
        let is_withdrawn = how == RequestEnd::Withdrawn;
        if !is_withdrawn && router.shared().client_requests.is_empty() {
            return;
        }
        if router.with_agent(agent, cx, |agent, cx| agent.withdrawn(key, cx))
            || is_withdrawn && self.forwards.withdrawn(router, agent, key, cx)
        {
            return;
        }
        let number = router
            .agents()
            .get(agent)
            .connection()
            .map_or(0, |c| c.number);
        let asking = |session: &&SessionMachine| session.has_request(number, key, how);
        let asking = router.sessions().values().find(asking);
        if let Some(id) = asking.map(|session| session.id.clone()) {
            router.with(&id, cx, |session, cx| {
                session.end_request(key, how, cx);
            });
        }
    }

    pub(super) fn listings(&mut self) -> &mut Listings {
        &mut self.listings
    }

    pub(super) fn forwards(&mut self) -> &mut AcpForwards {
        &mut self.forwards
    }

    /// Returns when the first wait for the list of an agent ends.
    pub(super) fn lists_until(&self) -> Option<Instant> {
        self.listings.deadline()
    }

    /// Returns `true` if output of the agent was received that its clients have no room for.
    pub(super) fn has_output_of(&self, agents: &Agents, agent: AgentRef) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|id| agents.with_process(*id) == Some(agent))
    }

    /// Has agents that end not started again, since the program is to exit.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }
}
