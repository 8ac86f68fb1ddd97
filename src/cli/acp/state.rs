//! The open sessions: the agent of each, its settings in ACP, and the option by which the client changes the agent.

use super::calls::OpenAs;
use acpipe_core::acp_settings::session_settings;
use acpipe_json::rpc;
use acpipe_json::rpc::Message;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_protocol::wire::SessionResult;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Id of the option "Agent" of a session.
pub const AGENT_OPTION: &str = "acpipe.agent";

/// Members of a session's state that only updates report, not the response of the call which opened it.
const OF_UPDATES: &[&str] = &[
    "availableCommands",
    "context",
    "currentModeId",
    "title",
    "updatedAt",
];

/// The open sessions.
#[derive(Debug)]
pub struct Sessions {
    /// Agents that the client may choose, the default one first.
    agents: Vec<String>,
    open: BTreeMap<String, Session>,
    /// Sessions that the client opens, until the response.
    opening: BTreeMap<String, OpeningSession>,
}

/// Session that the client opens.
#[derive(Debug, Default)]
pub struct OpeningSession {
    /// `true` if the client learns the id by the response.
    is_new: bool,
    /// Notifications that the client receives after the response.
    pub held: Vec<String>,
    /// `true` if the agent has listed its commands meanwhile.
    pub lists_commands: bool,
}

/// An open session.
#[derive(Debug)]
struct Session {
    agent: String,
    /// Whether the agent speaks ACP, so that its settings are passed on as they are.
    is_acp: bool,
}

impl Sessions {
    /// Creates the list for a choice of agents, the default one first.
    pub fn new(agents: &[String]) -> Self {
        Self {
            agents: agents.to_vec(),
            open: BTreeMap::new(),
            opening: BTreeMap::new(),
        }
    }

    /// Records that the client opens a session.
    pub fn begin(&mut self, session: &str, open_as: OpenAs) {
        let opening = OpeningSession {
            is_new: open_as == OpenAs::New,
            ..OpeningSession::default()
        };
        self.opening.insert(session.to_owned(), opening);
    }

    /// Ends the opening of a session, before its response or after a failure.
    pub fn end_opening(&mut self, session: &str) -> Option<OpeningSession> {
        self.opening.remove(session)
    }

    /// Returns `true` if the update is held until the response with the session's id. `quoted` is this id as a JSON
    /// string.
    pub fn holds(&mut self, session: &str, quoted: &str, update: AcpNotification<'_>) -> bool {
        if self.opening.is_empty() {
            return false;
        }
        let Some(opening) = self.opening.get_mut(session) else {
            return false;
        };
        let mut text = Vec::new();
        update.write(quoted, &mut text);
        let lists = memchr::memmem::find(&text, b"\"available_commands_update\"");
        opening.lists_commands |= lists.is_some();
        if opening.is_new {
            opening.held.extend(String::from_utf8(text).ok());
        }
        opening.is_new
    }

    /// Records a session that was opened.
    pub fn note(&mut self, result: &SessionResult) {
        let session = Session {
            agent: result.agent_name.clone(),
            is_acp: result.is_acp,
        };
        self.open.insert(result.session_id.clone(), session);
    }

    /// Forgets a session that is deleted.
    pub fn forget(&mut self, session: &str) {
        self.open.remove(session);
    }

    /// Returns `true` if the client has opened a session of this id.
    pub fn has(&self, session: &str) -> bool {
        self.open.contains_key(session)
    }

    /// Returns `true` if the options of a session are made by acpipe from its modes and models.
    pub fn has_own_options(&self, session: &str) -> bool {
        self.open
            .get(session)
            .is_some_and(|session| !session.is_acp)
    }

    /// Returns the result of the call that opened a session, without the session id.
    pub fn opened_result(&self, session: &str, state: &Value) -> Map<String, Value> {
        let mut result = if self.has_own_options(session) {
            session_settings(state)
        } else {
            let mut result = state.as_object().cloned().unwrap_or_default();
            for name in OF_UPDATES {
                result.remove(*name);
            }
            result
        };
        if let Some(option) = self.agent_option(session) {
            let options = result.entry("configOptions").or_insert_with(|| json!([]));
            if let Some(options) = options.as_array_mut() {
                options.push(option);
            }
        }
        result
    }

    /// Returns the complete list of a session's options.
    pub fn options(&self, session: &str, state: &Value) -> Value {
        let mut result = self.opened_result(session, state);
        result.remove("configOptions").unwrap_or_else(|| json!([]))
    }

    /// Returns the option "Agent", if the client has a choice.
    fn agent_option(&self, session: &str) -> Option<Value> {
        let current = &self.open.get(session)?.agent;
        if self.agents.len() < 2 {
            return None;
        }
        let is_offered = self.agents.contains(current);
        let names = self
            .agents
            .iter()
            .chain(Some(current).filter(|_| !is_offered));
        let options: Vec<Value> = names
            .map(|name| json!({ "value": name, "name": name }))
            .collect();
        Some(json!({
            "id": AGENT_OPTION,
            "name": "Agent",
            "description": "The agent of this session. Another agent receives the conversation with the next prompt.",
            "type": "select",
            "currentValue": current,
            "options": options,
        }))
    }

    /// Returns an update with the option "Agent", if it is a complete list of options and the client has a choice.
    pub fn completed(&self, session: &str, update: AcpNotification<'_>) -> Option<Vec<u8>> {
        if self.agents.len() < 2 {
            return None;
        }
        let mut update: Value = match update {
            AcpNotification::Update(update) if lists_options(update) => {
                serde_json::from_slice(update).ok()?
            }
            AcpNotification::Line {
                line,
                session: Some(_),
            } if lists_options(line.as_bytes()) => {
                let Ok(Message::Notification { params, .. }) = rpc::parse(line) else {
                    return None;
                };
                let mut params: Value = serde_json::from_str(params?.get()).ok()?;
                params["update"].take()
            }
            _ => return None,
        };
        if update["sessionUpdate"] != "config_option_update" {
            return None;
        }
        let option = self.agent_option(session)?;
        update["configOptions"].as_array_mut()?.push(option);
        serde_json::to_vec(&update).ok()
    }
}

fn lists_options(json: &[u8]) -> bool {
    memchr::memmem::find(json, b"\"config_option_update\"").is_some()
}
