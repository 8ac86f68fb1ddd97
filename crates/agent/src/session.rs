//! Sessions of an agent: their settings, and the messages that the framework keeps.

use super::error::{AgentError, FailureKind};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Session: one conversation of a client with the agent.
#[derive(Debug)]
pub struct Session {
    id: String,
    cwd: PathBuf,
    directories: Vec<PathBuf>,
    mcp_servers: Vec<McpServer>,
    context: Map<String, Value>,
    state: Mutex<ConversationState>,
}

/// Changing part of a session.
#[derive(Debug, Default)]
struct ConversationState {
    history: Vec<Message>,
    options: BTreeMap<String, String>,
    /// Names of tools that the user allowed for the rest of the session.
    allowed_tools: BTreeSet<String>,
    /// Cost of all turns by currency code.
    costs: BTreeMap<String, f64>,
}

/// Message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub text: String,
}

/// Author of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The agent's instructions.
    System,
    /// The user.
    User,
    /// The agent.
    Agent,
}

impl Message {
    /// Creates a message with instructions.
    pub fn system(text: impl Into<String>) -> Self {
        let (role, text) = (Role::System, text.into());
        Self { role, text }
    }

    /// Creates a message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        let (role, text) = (Role::User, text.into());
        Self { role, text }
    }

    /// Creates a message of the agent.
    pub fn agent(text: impl Into<String>) -> Self {
        let (role, text) = (Role::Agent, text.into());
        Self { role, text }
    }
}

/// MCP server that the client wants the agent to use in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name of the server.
    pub name: String,
    /// How the server is reached.
    pub transport: McpTransport,
}

/// How an [`McpServer`] is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that speaks MCP on stdin and stdout.
    Stdio {
        /// Program of the server.
        command: String,
        /// Arguments of the program.
        args: Vec<String>,
        /// Environment variables of the program.
        env: Vec<(String, String)>,
    },
    /// A server with streamable HTTP.
    Http {
        /// URL of the server.
        url: String,
        /// HTTP headers of each request.
        headers: Vec<(String, String)>,
    },
    /// A server with server-sent events.
    Sse {
        /// URL of the server.
        url: String,
        /// HTTP headers of each request.
        headers: Vec<(String, String)>,
    },
}

/// Session in the list of stored sessions of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSession {
    /// Id of the session.
    pub id: String,
    /// Working directory of the session.
    pub cwd: PathBuf,
    /// Title for people.
    pub title: Option<String>,
}

impl Session {
    /// Returns the id of the session, which is unique among all sessions of the agent.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the working directory, an absolute path.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns further directories that the agent may use.
    #[must_use]
    pub fn additional_directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Returns the MCP servers that the client wants the agent to use.
    #[must_use]
    pub fn mcp_servers(&self) -> &[McpServer] {
        &self.mcp_servers
    }

    /// Returns the values that the client passed with the session, by name: the `_meta` of the request.
    #[must_use]
    pub fn context(&self) -> &Map<String, Value> {
        &self.context
    }

    /// Returns the id of the value that the user chose for an option; see
    /// [`Agent::options`](super::Agent::options). `None` if the agent has no option of this id.
    #[must_use]
    pub fn option(&self, id: &str) -> Option<String> {
        self.state().options.get(id).cloned()
    }

    /// Returns the messages of earlier turns, if the agent
    /// [keeps its history](super::Agent::keeps_history).
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.state().history.clone()
    }

    fn state(&self) -> MutexGuard<'_, ConversationState> {
        // A panic leaves no state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a session from the parameters of `session/new`, `session/resume` or `session/load`.
    pub(super) fn of_params(
        id: String,
        params: &Value,
        options: BTreeMap<String, String>,
    ) -> Result<Self, AgentError> {
        let cwd = params["cwd"].as_str().map(PathBuf::from);
        let cwd = cwd.filter(|cwd| cwd.is_absolute());
        let cwd = cwd.ok_or_else(|| invalid("cwd", "must be an absolute path"))?;
        let servers = match &params["mcpServers"] {
            Value::Null => &[],
            Value::Array(servers) => servers.as_slice(),
            _ => return Err(invalid("mcpServers", "must be a list")),
        };
        let mcp_servers = servers.iter().enumerate().map(|(index, server)| {
            let why = "is not a valid MCP server";
            mcp_server(server).ok_or_else(|| invalid(&format!("mcpServers[{index}]"), why))
        });
        let directories = params["additionalDirectories"].as_array();
        let directories = directories.into_iter().flatten();
        Ok(Self {
            id,
            cwd,
            directories: directories
                .filter_map(Value::as_str)
                .map(PathBuf::from)
                .collect(),
            mcp_servers: mcp_servers.collect::<Result<_, _>>()?,
            context: params["_meta"].as_object().cloned().unwrap_or_default(),
            state: Mutex::new(ConversationState {
                options,
                ..ConversationState::default()
            }),
        })
    }

    /// Copies the options, the permissions and the cost of the session that this one replaces.
    pub(super) fn continue_from(&self, before: &Self) {
        let before = before.state();
        let mut state = self.state();
        state.options.clone_from(&before.options);
        state.allowed_tools.clone_from(&before.allowed_tools);
        state.costs.clone_from(&before.costs);
    }

    pub(super) fn set_history(&self, history: Vec<Message>) {
        self.state().history = history;
    }

    pub(super) fn add_messages(&self, messages: impl IntoIterator<Item = Message>) {
        self.state().history.extend(messages);
    }

    pub(super) fn set_option(&self, id: &str, value: &str) {
        self.state().options.insert(id.to_owned(), value.to_owned());
    }

    pub(super) fn options(&self) -> BTreeMap<String, String> {
        self.state().options.clone()
    }

    pub(super) fn allow_tool(&self, name: &str) {
        self.state().allowed_tools.insert(name.to_owned());
    }

    pub(super) fn allows_tool(&self, name: &str) -> bool {
        self.state().allowed_tools.contains(name)
    }

    /// Adds a cost and returns the cost of all turns in that currency.
    pub(super) fn add_cost(&self, amount: f64, currency: &str) -> f64 {
        let mut state = self.state();
        let total = state.costs.entry(currency.to_owned()).or_default();
        *total += amount;
        *total
    }
}

fn invalid(field: &str, why: &str) -> AgentError {
    AgentError::new(FailureKind::InvalidParams, format!("`{field}` {why}")).with("field", field)
}

fn mcp_server(server: &Value) -> Option<McpServer> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let pairs = |list: &Value| -> Option<Vec<(String, String)>> {
        let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .map(|pair| Some((text(&pair["name"])?, text(&pair["value"])?)))
            .collect()
    };
    let transport = match server["type"].as_str() {
        None | Some("stdio") => {
            let args = server["args"].as_array().map(Vec::as_slice);
            McpTransport::Stdio {
                command: text(&server["command"])?,
                args: args
                    .unwrap_or_default()
                    .iter()
                    .map(text)
                    .collect::<Option<_>>()?,
                env: pairs(&server["env"])?,
            }
        }
        Some(kind @ ("http" | "sse")) => {
            let (url, headers) = (text(&server["url"])?, pairs(&server["headers"])?);
            if kind == "http" {
                McpTransport::Http { url, headers }
            } else {
                McpTransport::Sse { url, headers }
            }
        }
        Some(_) => return None,
    };
    let name = text(&server["name"])?;
    Some(McpServer { name, transport })
}
