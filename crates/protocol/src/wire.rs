//! The neutral protocol, version 1: every type that a client sends or receives. It is the only source of
//! `schemas/`.
//!
//! JSON-RPC 2.0 with camelCase names. acpipe rejects unknown fields in what a client sends, unless the client
//! opts out ([`UnknownFields`]); clients must ignore unknown fields in what they receive. In results an
//! unknown value is `null`, never `0`.

mod agents;
mod attach;
mod auth;
mod client_requests;
mod environment;
mod execute;
mod history;
mod hosting;
mod mcp;
mod options;
mod program;
mod prompt;
mod session;
mod setting;
mod turn;
mod wait;

pub use agents::{
    AgentDetails, AgentListParams, AgentListResult, AgentSummary, GetAgentParams, RegisterParams,
};
pub use attach::{
    AttachParams, AttachResult, ClientsResult, DecidingClient, OnDisconnect, PresenceParams, Role,
    RunningTurn, SessionClient, UserMessageParams,
};
pub use auth::{
    AuthMethod, AuthVariable, AuthenticateParams, AuthenticateResult, CommandLine, SignIn,
};
pub use client_requests::{
    AskedTool, CancelRequestParams, FeedbackDelivery, LedgerEntry, OfferedKind, OfferedOption,
    PermissionAnswer, PermissionOutcome, PermissionParams, QuestionAction, QuestionAnswer,
    QuestionKind, QuestionParams,
};
pub use environment::{
    BroughtBack, EnvironmentResult, UpdateEnvironmentParams, UpdateEnvironmentResult, Variables,
    WhenBusy,
};
pub use execute::ExecuteParams;
pub use history::{
    AddMessageParams, ClearParams, ClearSessionParams, ListMessagesParams, ListMessagesResult,
    ListSessionsParams, ListSessionsResult, MessageResult, ReplayEntry, ReplayParams, ReplayResult,
    SessionActivity, SessionInfo, SessionParams, SessionStage, UpdateMessageParams,
};
pub use hosting::{
    CreateTerminalParams, CreatedTerminal, DoneByClient, EnvVariable, FileCapabilities,
    ReadTextFileParams, TerminalExited, TerminalParams, TerminalSaid, TextFile,
    WriteTextFileParams,
};
pub use mcp::{McpPair, McpServer, McpServersByName, McpTransport};
pub use options::{Protocol, SessionOptions};
pub use program::{FoundBy, PassedOver, Program};
pub use prompt::{LONGEST_TIMEOUT_MS, PromptParams, PromptWhenBusy, UiMessage, UserMessage};
pub use session::{
    Activity, ActivityParams, Attempt, CancelParams, CancelResult, CreateParams, EnsureParams,
    Memory, Recovery, Rung, SessionResult, StateParams, SteerParams, SteerResult, Strategy,
    SubscribeParams, WaitingPrompt,
};
pub use setting::{
    NotRestored, SetModeParams, SetModelParams, SetOptionParams, SettingResult, SettingValue,
};
pub use turn::{
    AnswerFile, ChunkParams, EventsParams, Omitted, OutcomeKind, TokenUsage, ToolCall, ToolResult,
    TurnError, TurnOutcome, TurnSummary,
};
pub use wait::{Party, Waiting};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::sync::Arc;

/// The version of the neutral protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// Session id of calls without a `sessionId`.
pub const DEFAULT_SESSION: &str = "default";

/// Parameters of `initialize`, the first call of a connection.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Version of the neutral protocol that the client uses. Must be 1.
    pub protocol_version: u32,
    /// Name and version of the client. Optional.
    #[serde(default)]
    pub client_info: Option<PeerInfo>,
    /// Process id of the client. When that process ends, acpipe exits as if its stdin had ended. acpipe
    /// ignores an id that does not exist on this machine, such as one from another container. Default:
    /// none, only the end of stdin counts.
    #[serde(default)]
    pub process_id: Option<u32>,
    /// Notifications that the client receives, and requests that it answers. Default: chunks, and no
    /// requests.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// Form of the chunks that the client receives. Default: the value of `--chunk-profile`.
    #[serde(default)]
    pub chunk_profile: Option<ChunkProfile>,
    /// Handling of unknown fields in all messages of the client, starting with this call. Default: `refuse`.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
    /// Members of the `initialize` of a client that speaks ACP. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub acp: Option<Box<RawValue>>,
    /// Effect of the client's departure on its sessions, unless `session/attach` names another one. Set by the
    /// connection. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub on_disconnect: OnDisconnect,
    /// The most that the client may do: an `observer` can only follow sessions and read. Set by the connection.
    /// Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub role: Role,
}

impl InitializeParams {
    /// Creates the parameters of a client with these capabilities.
    #[must_use]
    pub fn of(capabilities: ClientCapabilities) -> Self {
        Self {
            protocol_version: PROTOCOL_VERSION,
            client_info: None,
            process_id: None,
            capabilities,
            chunk_profile: None,
            unknown_fields: UnknownFields::default(),
            acp: None,
            on_disconnect: OnDisconnect::default(),
            role: Role::default(),
        }
    }
}

