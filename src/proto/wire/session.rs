//! Sessions on the wire: opening, cancelling, subscribing, their state.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `session/ensure`: gives a live session, new where there is none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnsureParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Working directory, absolute; the agent's own where absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers, as ACP writes them; passed on to the agent as they are.
    #[serde(default)]
    pub mcp_servers: Vec<Value>,
}

/// `session/create`: as `session/ensure`, but the id must be new.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Working directory, absolute; the agent's own where absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers, as ACP writes them; passed on to the agent as they are.
    #[serde(default)]
    pub mcp_servers: Vec<Value>,
}

/// The answer to `session/ensure` and `session/create`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResult {
    /// The client's id.
    pub session_id: String,
    /// The agent's id.
    pub agent_session_id: String,
    /// Working directory.
    pub cwd: String,
    /// How the session came to be.
    pub recovery: Recovery,
    /// Modes, models, options, commands and title, as far as the agent told.
    pub state: Value,
}

/// How a session came to be.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// What gave the session.
    pub rung: Rung,
    /// What the agent remembers of it.
    pub memory: Memory,
}

/// What gave a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// It lives in this agent already.
    Live,
    /// It is new.
    New,
}

/// What the agent remembers of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Memory {
    /// Everything.
    Kept,
    /// There was nothing to remember.
    None,
}

/// `session/cancel`: ends the session's turn; nothing happens when there is none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Cancels only this turn.
    #[serde(default)]
    pub turn_id: Option<String>,
}

/// The answer to `session/cancel`; the turn's own end is the answer to its `session/prompt`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// Whether there was such a turn, and its cancel is on its way.
    pub cancelled: bool,
}

/// `session/subscribe`: switches `session/chunk` notifications on or off; the turn's summary comes anyway.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams {
    /// One session; all present and future ones where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// On or off.
    pub chunks: bool,
}

/// `session/activity`, to the client, whenever it changes: which tool runs now.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivityParams {
    /// The session.
    pub session_id: String,
    /// The tool; `null` when none runs any more.
    pub activity: Option<Activity>,
}

/// A tool that runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Name of the tool.
    pub tool_name: String,
    /// What it does, in one line.
    pub description: String,
}

/// `session/state`, to the client: modes, models, options, commands and title, whole, whenever they change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateParams {
    /// The session.
    pub session_id: String,
    /// The whole state, by the agent's own names.
    pub state: Value,
}
