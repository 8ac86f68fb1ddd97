//! Stored data on the wire: sessions, messages and chunks.

use super::Waiting;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `session/get`, `session/close` and `message/last`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// Parameters of `message/clear`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClearParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Whether acpipe keeps a copy of the removed data in the `archive` directory. Default: `false`, the data
    /// is deleted.
    #[serde(default)]
    pub archive: bool,
}

/// Parameters of `session/clear`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClearSessionParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Whether acpipe keeps a copy of the removed data in the `archive` directory. Default: `false`, the data
    /// is deleted.
    #[serde(default)]
    pub archive: bool,
    /// Whether the agent's own file of the session is deleted, too, after the session's process has exited.
    /// Only for Claude Code. Default: `false`.
    #[serde(default)]
    pub delete_agent_files: bool,
}

/// Parameters of `session/list`, which lists sessions, most recently changed first. A session that is not open and has neither
/// messages nor a title is not listed: it was opened, and never used.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsParams {
    /// Lists only sessions of this working directory; symbolic links are resolved. Default: sessions of all
    /// directories.
    #[serde(default)]
    pub cwd: Option<String>,
    /// `nextCursor` of the previous page. Default: the first page.
    #[serde(default)]
    pub cursor: Option<String>,
    /// Maximum number of sessions in the page: 1 to 1000. Default: 100.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Whether the list includes sessions that only the ready agents have. `session/ensure` with
    /// `agentSessionId` adopts one. Default: `false`.
    #[serde(default)]
    pub agent: bool,
}

/// Result of `session/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResult {
    /// One page of sessions.
    pub sessions: Vec<SessionInfo>,
    /// `cursor` of the next page. `null` on the last page.
    pub next_cursor: Option<String>,
}

/// A session, in the results of `session/list` and `session/get`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The client's id of the session. `null` if only the agent has the session.
    pub session_id: Option<String>,
    /// The agent's id of the session. `null` if unknown.
    pub agent_session_id: Option<String>,
    /// Command line of the agent. `null` if unknown.
    pub agent: Option<String>,
    /// Name of the agent. `null` if unknown.
    pub agent_name: Option<String>,
    /// State of the session.
    pub state: SessionStage,
    /// Id of the running turn. `null` if no turn runs.
    pub turn_id: Option<String>,
    /// Work of the session. `null` unless the session is open.
    pub activity: Option<SessionActivity>,
    /// Number of clients of the session. `null` unless the session is open or has clients.
    pub clients: Option<u32>,
    /// Working directory of the session.
    pub cwd: String,
    /// Title that the agent reported. `null` if there is none.
    pub title: Option<String>,
    /// Current mode, as the agent's id. `null` if unknown.
    pub mode: Option<String>,
    /// Current model, as the agent's id. `null` if unknown.
    pub model: Option<String>,
    /// Time of creation, RFC 3339. `null` if unknown.
    pub created_at: Option<String>,
    /// Time of the last change, RFC 3339. `null` if unknown.
    pub updated_at: Option<String>,
    /// Number of stored messages. `null` if unknown.
    pub messages: Option<u64>,
    /// `seq` of the last chunk. `null` if unknown.
    pub seq: Option<u64>,
    /// Number of unreadable lines in the session's log; acpipe leaves them in place. `null` unless the
    /// session is open.
    pub corrupt_lines: Option<u64>,
    /// Cause for which the turn or the opening of the session waits. `null` otherwise, and in `session/list`.
    pub waiting_for: Option<Waiting>,
}

/// Work of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SessionActivity {
    /// No turn runs and no prompt is queued.
    Idle,
    /// A turn runs, or a prompt is queued.
    Running,
    /// A permission request or a question is open.
    Waiting,
}

/// State of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SessionStage {
    /// Open in the agent.
    Live,
    /// Being opened.
    Opening,
    /// Not open in any agent: `session/ensure` or the next prompt restores it.
    #[default]
    Resting,
    /// Listed by the agent, but not owned by any client.
    Foreign,
}

/// Parameters of `session/replay`, which reads stored chunks of a session from a cursor.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// `seq` of the last chunk that the client has; 0 to start from the beginning.
    pub after_seq: u64,
    /// Maximum number of chunks in the page: 1 to 10000. Default: 1000. A page may have fewer chunks even if
    /// more follow.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// Result of `session/replay`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    /// Stored chunks in order, in the chunk profile of the client.
    pub entries: Vec<ReplayEntry>,
    /// `afterSeq` of the next page. `null` on the last page; the `session/chunk` notifications continue from
    /// there without a gap.
    pub next: Option<u64>,
}

/// A stored chunk.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReplayEntry {
    /// Sequence number of the chunk in its session.
    pub seq: u64,
    /// Id of the turn. `null` for a chunk that belongs to no message.
    pub turn_id: Option<String>,
    /// The chunk.
    pub chunk: Value,
}

/// Parameters of `message/list`, which lists the stored messages of a session, oldest first.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListMessagesParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id of a message: lists only messages after it. Default: from the first message.
    #[serde(default)]
    pub after: Option<String>,
    /// Id of a message: lists only messages before it. Without `after`, the page holds the last of them.
    /// Default: to the last message.
    #[serde(default)]
    pub before: Option<String>,
    /// Maximum number of messages in the page: 1 to 1000. Default: 100. A page may have fewer messages even
    /// if more follow.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The agent's id of a session, in place of `sessionId`: lists the messages in the agent's own file, which
    /// is read for each call without starting the agent. Only for Claude Code. Default: none.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// With `agentSessionId`: name of the agent. Default: the default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// With `agentSessionId`: working directory of the session, an absolute path. Default: the agent's.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// Result of `message/list`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ListMessagesResult {
    /// Messages, as `UIMessage`s in the chunk profile of the client, oldest first.
    pub messages: Vec<Value>,
    /// Whether there are more messages: before this page if it was read backwards (`before` without `after`),
    /// otherwise after it.
    pub more: bool,
    /// Number of all stored messages of the session.
    pub total: u64,
}

/// Parameters of `message/add`, which adds a message to the store. The agent does not receive it.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AddMessageParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// A `UIMessage`; `id`, `role` and `parts` are required, and the id must be new.
    pub message: serde_json::Map<String, Value>,
}

/// Parameters of `message/update`, which changes a stored message. The agent does not receive the change.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpdateMessageParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id of the message.
    pub message_id: String,
    /// Fields that replace the fields of the same name in the message; the id does not change.
    pub message: serde_json::Map<String, Value>,
}

/// Result of `message/last`, `message/add` and `message/update`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageResult {
    /// The message, as a `UIMessage` in the chunk profile of the client. `null` if `message/last` finds none.
    pub message: Option<Value>,
}