/// Handling of unknown fields in messages of the client. `_meta`, and content that acpipe passes on
/// (messages, metadata, answers to forms), may contain any field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UnknownFields {
    /// A call with an unknown field fails with `invalidParams`; the error contains the field's path and the
    /// nearest known name.
    #[default]
    Refuse,
    /// Unknown fields have no effect.
    Ignore,
}

/// Name and version of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PeerInfo {
    /// Name for programs.
    pub name: String,
    /// Name for people. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Notifications that the client receives, and requests that it answers.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent capability"
)]
pub struct ClientCapabilities {
    /// Whether the client receives `session/chunk` notifications. Default: `true`. `session/subscribe`
    /// changes it later.
    #[serde(default)]
    pub chunks: Option<bool>,
    /// Whether the client answers `permission/request`. Default: `false`.
    #[serde(default)]
    pub permissions: bool,
    /// Whether the client answers `question/ask`. Default: `false`.
    #[serde(default)]
    pub questions: bool,
    /// File requests that the client answers. Default: none.
    #[serde(default)]
    pub fs: FileCapabilities,
    /// Whether the client answers `terminal/create` and the other `terminal/*` requests. Default: `false`.
    #[serde(default)]
    pub terminal: bool,
    /// Whether the client receives events of the AG-UI protocol, in `session/events` notifications, in place of
    /// `session/chunk` notifications. Default: `false`.
    #[serde(default)]
    pub agui: bool,
}

/// Result of `initialize`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// Version of the neutral protocol: 1.
    pub protocol_version: u32,
    /// Name and version of acpipe.
    pub server_info: PeerInfo,
    /// Form of the chunks that the client receives.
    pub chunk_profile: ChunkProfile,
    /// Agent that `agent/connect` starts where the call has no `command`.
    pub default_agent: DefaultAgent,
}

/// Agent that acpipe starts where the client does not specify one.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DefaultAgent {
    /// Name of the agent; `default` if the user gave it none.
    pub name: String,
    /// Program: a path, or a name to be found in `PATH`.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Where the agent is configured.
    pub source: AgentSource,
}

/// Where an agent is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AgentSource {
    /// The command line, after `--`.
    CommandLine,
    /// The environment variable `ACPIPE_AGENT`.
    Environment,
    /// The configuration: an agent with a name of its own.
    Configuration,
    /// acpipe's list of well-known agents.
    BuiltIn,
    /// acpipe's built-in demo agent, because nothing else is configured.
    Demo,
    /// A command of the client, in `agent/connect`.
    Client,
    /// A stored session: the agent that had it last, started for it.
    Session,
    /// The program that contains acpipe: the agent runs inside it. Its name is in place of a program.
    InProcess,
}

/// Parameters of `agent/connect`, which starts an agent. Without `command` and `protocol` it starts the
/// default agent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// Name of the agent: letters, digits, `.`, `_` and `-`, at most 64 bytes. Default: `default`. A new name
    /// needs a `command`, or a `protocol` with a command of its own.
    #[serde(default)]
    pub agent: Option<String>,
    /// Path or name of the program. A name is searched in `PATH`, and if it is not there in the `PATH` of the
    /// user's login shell. No shell interprets it. Default: the default agent is started.
    #[serde(default)]
    pub command: Option<String>,
    /// Arguments of the program. Default: none.
    #[serde(default)]
    pub args: Vec<String>,
    /// Working directory of the agent, and of sessions without a `cwd`. Default: acpipe's own.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Environment variables to set, or with `null` to unset, in addition to acpipe's own environment.
    /// Default: none.
    #[serde(default)]
    pub env: Variables,
    /// Protocol of the agent. Default: that of the default agent, or with a `command` the one that the
    /// program's name implies (`claude` is the Claude Code CLI, every other name uses ACP). With `claude` and
    /// no `command`, acpipe looks for the CLI.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// Whether each session has its own agent process, for ACP agents that cannot run two sessions in one
    /// process. Default: the setting of the default agent if there is no `command`, otherwise `false`.
    #[serde(default)]
    pub child_per_session: Option<bool>,
    /// Options of the agent's sessions. `options` of a session override them one by one. Default: none.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// Maximum time for the call in milliseconds; at least 1 and at most ten years. When it passes, the call fails
    /// with the error `timeout`, and the agent starts on. Default: no limit of its own.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = LONGEST_TIMEOUT_MS)))]
    pub timeout_ms: Option<u64>,
    /// Part of `timeoutMs` that has passed before the call, in milliseconds: for a client that makes several calls
    /// within one limit. Default: 0.
    #[serde(default)]
    pub elapsed_ms: u64,
}

