//! The neutral protocol, version 1: every type a client sends or gets. The sole source of `schemas/`.
//!
//! JSON-RPC 2.0, camelCase. Unknown fields of what a client sends are refused, unless it asks otherwise; clients ignore
//! those of what they get. In results a value that is not known is `null`, never `0`.

mod asking;
mod auth;
mod environment;
mod history;
mod hosting;
mod mcp;
mod options;
mod program;
mod prompt;
mod session;
mod setting;
mod turn;
mod waiting;

pub use asking::{
    AskedTool, CancelRequestParams, FeedbackDelivery, LedgerEntry, OfferedKind, OfferedOption,
    PermissionAnswer, PermissionOutcome, PermissionParams, QuestionAction, QuestionAnswer,
    QuestionKind, QuestionParams,
};
pub use auth::{
    AuthMethod, AuthVariable, AuthenticateParams, AuthenticateResult, CommandLine, SignIn,
};
pub use environment::{
    BroughtBack, EnvironmentResult, UpdateEnvironmentParams, UpdateEnvironmentResult, Variables,
    WhenBusy,
};
pub use history::{
    AddMessageParams, ClearParams, ListMessagesParams, ListMessagesResult, ListSessionsParams,
    ListSessionsResult, MessageResult, ReplayEntry, ReplayParams, ReplayResult, SessionInfo,
    SessionParams, SessionStage, UpdateMessageParams,
};
pub use hosting::{
    CreateTerminalParams, CreatedTerminal, DoneByClient, EnvVariable, FileCapabilities,
    ReadTextFileParams, TerminalExited, TerminalParams, TerminalSaid, TextFile,
    WriteTextFileParams,
};
pub use mcp::{McpPair, McpServer, McpServersByName, McpTransport};
pub use options::{Protocol, SessionOptions};
pub use program::{FoundBy, PassedOver, Program};
pub use prompt::{PromptParams, PromptWhenBusy, UiMessage, UserMessage};
pub use session::{
    Activity, ActivityParams, Attempt, CancelParams, CancelResult, CreateParams, EnsureParams,
    Memory, Recovery, Rung, SessionResult, StateParams, Strategy, SubscribeParams, WaitingPrompt,
};
pub use setting::{
    NotRestored, SetModeParams, SetModelParams, SetOptionParams, SettingResult, SettingValue,
};
pub use turn::{ChunkParams, Omitted, TokenUsage, ToolCall, ToolResult, TurnError, TurnSummary};
pub use waiting::{Party, Waiting};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the neutral protocol.
pub const PROTOCOL_VERSION: u32 = 1;

/// The session of calls that name none.
pub const DEFAULT_SESSION: &str = "default";

/// `initialize`: the first call.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    /// Version of the neutral protocol that the client speaks: 1.
    pub protocol_version: u32,
    /// Who the client is.
    #[serde(default)]
    pub client_info: Option<PeerInfo>,
    /// The process id of the client: when that process has ended, acpipe ends as if its stdin had. Ids of
    /// processes that do not exist here, in a container say, are ignored.
    #[serde(default)]
    pub process_id: Option<u32>,
    /// What the client wants to get.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
    /// Major of the AI SDK whose chunks the client wants: 7, 6 or 5; that of `--chunk-profile` where absent.
    #[serde(default)]
    pub chunk_profile: Option<u32>,
    /// Handling of unknown fields in everything that the client sends from this call on, this call included.
    #[serde(default)]
    pub unknown_fields: UnknownFields,
}

/// Handling of unknown fields in what a client sends. `_meta` and content that is passed on (messages, metadata, answers
/// to forms) can have any field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UnknownFields {
    /// A call with an unknown field fails with `invalidParams`, which names the field and the nearest known one.
    #[default]
    Refuse,
    /// Unknown fields have no effect.
    Ignore,
}

/// Name and version of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeerInfo {
    /// Its name.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// What the client wants to get, and what it answers.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// `session/chunk` notifications: on unless `false`; `session/subscribe` switches them later.
    #[serde(default)]
    pub chunks: Option<bool>,
    /// The client answers `permission/request`.
    #[serde(default)]
    pub permissions: bool,
    /// The client answers `question/ask`.
    #[serde(default)]
    pub questions: bool,
    /// The files that the client serves.
    #[serde(default)]
    pub fs: FileCapabilities,
    /// The client answers `terminal/create` and the other `terminal/*`.
    #[serde(default)]
    pub terminal: bool,
}

/// The answer to `initialize`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// Version of the neutral protocol: 1.
    pub protocol_version: u32,
    /// acpipe and its version.
    pub server_info: PeerInfo,
    /// Major of the AI SDK whose chunks are sent.
    pub chunk_profile: u32,
    /// The agent that `agent/connect` without a command starts.
    pub default_agent: DefaultAgent,
}

/// The agent that is started when the client names none.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultAgent {
    /// Its command.
    pub command: String,
    /// The command's arguments.
    pub args: Vec<String>,
    /// Who named it.
    pub source: AgentSource,
}

/// Who named the default agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentSource {
    /// The command line, after `--`.
    CommandLine,
    /// The environment variable `ACPIPE_AGENT`.
    Environment,
    /// Nobody: it is acpipe's own demo agent.
    Demo,
    /// The client, in `agent/connect`.
    Client,
    /// The stored session that needs it: the agent that had it last.
    Session,
}

