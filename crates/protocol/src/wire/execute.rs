//! Calls that need no session of the client.

use super::{SessionOptions, UserMessage};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Parameters of `execute`, which runs one turn in a session of its own. The session is not stored, and it is
/// closed after the turn. The result is the summary of the turn.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExecuteParams {
    /// Name of the agent. Default: the default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Message of the user.
    pub message: UserMessage,
    /// Values that the agent is given before the message, such as the branch, as one JSON object. Default: none.
    #[serde(default)]
    pub context: Box<Map<String, Value>>,
    /// JSON schema that the answer must match; the summary's `structuredOutput` has the answer. Default:
    /// `options.outputSchema`, otherwise none.
    #[serde(default)]
    pub output_schema: Option<Value>,
    /// Maximum time for the call in milliseconds, with all attempts; see `session/prompt`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = super::LONGEST_TIMEOUT_MS)))]
    pub timeout_ms: Option<u64>,
    /// Maximum number of turns of the agent's own loop. Default: `options.maxTurns`, otherwise the agent's
    /// choice.
    #[serde(default)]
    pub max_turns: Option<u32>,
    /// Options of the session. An option that is not set is taken from the agent's `options`.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// Absolute path of the working directory. Default: that of the agent.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Id of the session in notifications, and for `session/cancel`; must be new. Default: a generated id, which
    /// the chunks and the summary have.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Whether the call is tried again, up to three times in all, after 1 s and 2 s: if the agent fails to start
    /// or crashes, if its output ends, or if its response is not valid. The agent may then do its work more than
    /// once. Also retries transient errors as `session/prompt` does. Default: `true`.
    #[serde(default = "yes")]
    pub retry: bool,
}

fn yes() -> bool {
    true
}
