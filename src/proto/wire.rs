//! The neutral protocol, version 1: every type a client sends or gets. The sole source of `schemas/`.
//!
//! JSON-RPC 2.0, camelCase. Unknown fields are ignored. In results a value that is not known is `null`,
//! never `0`.

use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

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
    /// What the client wants to get.
    #[serde(default)]
    pub capabilities: ClientCapabilities,
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

/// What the client wants to get.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientCapabilities {
    /// `session/chunk` notifications: on unless `false`; `session/subscribe` switches them later.
    #[serde(default)]
    pub chunks: Option<bool>,
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
}

/// `agent/connect`: starts an agent, the default one where no command is given.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConnectParams {
    /// Path or name of the program; looked up in `PATH`, never given to a shell.
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
    pub env: BTreeMap<String, Option<String>>,
}

/// The answer to `agent/connect` and `agent/status`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus {
    /// How far the agent is.
    pub state: AgentState,
    /// Its protocol.
    pub protocol: Option<String>,
    /// Its command.
    pub command: Option<String>,
    /// The command's arguments.
    pub args: Vec<String>,
    /// Who named it.
    pub source: Option<AgentSource>,
    /// Its process id.
    pub pid: Option<u32>,
    /// What it says it is.
    pub agent_info: Option<PeerInfo>,
    /// What it says it can do.
    pub capabilities: Option<AgentCapabilities>,
    /// How its user can sign in.
    pub auth_methods: Vec<AuthMethod>,
    /// Lines of it that could not be used so far.
    pub faults: LineFaults,
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
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
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
}

/// A way to sign in to an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthMethod {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
}

/// Lines of an agent that could not be used.
#[derive(Debug, Clone, Copy, Default, Serialize, JsonSchema)]
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

/// `session/prompt`: one turn. Its chunks stream meanwhile; the answer is its summary.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// What the user says.
    pub message: UserMessage,
    /// The client's id of the turn; made up where absent.
    #[serde(default)]
    pub turn_id: Option<String>,
}

/// A message of the user: a string, or a `UIMessage` of the AI SDK.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Its id, where it came with one.
    pub id: Option<String>,
    /// Its parts; a string is one text part.
    pub parts: Vec<Value>,
}

impl UserMessage {
    /// A message of one text part.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            id: None,
            parts: vec![serde_json::json!({ "type": "text", "text": text })],
        }
    }
}

impl<'de> Deserialize<'de> for UserMessage {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct StringOrMessage;
        impl<'de> Visitor<'de> for StringOrMessage {
            type Value = UserMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a UIMessage {id?, role?, parts}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<UserMessage, E> {
                Ok(UserMessage::text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UserMessage, A::Error> {
                let message = UiMessage::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match message.role.as_deref() {
                    None | Some("user") => Ok(UserMessage {
                        id: message.id,
                        parts: message.parts,
                    }),
                    Some(role) => Err(de::Error::custom(format_args!(
                        "a prompt is a message of role user, not {role}"
                    ))),
                }
            }
        }
        d.deserialize_any(StringOrMessage)
    }
}

impl JsonSchema for UserMessage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UserMessage".into()
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let message = g.subschema_for::<UiMessage>();
        schemars::json_schema!({
            "description": "A message of the user: a string, or a UIMessage of the AI SDK.",
            "anyOf": [{ "type": "string" }, message]
        })
    }
}

/// A `UIMessage` of the AI SDK.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UiMessage {
    /// Its id.
    #[serde(default)]
    pub id: Option<String>,
    /// Whose it is: `user`.
    #[serde(default)]
    pub role: Option<String>,
    /// Text and file parts; others are left out and named in the summary's `metadata.skippedParts`.
    pub parts: Vec<Value>,
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

/// The answer to calls that say nothing but that they are done.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct Done {}

/// The summary of a turn: the answer to `session/prompt`, and what `acpipe run -o json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnSummary {
    /// The session.
    pub session_id: String,
    /// The turn.
    pub turn_id: String,
    /// The assistant message that the chunks build.
    pub message_id: Option<String>,
    /// The text of the answer: all text blocks, nothing added.
    pub text: String,
    /// Why the agent stopped, in its own words; `error` where it failed.
    pub stop_reason: String,
    /// The same in the AI SDK's words.
    pub finish_reason: String,
    /// True exactly when `errors` is not empty.
    pub is_error: bool,
    /// What went wrong.
    pub errors: Vec<TurnError>,
    /// A short fixed text for the common endings: `max_turns limit reached`, `subprocess terminated
    /// unexpectedly`, `tool execution failed: <name>`, `timeout exceeded`.
    pub error_reason: Option<String>,
    /// The tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The results of tools, in the order of the calls.
    pub tool_results: Vec<ToolResult>,
    /// Names of the tools, in the order of their first use.
    pub tools_used: Vec<String>,
    /// Tokens of this turn.
    pub usage: Option<TokenUsage>,
    /// What the turn cost, in the currency of `metadata.context.cost`.
    pub cost: Option<f64>,
    /// Turns of the agent's own loop.
    pub num_turns: Option<u64>,
    /// Wall time from the call to its end, in milliseconds.
    pub duration_ms: u64,
    /// Wall time in which acpipe was not waiting for the agent: starting, parsing, translating, writing.
    /// In milliseconds, with a fraction.
    pub overhead_ms: f64,
    /// How often the prompt was sent.
    pub attempts: u32,
    /// What else is known: context figures, skipped parts of the prompt, the agent's own additions.
    pub metadata: serde_json::Map<String, Value>,
}

/// One thing that went wrong in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnError {
    /// Its kind, as in the table of errors.
    pub kind: String,
    /// One line: what happened and what to do.
    pub message: String,
    /// Raw facts; bounded.
    pub data: Value,
}

/// A tool call in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Its input; `{}` where the agent gave none.
    pub arguments: Value,
    /// Id of the call.
    pub call_id: String,
}

/// A tool's result in a summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// What the tool said, as text.
    pub result: String,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

/// Tokens of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Both, or the agent's own total.
    pub total_tokens: Option<u64>,
    /// Of those read, from the cache.
    pub cached_read_tokens: Option<u64>,
    /// Written to the cache.
    pub cached_write_tokens: Option<u64>,
    /// Of those written, thoughts.
    pub thought_tokens: Option<u64>,
}

/// `session/chunk`, to the client: the next chunk of a session.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkParams<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The turn; `null` for what the agent said outside of any.
    pub turn_id: Option<&'a str>,
    /// Rises by one with every chunk of the session.
    pub seq: u64,
    /// The chunk.
    pub chunk: super::chunk::Chunk<'a>,
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

/// `agent/state`, to the client, whenever it changes.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentStateParams {
    /// How far the agent is.
    pub state: AgentState,
    /// Why, where there is something to say.
    pub reason: Option<String>,
}
