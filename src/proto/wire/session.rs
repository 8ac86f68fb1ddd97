//! Sessions on the wire: opening, cancelling, subscribing, their state.

use super::mcp::McpServerList;
use super::{McpServer, NotRestored, SessionOptions, Waiting};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;

/// `session/ensure`: gives a live session, new where there is none.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnsureParams {
    /// The client's id of the session. Absent or `default`: the default session of the directory, whose id the answer
    /// has.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Name of the agent. Where absent, a session keeps its own, and a new one belongs to `default`. Another agent than
    /// the session's own takes the session over: it gets the stored conversation with the next prompt.
    #[serde(default)]
    pub agent: Option<String>,
    /// Working directory, absolute. Where absent, the session keeps its own; a new one gets the agent's. Another
    /// directory than the session's own is an error.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers; those that acpipe was told of itself (`--mcp-config`) join them, but for names that are here.
    #[serde(default)]
    #[schemars(with = "McpServerList")]
    pub mcp_servers: Vec<McpServer>,
    /// Options of the session; what is not said is as it was, or as the agent's `options` say.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// How a session that is not live is brought back.
    #[serde(default)]
    pub strategy: Strategy,
    /// Adopts a session that the agent has, by the agent's id, where the client's id is new.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// With `agentSessionId`: begins another session from its history and leaves it as it is. The Claude Code CLI
    /// can do that.
    #[serde(default)]
    pub fork: bool,
}

/// How a session is brought back: `"auto"`, one of `"resume"`, `"load"` and `"new"`, or a list of these to be
/// tried in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "StrategyWords")]
pub enum Strategy {
    /// What the agent offers, best first, and a new session if all of that fails.
    #[default]
    Auto,
    /// This way or none.
    Only(Rung),
    /// These ways, in order.
    Order(Vec<Rung>),
}

impl Strategy {
    /// Whether it leads to this way, if all before it fail.
    #[must_use]
    pub fn allows(&self, rung: Rung) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(only) => *only == rung,
            Self::Order(rungs) => rungs.contains(&rung),
        }
    }
}

/// How a strategy is written.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a word or a list of words is needed: auto, resume, load, new"
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
                "there is no way {word:?}, only resume, load and new; or auto alone"
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

impl JsonSchema for Strategy {
    fn schema_name() -> Cow<'static, str> {
        "Strategy".into()
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (word, way) = (
            g.subschema_for::<StrategyWord>(),
            g.subschema_for::<StrategyWay>(),
        );
        schemars::json_schema!({
            "description": "How a session is brought back: one word, or ways in order: these or none.",
            "anyOf": [word, { "type": "array", "items": way }],
        })
    }
}

/// How a session is brought back, in one word.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum StrategyWord {
    /// What the agent offers, best first, and a new session if all of that fails.
    Auto,
    /// The agent resumes it without its history, or the call fails.
    Resume,
    /// The agent loads it with its history, or the call fails.
    Load,
    /// A new session takes its place.
    New,
}

/// A way to bring a session back.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only its schema is used")]
enum StrategyWay {
    /// The agent resumes it without its history.
    Resume,
    /// The agent loads it with its history.
    Load,
    /// A new session takes its place.
    New,
}

/// `session/create`: as `session/ensure`, but the id must be new.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateParams {
    /// The client's id of the session; `default` is the default session of the directory, whose id the answer has.
    pub session_id: String,
    /// Name of the agent; `default` where absent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Working directory, absolute; the agent's own where absent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// MCP servers; those that acpipe was told of itself (`--mcp-config`) join them, but for names that are here.
    #[serde(default)]
    #[schemars(with = "McpServerList")]
    pub mcp_servers: Vec<McpServer>,
    /// Options of the session; what is not said is as the agent's `options` say.
    #[serde(default)]
    pub options: Box<SessionOptions>,
}

/// The answer to `session/ensure` and `session/create`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResult {
    /// The client's id: chunks and notifications carry it.
    pub session_id: String,
    /// The agent's id.
    pub agent_session_id: String,
    /// Name of the agent.
    pub agent_name: String,
    /// Working directory of the session.
    pub cwd: String,
    /// How the session came to be.
    pub recovery: Recovery,
    /// Modes, models, options, commands and title, as far as the agent told.
    pub state: Value,
}

/// How a session came to be: the receipt of its recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Recovery {
    /// What gave the session.
    pub rung: Rung,
    /// What the agent remembers of it.
    pub memory: Memory,
    /// What was tried before, in order.
    pub failed: Vec<Attempt>,
    /// How many messages the agent repeated, where it loaded the session.
    pub replayed: Option<u64>,
    /// How many messages are stored.
    pub messages: u64,
    /// How many of these were taken over from what the agent repeated.
    pub adopted: u64,
    /// How many characters of the stored messages the agent is given with its next prompt, since it lost them.
    pub reinjected: u64,
    /// How many of the stored messages, the last ones, the agent has not seen, since another agent had the session
    /// meanwhile.
    pub missed: u64,
    /// Name of the agent that had the session until it was handed over to this one; absent unless it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over_from: Option<String>,
    /// Settings (mode, model, options) that the client had set and that could not be set again. With rung `live`: the mode
    /// and model of the call that were changed after the session was opened.
    pub not_restored: Vec<NotRestored>,
    /// Why the agent may not have the session, although it says so; absent where nothing speaks against it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A way of bringing a session back that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// Which way.
    pub rung: Rung,
    /// Kind of the error, see the table of errors.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// What gave a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Rung {
    /// It lives in this agent already.
    Live,
    /// The agent went on with it (`session/resume`).
    Resume,
    /// The agent loaded it and repeated its history (`session/load`).
    Load,
    /// It is new.
    New,
}

/// What the agent remembers of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Memory {
    /// Everything.
    Kept,
    /// What it repeated when it loaded the session.
    Replayed,
    /// Nothing any more: the session had a history, and the agent knows nothing of it.
    Lost,
    /// There was nothing to remember.
    None,
}

/// `session/cancel`: ends one turn of the session: that which runs, or where none does takes out the first prompt
/// that waits. Nothing happens where there is neither.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CancelParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Cancels only this turn, be it the one that runs or one that waits.
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

/// `session/activity`, to the client, whenever it changes: which tool runs now, and what a session waits for in
/// which nothing goes on.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivityParams {
    /// The session.
    pub session_id: String,
    /// The tool; `null` when none runs any more.
    pub activity: Option<Activity>,
    /// What the session waits for, told where that takes long; `null` as soon as it goes on.
    pub waiting_for: Option<Waiting>,
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

/// `session/state`, to the client: modes, models, options, commands and title, and the prompts that wait, whole,
/// whenever they change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateParams {
    /// The session.
    pub session_id: String,
    /// The whole state, by the agent's own names.
    pub state: Value,
    /// The prompts that wait for their turn, the next one first; the turn that runs is none of them.
    pub queue: Vec<WaitingPrompt>,
}

/// A prompt that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingPrompt {
    /// Its turn: `session/cancel` with this id takes it out.
    pub turn_id: String,
}
