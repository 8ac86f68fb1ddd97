//! Sessions on the wire: opening, cancelling, subscribing, and their state.

#[cfg(feature = "schema")]
use super::mcp::McpServerList;
use super::{McpServer, NotRestored, SessionOptions, UserMessage, Waiting};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parameters of `session/ensure`, which returns a live session: an open one, a restored one, or a new one.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnsureParams {
    /// The client's id of the session. Absent or `default`: the default session of the working directory; the
    /// result contains its id.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Name of the agent. Default: the session's own agent, or `default` for a new session. The name of
    /// another agent hands the session over: the new agent receives the stored conversation with the next
    /// prompt.
    #[serde(default)]
    pub agent: Option<String>,
    /// Absolute path of the working directory. Default: the session's own directory, or that of the agent for
    /// a new session. A directory other than the session's own is an error.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers of the session. Servers of `--mcp-config` are added, unless one of the same name is here.
    /// Default: none.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "McpServerList"))]
    pub mcp_servers: Vec<McpServer>,
    /// Options of the session. An option that is not set keeps its value; for a new session it is taken from
    /// the agent's `options`.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// Whether a mode or model of `options` that the agent does not offer fails the call. With `false` the
    /// session is opened without it, and the receipt reports it in `notRestored`. Default: `true`.
    #[serde(default)]
    pub strict: Option<bool>,
    /// How to restore a session that is not live. Default: `auto`.
    #[serde(default)]
    pub strategy: Strategy,
    /// The agent's id of a session that it already has. acpipe adopts that session under the client's id,
    /// which must be new. Default: none.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// With `agentSessionId`: whether to start a separate session from that session's history and leave the
    /// original unchanged. Only the Claude Code CLI supports this. Default: `false`.
    #[serde(default)]
    pub fork: bool,
    /// Maximum time for the call in milliseconds: for the start of the agent and the opening of the session; at
    /// least 1 and at most ten years. When it passes, the call fails with the error `timeout`, whose `data.stage`
    /// names what the call waited for. Default: no limit of its own.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = super::LONGEST_TIMEOUT_MS)))]
    pub timeout_ms: Option<u64>,
    /// Part of `timeoutMs` that has passed before the call, in milliseconds: for a client that makes several calls
    /// within one limit. Default: 0.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// Members that a client which speaks ACP adds to the calls that open the session at an ACP agent. Not part
    /// of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub acp: Map<String, Value>,
}

/// How to restore a session: `"auto"`, one of `"resume"`, `"load"` and `"new"`, or a list of these to be
/// tried in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "StrategyWords")]
pub enum Strategy {
    /// All methods that the agent offers, best first, then a new session.
    #[default]
    Auto,
    /// Only this method.
    Only(Rung),
    /// Only these methods, in order.
    Order(Vec<Rung>),
}

impl Strategy {
    /// Returns `true` if this strategy includes the method `rung`.
    #[must_use]
    pub fn allows(&self, rung: Rung) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(only) => *only == rung,
            Self::Order(rungs) => rungs.contains(&rung),
        }
    }
}

/// JSON form of a strategy.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a strategy must be auto, resume, load or new, or a list of resume, load and new"
)]
enum StrategyWords {
    One(String),
    Several(Vec<String>),
}

impl TryFrom<StrategyWords> for Strategy {
    type Error = String;

    fn try_from(words: StrategyWords) -> Result<Self, String> {
        let rung = |word: &str| match word {
            "resume" => Ok(Rung::Resume),
            "load" => Ok(Rung::Load),
            "new" => Ok(Rung::New),
            _ => Err(format!(
                "{word:?} is not a valid strategy; use resume, load or new, or auto alone"
            )),
        };
        match words {
            StrategyWords::One(word) if word == "auto" => Ok(Self::Auto),
            StrategyWords::One(word) => rung(&word).map(Self::Only),
            StrategyWords::Several(words) => {
                let rungs: Result<_, _> = words.iter().map(|word| rung(word)).collect();
                rungs.map(Self::Order)
            }
        }
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Strategy {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Strategy".into()
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (word, way) = (
            g.subschema_for::<StrategyWord>(),
            g.subschema_for::<StrategyWay>(),
        );
        schemars::json_schema!({
            "description": "How a session is restored: one strategy, or strategies in the order to try them.",
            "anyOf": [word, { "type": "array", "items": way }],
        })
    }
}

/// A strategy of one method, or `auto`.
#[cfg(feature = "schema")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum StrategyWord {
    /// All methods that the agent offers, best first, then a new session.
    Auto,
    /// The agent resumes the session without a replay of its history, or the call fails.
    Resume,
    /// The agent loads the session and replays its history, or the call fails.
    Load,
    /// A new session replaces it.
    New,
}

