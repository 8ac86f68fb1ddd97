//! What is stored, on the wire: sessions, messages, chunks.

use super::Waiting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Calls about one session.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
}

/// `session/clear` and `message/clear`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Keeps what is removed in an archive beside the sessions; gone for good where absent.
    #[serde(default)]
    pub archive: bool,
}

/// `session/list`: sessions, those that changed last first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsParams {
    /// Only those of this working directory; links are resolved.
    #[serde(default)]
    pub cwd: Option<String>,
    /// `nextCursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
    /// How many at most: 100 where absent, 1000 at most.
    #[serde(default)]
    pub limit: Option<u32>,
    /// Adds the sessions that the ready agents list and no client has: `session/ensure` with
    /// `agentSessionId` adopts one.
    #[serde(default)]
    pub agent: bool,
}

/// The answer to `session/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListSessionsResult {
    /// A page of sessions.
    pub sessions: Vec<SessionInfo>,
    /// Gives the next page; `null` on the last.
    pub next_cursor: Option<String>,
}

/// A session, as lists show it.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// The client's id; `null` for one that only the agent has.
    pub session_id: Option<String>,
    /// The agent's id.
    pub agent_session_id: Option<String>,
    /// The agent's command line.
    pub agent: Option<String>,
    /// Name of the agent.
    pub agent_name: Option<String>,
    /// How far it is.
    pub state: SessionStage,
    /// The turn that runs in it.
    pub turn_id: Option<String>,
    /// Working directory.
    pub cwd: String,
    /// What it is about, as the agent told.
    pub title: Option<String>,
    /// The mode it is in, by the agent's id.
    pub mode: Option<String>,
    /// The model it uses, by the agent's id.
    pub model: Option<String>,
    /// When it was made, RFC 3339.
    pub created_at: Option<String>,
    /// When something last happened in it, RFC 3339.
    pub updated_at: Option<String>,
    /// How many messages are stored.
    pub messages: Option<u64>,
    /// The number of its last chunk.
    pub seq: Option<u64>,
    /// Lines of its log that cannot be read and were left in place; known of sessions that are open.
    pub corrupt_lines: Option<u64>,
    /// What its turn or its opening waits for; told by `session/get`.
    pub waiting_for: Option<Waiting>,
}

/// How far a session is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionStage {
    /// The agent has it now.
    Live,
    /// It is on its way to be live.
    Opening,
    /// No agent has it now: `session/ensure` or the next prompt brings it back.
    #[default]
    Resting,
    /// The agent lists it, but no client has it.
    Foreign,
}

/// `session/replay`: the chunks of a session after a number.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// The `seq` of the last chunk that the client has; 0 for none.
    pub after_seq: u64,
    /// How many chunks at most: 1000 where absent, 10000 at most. A page may be shorter.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The answer to `session/replay`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayResult {
    /// The chunks, in order and in the client's profile.
    pub entries: Vec<ReplayEntry>,
    /// The `afterSeq` of the next page; `null` when there is nothing more: what then comes live goes on
    /// without a gap.
    pub next: Option<u64>,
}

/// A chunk that was stored.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplayEntry {
    /// Its number.
    pub seq: u64,
    /// Its turn; `null` for what is part of no message.
    pub turn_id: Option<String>,
    /// The chunk.
    pub chunk: Value,
}

/// `message/list`: the stored messages of a session, oldest first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMessagesParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Only what comes after the message of this id.
    #[serde(default)]
    pub after: Option<String>,
    /// Only what comes before the message of this id: the last of it.
    #[serde(default)]
    pub before: Option<String>,
    /// How many at most: 100 where absent, 1000 at most. A page may be shorter.
    #[serde(default)]
    pub limit: Option<u32>,
}

/// The answer to `message/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListMessagesResult {
    /// The messages, as `UIMessage`s of the client's profile.
    pub messages: Vec<Value>,
    /// Whether there are more in the direction that was asked for.
    pub more: bool,
    /// How many there are in all.
    pub total: u64,
}

/// `message/add`: adds a message to the store; the agent is not told of it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddMessageParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// A `UIMessage`: `id`, `role` and `parts` are needed, the id must be new.
    pub message: serde_json::Map<String, Value>,
}

/// `message/update`: changes a stored message.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateMessageParams {
    /// The client's id of the session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id of the message.
    pub message_id: String,
    /// The fields that take the place of the message's own; the id stays.
    pub message: serde_json::Map<String, Value>,
}

/// The answer to `message/last`, `message/add` and `message/update`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageResult {
    /// The message; `null` where there is none.
    pub message: Option<Value>,
}