/// `agent/connect`: starts an agent, the default one where no command is given.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// Name of the agent: letters, digits, `.`, `_` and `-`, 64 at most; `default` where absent. A new name needs a
    /// `command`, or a `protocol` that has one.
    #[serde(default)]
    pub agent: Option<String>,
    /// Path or name of the program; a name is looked for in `PATH` and, where it is not there, in that of the
    /// login shell. Never given to a shell.
    #[serde(default)]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its working directory, and that of sessions that name none; acpipe's own by default.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Environment variables to set, or with `null` to unset, on top of acpipe's own.
    #[serde(default)]
    pub env: Variables,
    /// The protocol that it speaks; where absent that of the default agent or, with a command, the one that its
    /// name tells: `claude` is the Claude Code CLI, everything else speaks ACP. With `claude` and no command
    /// the CLI is looked for.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// Gives each session a process of its own, for agents that speak ACP and cannot run two sessions in one; as the
    /// default agent has it where no command is given, else not.
    #[serde(default)]
    pub child_per_session: Option<bool>,
    /// What its sessions get where they say nothing else.
    #[serde(default)]
    pub options: Box<SessionOptions>,
}

/// The answer to `agent/connect` and `agent/status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AgentStatusResult")]
pub struct AgentStatus {
    /// Name of the agent.
    pub agent: String,
    /// How far the agent is.
    pub state: AgentState,
    /// Why there is none any more, where nobody wished that.
    pub reason: Option<String>,
    /// Its protocol.
    pub protocol: Option<String>,
    /// Its command.
    pub command: Option<String>,
    /// The program that its command was found to be, once it was started.
    pub program: Option<Program>,
    /// The command's arguments.
    pub args: Vec<String>,
    /// Who named it.
    pub source: Option<AgentSource>,
    /// Its process id; `null` where each session has a process of its own.
    pub pid: Option<u32>,
    /// Its processes that run.
    pub processes: Vec<ProcessStatus>,
    /// How often acpipe started the agent again because it had ended though nobody wished it.
    pub restarts: u32,
    /// What it says it is.
    pub agent_info: Option<PeerInfo>,
    /// What it says it can do.
    pub capabilities: Option<AgentCapabilities>,
    /// How its user can sign in.
    pub auth_methods: Vec<AuthMethod>,
    /// Lines of it that could not be used so far.
    pub faults: LineFaults,
    /// What its start waits for.
    pub waiting_for: Option<Waiting>,
}

/// A process of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProcessStatus {
    /// Its process id.
    pub pid: u32,
    /// For how long it has run, in milliseconds.
    pub uptime_ms: u64,
    /// How many processes it and all it started are; `null` in the answer to `agent/connect`.
    pub tree: Option<u32>,
    /// Their resident memory in bytes, what they share counted for each; `null` as `tree` is.
    pub rss_bytes: Option<u64>,
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentState {
    /// There is none.
    Disconnected,
    /// Started, not ready yet.
    Starting,
    /// Ready.
    Ready,
    /// On its way out.
    Stopping,
}

/// What an agent says it can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent capability"
)]
pub struct AgentCapabilities {
    /// Loads sessions and replays their history.
    pub load: bool,
    /// Resumes sessions without replay.
    pub resume: bool,
    /// Lists its sessions.
    pub list: bool,
    /// Closes sessions.
    pub close: bool,
    /// Takes images in prompts.
    pub image: bool,
    /// Takes sounds in prompts.
    pub audio: bool,
    /// Takes embedded resources in prompts.
    pub embedded_context: bool,
    /// Reaches MCP servers over HTTP.
    pub mcp_http: bool,
    /// Reaches MCP servers over SSE.
    pub mcp_sse: bool,
    /// Signs out when it is asked to (`agent/logout`).
    pub logout: bool,
}

/// Lines of an agent that could not be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LineFaults {
    /// No JSON, or JSON that is no message.
    pub malformed: u64,
    /// Nothing but white space.
    pub blank: u64,
    /// Not UTF-8.
    pub invalid_utf8: u64,
    /// Longer than the cap.
    pub too_long: u64,
}

/// Parameters of methods about one agent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentParams {
    /// Name of the agent; `default` where absent.
    #[serde(default)]
    pub agent: Option<String>,
}

/// The answer to `agent/list`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentListResult {
    /// All agents; the first is `default`.
    pub agents: Vec<AgentSummary>,
}

/// An agent, as `agent/list` shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// Name of the agent.
    pub agent: String,
    /// How far the agent is.
    pub state: AgentState,
    /// Its protocol.
    pub protocol: Protocol,
    /// The command that it was or would be started with.
    pub command: String,
    /// The command's arguments.
    pub args: Vec<String>,
    /// Who named it.
    pub source: AgentSource,
    /// How many open sessions belong to it.
    pub sessions: u64,
}

/// Parameters of methods that have none.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct NoParams {}

/// The answer to calls that say nothing but that they are done.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Done {}

/// `agent/state`, to the client, whenever it changes, and again and again while a start takes long.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStateParams {
    /// Name of the agent.
    pub agent: String,
    /// How far the agent is.
    pub state: AgentState,
    /// Why, where there is something to say.
    pub reason: Option<String>,
    /// What it waits for, told where its start takes long.
    pub waiting_for: Option<Waiting>,
}