/// Method to restore a session.
#[cfg(feature = "schema")]
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum StrategyWay {
    /// The agent resumes the session without a replay of its history.
    Resume,
    /// The agent loads the session and replays its history.
    Load,
    /// A new session replaces it.
    New,
}

/// Parameters of `session/create`, which works like `session/ensure` but requires a new id.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    /// The client's id of the session. `default`: the default session of the working directory; the result
    /// contains its id.
    pub session_id: String,
    /// Name of the agent. Default: `default`.
    #[serde(default)]
    pub agent: Option<String>,
    /// Absolute path of the working directory. Default: that of the agent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers of the session. Servers of `--mcp-config` are added, unless one of the same name is here.
    /// Default: none.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(with = "McpServerList"))]
    pub mcp_servers: Vec<McpServer>,
    /// Options of the session. An option that is not set is taken from the agent's `options`.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// Whether a mode or model of `options` that the agent does not offer fails the call. With `false` the
    /// session is opened without it, and the receipt reports it in `notRestored`. Default: `true`.
    #[serde(default)]
    pub strict: Option<bool>,
    /// Maximum time for the call in milliseconds; see `session/ensure`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = super::LONGEST_TIMEOUT_MS)))]
    pub timeout_ms: Option<u64>,
}

/// Result of `session/ensure` and `session/create`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionResult {
    /// The client's id of the session; chunks and notifications contain it.
    pub session_id: String,
    /// The agent's id of the session.
    pub agent_session_id: String,
    /// Name of the agent.
    pub agent_name: String,
    /// Working directory of the session.
    pub cwd: String,
    /// Receipt: how the session was opened.
    pub recovery: Recovery,
    /// State of the session by the agent's own names: modes, models, options, commands and title, as far as
    /// the agent reported them.
    pub state: Value,
    /// Whether the agent speaks ACP, for clients that speak ACP. Not part of the neutral protocol.
    #[serde(skip)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub is_acp: bool,
}

/// Receipt of a restore: how a session was opened, and what the agent remembers of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// Method that opened the session.
    pub rung: Rung,
    /// The agent's memory of the session.
    pub memory: Memory,
    /// Methods that failed or that the agent does not offer, in the order of the attempts.
    pub failed: Vec<Attempt>,
    /// Number of messages that the agent replayed. `null` unless the agent loaded the session.
    pub replayed: Option<u64>,
    /// Number of stored messages.
    pub messages: u64,
    /// Number of stored messages that were adopted from the agent's replay.
    pub adopted: u64,
    /// Number of characters of the stored messages that acpipe adds to the next prompt because the agent does
    /// not have them. 0 if none.
    pub reinjected: u64,
    /// Number of stored messages, the last ones, that the agent has not seen because another agent had the
    /// session.
    pub missed: u64,
    /// Name of the agent that had the session before this call handed it over. Absent if the agent did not
    /// change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over_from: Option<String>,
    /// Whether acpipe puts the instructions of the agent's definition before the next prompt, because the
    /// agent has no option for a system prompt. Absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub instructions_in_prompt: bool,
    /// Settings (mode, model, options, MCP servers) of the client that could not be set again. With rung `live`: mode and
    /// model of the call that were changed since the session was opened.
    pub not_restored: Vec<NotRestored>,
    /// Settings of this call, or of the caller's own command line and configuration, in which the session, as it is
    /// now, differs, because another client opened it or a setting was changed since: `agent` (the caller has
    /// another agent of this name, or opened the session at one of another name), `permissions`, `limits`, `mode`, `model`, `options`, `instructions` (those that the
    /// agent got in the first prompt of its session), `environment`, `cwd` (the caller's definition of the agent names
    /// another working directory), `childPerSession`, `files`, `terminals`, `mcpServers`. Of the permissions and limits,
    /// the stricter of both hold for the caller's prompts; the others stay as they are until the session is closed and
    /// opened again, `instructions` as long as the agent has the session. Without a mode or model in `notRestored`.
    /// Absent if none differs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing_settings: Vec<String>,
    /// Command line of the session's agent, with secrets hidden, if `differingSettings` has `agent`. Absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<String>,
    /// Why the agent may not have the session, or may remember another conversation, although it reported
    /// success. Absent if there is no such evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// Mode, by the agent's id, that acpipe chose because the policy can refuse tools or ask about them, the agent asks
    /// only in some of its modes, and none was requested. Absent if acpipe chose none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen_mode: Option<String>,
    /// Why the agent may run tools without asking, although the policy can refuse them or ask about them: the policy
    /// of the session, or the stricter one that holds for the caller's prompts. Of the `asks` of the session's agent and
    /// of the caller's own definition of the agent, the stricter counts, so a definition with `asks = "never"` gives the
    /// warning to its own client. Absent if nothing is known against the agent, and with a policy that approves
    /// everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_warning: Option<String>,
}

