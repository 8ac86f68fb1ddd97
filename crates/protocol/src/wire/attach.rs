//! Several clients of one session on the wire: attaching, detaching, and what each learns of the others.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Role of a client in a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Role {
    /// Prompts, cancels, changes settings, and answers permission requests and questions.
    #[default]
    Controller,
    /// Only follows the session: receives chunks and notifications, but no requests. Calls that change the
    /// session fail with `forbidden`.
    Observer,
}

/// Effect on a session of a client that leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum OnDisconnect {
    /// The client's running turn, its queued prompts and its open requests stay. Requests that no attached
    /// client can answer wait for the time limit `answer`, and are sent to clients that attach meanwhile.
    Continue,
    /// The client's running turn and its queued prompts are cancelled. Requests that no other client can
    /// answer are decided by the policy.
    #[default]
    Cancel,
}

/// Parameters of `session/attach`, which subscribes the client to a session without opening it at its agent.
/// Attaching again changes what the call names.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttachParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Number of the last chunk that the client has. It receives all later ones: first the stored ones, then
    /// the live ones, without a gap or a repetition. 0: all chunks of the session. Default: only chunks that
    /// are created after the call.
    #[serde(default)]
    pub after_seq: Option<u64>,
    /// Role of the client. Default: its present role; for a new one `controller`.
    #[serde(default)]
    pub role: Option<Role>,
    /// Effect of the client's departure on the session. Default: the present value; for a new client
    /// `continue` if it is connected to a daemon, otherwise `cancel`.
    #[serde(default)]
    pub on_disconnect: Option<OnDisconnect>,
}

/// Result of `session/attach`. The missed chunks follow it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttachResult {
    /// The client's id of the session.
    pub session_id: String,
    /// Id of the calling client, as other clients see it.
    pub client_id: String,
    /// Role of the calling client.
    pub role: Role,
    /// Number of the last chunk of the session; 0 if it has none.
    pub last_seq: u64,
    /// The running turn. `null` if no turn runs.
    pub running: Option<RunningTurn>,
    /// Clients of the session, including the calling one.
    pub clients: Vec<SessionClient>,
}

/// The running turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunningTurn {
    /// Id of the turn.
    pub turn_id: String,
    /// Id of the message that the turn creates.
    pub message_id: String,
    /// Number of the last chunk before the turn: the `afterSeq` with which a client receives all of the turn.
    pub after_seq: u64,
    /// Id of the client whose prompt began the turn. `null` if the agent began it without a prompt.
    pub client_id: Option<String>,
}

/// A client of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionClient {
    /// Id of the client, unique while acpipe runs.
    pub client_id: String,
    /// Name of the client, from `clientInfo` of its `initialize`. `null` if it gave none.
    pub name: Option<String>,
    /// Version of the client. Absent if it gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Role of the client in the session.
    pub role: Role,
    /// Effect of the client's departure on the session.
    pub on_disconnect: OnDisconnect,
    /// Whether this is the client that receives the list.
    pub is_self: bool,
}

/// Result of `session/clients`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClientsResult {
    /// Clients of the session: those that attached to it, and those that opened or prompted it.
    pub clients: Vec<SessionClient>,
}

/// Parameters of the notification `session/presence`, sent to the other clients of a session when a client
/// attaches, detaches, leaves or changes its role or `onDisconnect`, and when the session is closed or cleared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PresenceParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Clients of the session. Empty after the session was closed or cleared: the receiver is then detached.
    pub clients: Vec<SessionClient>,
}

/// Parameters of the notification `session/userMessage`, sent to the other clients of a session when a prompt
/// begins its turn, before the chunks of the turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserMessageParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Id of the turn.
    pub turn_id: String,
    /// Id of the client that sent the prompt.
    pub client_id: String,
    /// The user's message as it is stored, a `UIMessage` of the AI SDK.
    pub message: Value,
}

/// The client that decided something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DecidingClient {
    /// Id of the client.
    pub client_id: String,
    /// Name of the client, from `clientInfo` of its `initialize`. `null` if it gave none.
    pub name: Option<String>,
}