/// Result of `agent/connect` and `agent/status`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", schemars(rename = "AgentStatusResult"))]
pub struct AgentStatus {
    /// Name of the agent.
    pub agent: String,
    /// State of the agent.
    pub state: AgentState,
    /// Why the agent stopped, if the client did not stop it: a crash, a failed start, or the idle timeout.
    /// `null` otherwise, and while the agent runs.
    pub reason: Option<String>,
    /// Protocol of the agent: `acp` or `claude`. `null` unless the agent is connected.
    pub protocol: Option<String>,
    /// Configured program of the agent. `null` unless the agent is connected or about to be restarted.
    pub command: Option<String>,
    /// File that `command` resolved to. `null` until the agent was started.
    pub program: Option<Program>,
    /// Arguments of the program. Empty unless the agent is connected or about to be restarted.
    pub args: Vec<String>,
    /// Where the agent is configured. `null` unless the agent is connected or about to be restarted.
    pub source: Option<AgentSource>,
    /// Id of the agent process. `null` if each session has its own process, or no process runs.
    pub pid: Option<u32>,
    /// Running processes of the agent.
    pub processes: Vec<ProcessStatus>,
    /// How often acpipe restarted the agent after an unexpected exit.
    pub restarts: u32,
    /// Name and version that the agent reports. `null` until it is ready, or if it reports none.
    pub agent_info: Option<PeerInfo>,
    /// Capabilities that the agent reports. `null` until it is ready.
    pub capabilities: Option<AgentCapabilities>,
    /// Methods to sign in to the agent. Empty until it is ready, or if it offers none.
    pub auth_methods: Vec<AuthMethod>,
    /// Lines of the agent that acpipe could not use, counted since the agent started.
    pub faults: LineFaults,
    /// Step that the start of the agent waits for. `null` unless the agent is starting.
    pub waiting_for: Option<Waiting>,
    /// Result of the agent's `initialize` in ACP, for clients that speak ACP. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub acp: Option<Arc<str>>,
}

/// A running process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    /// Process id.
    pub pid: u32,
    /// Time since the process started, in milliseconds.
    pub uptime_ms: u64,
    /// Number of processes in the process tree: this one and all its descendants. `null` in the result of
    /// `agent/connect`, or if it could not be measured.
    pub tree: Option<u32>,
    /// Resident memory of the process tree, in bytes; shared memory counts once for each process. `null`
    /// where `tree` is `null`.
    pub rss_bytes: Option<u64>,
}

/// State of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum AgentState {
    /// No agent process runs.
    Disconnected,
    /// Started, but not ready yet; or about to be restarted after a crash.
    Starting,
    /// Ready for calls.
    Ready,
    /// Shutting down.
    Stopping,
}

/// Form of the chunks that a client receives: a major version of the AI SDK (7, 6 or 5), or the name of another
/// form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "expected 7, 6, 5 or \"discobot\"")]
pub enum ChunkProfile {
    /// Major version of the AI SDK.
    Major(SdkMajor),
    /// Another form.
    Named(ChunkProfileName),
}

/// Major version of the AI SDK: 7, 6 or 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct SdkMajor(pub u32);

/// Form of chunks with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChunkProfileName {
    /// The names and outputs of discobot's ACP generation.
    Discobot,
}

/// Capabilities that an agent reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent capability"
)]
pub struct AgentCapabilities {
    /// Loads sessions and replays their history.
    pub load: bool,
    /// Resumes sessions without a replay.
    pub resume: bool,
    /// Lists its sessions.
    pub list: bool,
    /// Closes sessions.
    pub close: bool,
    /// Accepts images in prompts.
    pub image: bool,
    /// Accepts audio in prompts.
    pub audio: bool,
    /// Accepts embedded resources in prompts.
    pub embedded_context: bool,
    /// Connects to MCP servers over HTTP.
    pub mcp_http: bool,
    /// Connects to MCP servers over SSE.
    pub mcp_sse: bool,
    /// Supports `agent/logout`.
    pub logout: bool,
    /// Runs a tool with the `updatedInput` of an answer to `permission/request`.
    pub updated_input: bool,
    /// Takes messages into a running turn: `session/steer`.
    pub steer: bool,
}

/// Lines of an agent that acpipe could not use, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LineFaults {
    /// Lines that are not JSON, or JSON that is not a message.
    pub malformed: u64,
    /// Lines that are empty or contain only white space.
    pub blank: u64,
    /// Lines that are not valid UTF-8.
    pub invalid_utf8: u64,
    /// Lines longer than the limit (`--max-line`, 64 MiB by default).
    pub too_long: u64,
}

/// Parameters of `agent/disconnect`, `agent/status`, `agent/getEnvironment` and `agent/logout`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentParams {
    /// Name of the agent. Default: `default`.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Parameters of methods without parameters.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct NoParams {}

/// Result of calls that return no data: an empty object, sent when the call is complete.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Done {}

/// Parameters of the notification `agent/state`, sent to the client when the state of an agent changes, and
/// repeatedly while its start is slow.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentStateParams {
    /// Name of the agent.
    pub agent: String,
    /// State of the agent.
    pub state: AgentState,
    /// Why the state changed. `null` if there is nothing to report.
    pub reason: Option<String>,
    /// Step that a slow start waits for. `null` otherwise.
    pub waiting_for: Option<Waiting>,
}
