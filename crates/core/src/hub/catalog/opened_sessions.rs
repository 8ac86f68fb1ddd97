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
    /// Agent at which the client opened the session; `None` while it opens it at one that it names.
    pub agent: Option<AgentOfOpener>,
}

/// Agent at which a client opened a session.
#[derive(Debug, Clone)]
pub(in crate::hub) struct AgentOfOpener {
    pub name: String,
    /// Terms of the client by its definition of this agent.
    pub terms: Terms,
}

/// Returns the hash by which lists of MCP servers are compared.
pub(in crate::hub) fn hash_of(servers: &[McpServer]) -> u64 {
    fnv1a(to_raw(&servers).get().as_bytes())
}

/// Maximum number of sessions that are remembered for a client: more than a client has in use. Beyond it, one of the others
/// is forgotten.
const MAX_SESSIONS: usize = 1_024;

/// Sessions that clients opened or joined, by their ids.
#[derive(Default)]
pub(super) struct OpenedSessions(BTreeMap<ClientId, BTreeMap<String, OpenedSession>>);

impl OpenedSessions {
    /// Returns the settings with which a client opened a session last; `None` if it did not.
    pub fn get(&self, client: ClientId, session: &str) -> Option<&OpenedSession> {
        self.0.get(&client)?.get(session)
    }

    /// Notes that a client opened or joined a session. Tools that it refused before stay refused if the call names none. The
    /// agent stays the one at which it opened the session until it names another.
    pub fn note(&mut self, client: ClientId, session: &str, mut opened: OpenedSession) {
        let sessions = self.0.entry(client).or_default();
        if let Some(before) = sessions.remove(session) {
            if opened.asked.disallowed_tools.is_empty() {
                opened.asked.disallowed_tools = before.asked.disallowed_tools;
            }
            opened.agent = before.agent.or(opened.agent);
        } else if sessions.len() >= MAX_SESSIONS {
            sessions.pop_first();
        }
        sessions.insert(session.to_owned(), opened);
    }

    /// Notes that a client opens a session at an agent that it names.
    pub fn forget_agent(&mut self, client: ClientId, session: &str) {
        if let Some(opened) = self.get_mut(client, session) {
            opened.agent = None;
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
        self.0.get_mut(&client)?.get_mut(session)
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
            own.remove(session);
        }
    }

    /// Forgets the sessions of a client that has left.
    pub fn remove(&mut self, client: ClientId) {
        self.0.remove(&client);
    }
}
