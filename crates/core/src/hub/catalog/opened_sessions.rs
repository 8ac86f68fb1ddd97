//! Sessions that clients of the daemon opened or joined: what each asked for, and what it got.
//!
//! It is kept for the client also if another one closes the session and opens it with other settings: tools that the client
//! refused stay refused, and its next prompt is compared with what the session has then.
//!
//! Owns these settings. It judges no tool, and compares nothing.

use crate::client::ClientId;
use crate::shared_value::SharedValue;
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
    /// MCP servers that the session had after the call, without those of the agent's definition.
    pub mcp_servers: Vec<McpServer>,
}

/// Sessions that clients opened or joined, by their ids.
#[derive(Default)]
pub(super) struct OpenedSessions(BTreeMap<ClientId, BTreeMap<String, OpenedSession>>);

impl OpenedSessions {
    /// Returns the settings with which a client opened a session last; `None` if it did not.
    pub fn get(&self, client: ClientId, session: &str) -> Option<&OpenedSession> {
        self.0.get(&client)?.get(session)
    }

    /// Notes that a client opened or joined a session. Tools that it refused before stay refused if the call names none.
    pub fn note(&mut self, client: ClientId, session: &str, mut opened: OpenedSession) {
        let sessions = self.0.entry(client).or_default();
        if let Some(before) = sessions.get(session)
            && opened.asked.disallowed_tools.is_empty()
        {
            let refused = before.asked.disallowed_tools.clone();
            opened.asked.disallowed_tools = refused;
        }
        sessions.insert(session.to_owned(), opened);
    }

    /// Notes that a client sets the mode or model of a session that it opened.
    pub fn note_set(&mut self, client: ClientId, session: &str, setting: &Setting) {
        let sessions = self.0.get_mut(&client);
        let Some(opened) = sessions.and_then(|own| own.get_mut(session)) else {
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
