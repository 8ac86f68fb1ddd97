//! Sessions that clients of the daemon opened or joined: what each asked for, and what it got.
//!
//! It is kept for the client also if another one closes the session and opens it with other settings or at another agent:
//! what the client refused or forbade stays so, and its next prompt is compared with what the session has then.
//!
//! Owns these settings. It judges no tool, and compares nothing.

use crate::client::ClientId;
use crate::session_id::fnv1a;
use crate::shared_value::SharedValue;
use crate::terms::Terms;
use acpipe_json::to_raw;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{McpServer, SessionOptions};
use std::collections::BTreeMap;

/// Settings of a client's last call that opened or joined a session.
#[derive(Debug, Clone, Default)]
pub(in crate::hub) struct OpenedSession {
    /// Options that the client asked for.
    pub asked: SessionOptions,
    /// Options that the session had after the call.
    pub got: SharedValue<SessionOptions>,
    /// Hash of the MCP servers that the session had after the call, without those of the agent's definition.
    pub mcp_servers: u64,
    /// Agents at which the client opened the session, in the order of its calls.
    pub agents: Vec<AgentOfOpener>,
}

/// Agent at which a client opened a session.
#[derive(Debug, Clone)]
pub(in crate::hub) struct AgentOfOpener {
    pub name: String,
    /// Terms of the client by its definition of this agent.
    pub terms: Terms,
    /// `false` until a call that named the agent has succeeded.
    pub was_opened: bool,
}

/// Returns the hash by which lists of MCP servers are compared.
pub(in crate::hub) fn hash_of(servers: &[McpServer]) -> u64 {
    fnv1a(to_raw(&servers).get().as_bytes())
}

/// Maximum number of sessions that are remembered for a client: more than a client has in use.
const MAX_SESSIONS: usize = 1_024;

/// Maximum number of agents that are remembered for a session of a client.
const MAX_AGENTS: usize = 16;

/// Sessions that a client opened or joined, by their ids.
#[derive(Default)]
struct SessionsOfClient {
    last: BTreeMap<String, OpenedSession>,
    /// Demands of the client in sessions that are no longer remembered, together. They hold in all that are not.
    others: Option<Box<Demand>>,
}

/// Terms of a client in a session, and the tools that it refuses there.
#[derive(Debug, Clone, Default)]
pub(super) struct Demand {
    pub terms: Option<Terms>,
    pub refused: Vec<String>,
}

impl Demand {
    fn add(&mut self, opened: OpenedSession) {
        for agent in opened.agents {
            self.add_terms(&agent.terms);
        }
        let mut refused = opened.asked.disallowed_tools;
        refused.retain(|tool| !self.refused.contains(tool));
        self.refused.append(&mut refused);
    }

    fn add_terms(&mut self, terms: &Terms) {
        self.terms = Some(match &self.terms {
            Some(own) => own.with_caller(terms, None),
            None => terms.clone(),
        });
    }
}

/// Sessions that clients opened or joined.
#[derive(Default)]
pub(super) struct OpenedSessions(BTreeMap<ClientId, SessionsOfClient>);

impl OpenedSessions {
    /// Returns the settings with which a client opened a session last; `None` if it did not, or long ago.
    pub fn get(&self, client: ClientId, session: &str) -> Option<&OpenedSession> {
        self.0.get(&client)?.last.get(session)
    }

    /// Returns what a client that opened a session forbids in it at an agent of this name, besides its terms at this agent.
    pub fn demand(&self, client: ClientId, session: &str, agent: &str) -> Demand {
        let Some(own) = self.0.get(&client) else {
            return Demand::default();
        };
        let Some(opened) = own.last.get(session) else {
            return own.others.as_deref().cloned().unwrap_or_default();
        };
        let mut demand = Demand {
            terms: None,
            refused: opened.asked.disallowed_tools.clone(),
        };
        // Another client can move the session to an agent that the client did not restrict.
        let is_own = |own: &AgentOfOpener| own.was_opened && own.name == agent;
        if !opened.agents.iter().any(is_own) {
            for own in &opened.agents {
                demand.add_terms(&own.terms);
            }
        }
        demand
    }

    /// Notes that a client opened or joined a session. Tools that it refused before stay refused if the call names none.
    /// `names_agent` is `true` if the call named the agent: otherwise the session may be at one that another client chose.
    pub fn note(
        &mut self,
        client: ClientId,
        session: &str,
        mut opened: OpenedSession,
        names_agent: bool,
    ) {
        let sessions = self.0.entry(client).or_default();
        if let Some(before) = sessions.last.remove(session) {
            if opened.asked.disallowed_tools.is_empty() {
                opened.asked.disallowed_tools = before.asked.disallowed_tools;
            }
            let named = std::mem::replace(&mut opened.agents, before.agents);
            for mut agent in named.into_iter().filter(|_| names_agent) {
                let before = opened.agents.iter().position(|own| own.name == agent.name);
                let before = before.map(|at| opened.agents.remove(at));
                agent.was_opened = before.is_some_and(|own| own.was_opened);
                opened.agents.push(agent);
            }
            if opened.agents.len() > MAX_AGENTS {
                let first = opened.agents.remove(0);
                let next = &mut opened.agents[0].terms;
                *next = next.with_caller(&first.terms, None);
            }
        } else if sessions.last.len() >= MAX_SESSIONS
            && let Some((_, forgotten)) = sessions.last.pop_first()
        {
            sessions.others.get_or_insert_default().add(forgotten);
        }
        sessions.last.insert(session.to_owned(), opened);
    }

    /// Notes that a session is open for a client at an agent of this name.
    pub fn note_success(&mut self, client: ClientId, session: &str, agent: &str) {
        let opened = self.get_mut(client, session);
        let mut agents = opened.into_iter().flat_map(|opened| &mut opened.agents);
        if let Some(own) = agents.find(|own| own.name == agent) {
            own.was_opened = true;
        }
    }

    /// Notes that a client closed a session. What it refused or forbade there still holds for it.
    pub fn close(&mut self, client: ClientId, session: &str) {
        if let Some(opened) = self.get_mut(client, session) {
            let disallowed_tools = std::mem::take(&mut opened.asked.disallowed_tools);
            opened.asked = SessionOptions {
                disallowed_tools,
                ..SessionOptions::default()
            };
        }
    }

    fn get_mut(&mut self, client: ClientId, session: &str) -> Option<&mut OpenedSession> {
        self.0.get_mut(&client)?.last.get_mut(session)
    }

    /// Notes that a client sets the mode or model of a session that it opened.
    pub fn note_set(&mut self, client: ClientId, session: &str, setting: &Setting) {
        let Some(opened) = self.get_mut(client, session) else {
            return;
        };
        let mut got = (*opened.got).clone();
        for options in [&mut opened.asked, &mut got] {
            match setting {
                Setting::Mode(mode) => options.mode = Some(mode.clone()),
                Setting::Model(model) => options.model = Some(model.clone()),
                Setting::Option { .. } => {}
            }
        }
        opened.got = got.into();
    }

    pub fn forget(&mut self, client: ClientId, session: &str) {
        if let Some(own) = self.0.get_mut(&client) {
            own.last.remove(session);
        }
    }

    /// Forgets the sessions of a client that has left.
    pub fn remove(&mut self, client: ClientId) {
        self.0.remove(&client);
    }
}