/// Failed attempt to restore a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Method of the attempt.
    pub rung: Rung,
    /// Kind of the error, see the table in `docs/reference/errors.md`.
    pub kind: String,
    /// Error message.
    pub message: String,
}

/// Method that opened a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// The session was already live in the agent.
    Live,
    /// The agent resumed the session without a replay (`session/resume`).
    Resume,
    /// The agent loaded the session and replayed its history (`session/load`).
    Load,
    /// The agent started a new session.
    New,
}

/// An agent's memory of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Memory {
    /// The agent remembers everything.
    Kept,
    /// The agent remembers what it replayed.
    Replayed,
    /// The session has stored messages, but the agent remembers nothing.
    Lost,
    /// The session has no stored messages to remember.
    None,
}

/// Parameters of `session/cancel`. Without `turnId` it cancels the first of these that exists: the running
/// turn, the first queued prompt, the opening of the session, output of the agent without a prompt. Otherwise
/// the call has no effect.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id of a running or queued turn: cancels only this turn. Default: see the description of the call.
    #[serde(default)]
    pub turn_id: Option<String>,
}

/// Parameters of `session/steer`, which sends a message into the running turn of an agent with the capability
/// `steer`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SteerParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Message of the user.
    pub message: UserMessage,
    /// Id of the turn that the message is for; the call fails if another turn runs. Default: the running
    /// turn.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// Whether images and audio that the agent does not accept are sent as links. Default: `false`, the call
    /// fails.
    #[serde(default)]
    pub degrade: bool,
}

/// Result of `session/steer`, sent when the message is on its way to the agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SteerResult {
    /// Id of the turn into which the message was sent.
    pub turn_id: String,
    /// Id of the message, as in the turn's `data-user-message` chunk.
    pub message_id: String,
    /// Types of the parts of the message that acpipe did not send.
    pub skipped_parts: Vec<String>,
}

/// Result of `session/cancel`. The end of the turn itself is the result of its `session/prompt`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CancelResult {
    /// Whether there was something to cancel. The cancellation has then begun.
    pub cancelled: bool,
}

/// Parameters of `session/subscribe`, which switches `session/chunk` notifications on or off. The summary of
/// a turn is sent in any case.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubscribeParams {
    /// The client's id of a session. Default: all present and future sessions.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Whether the client receives the chunks.
    pub chunks: bool,
}

/// Parameters of the notification `session/activity`, sent to the client when the running tool changes, and
/// when a session waits for something for long.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActivityParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Tool that runs. `null` if none runs.
    pub activity: Option<Activity>,
    /// Reason of a long wait of the session. `null` otherwise.
    pub waiting_for: Option<Waiting>,
}

/// A running tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Name of the tool.
    pub tool_name: String,
    /// Description of the call in one line.
    pub description: String,
}

/// Parameters of the notification `session/state`, sent to the client with the complete state when any part
/// of it changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StateParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Complete state by the agent's own names: modes, models, options, commands and title, as far as the
    /// agent reported them.
    pub state: Value,
    /// Queued prompts, the next one first. The running turn is not part of the queue.
    pub queue: Vec<WaitingPrompt>,
}

/// A queued prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WaitingPrompt {
    /// Id of its turn; `session/cancel` with this id removes the prompt from the queue.
    pub turn_id: String,
}
