//! Wait states on the wire.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Wait of a session, or of the start of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Party that has to act.
    pub party: Party,
    /// Name of the wait, as in `--timeout` and in `data.stage` of errors; or `retry`.
    pub stage: String,
    /// Time since the last sign of activity, in milliseconds.
    pub silent_ms: u64,
    /// Explanation in one sentence, with the last event and the last line of the agent's stderr.
    pub note: String,
}

/// Party that has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Party {
    /// The agent has to send something.
    Agent,
    /// A tool of the agent has to end, according to what the agent reported.
    Tool,
    /// The agent has to read its stdin, where data is pending.
    AgentInput,
    /// The client has to answer a request.
    Client,
    /// acpipe pauses and continues by itself.
    Acpipe,
}
