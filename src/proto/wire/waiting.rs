//! What is waited for, on the wire.

use schemars::JsonSchema;
use serde::Serialize;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// Who has to go on.
    pub party: Party,
    /// Which wait it is: its name in `--timeout` and in errors' `stage`, or `retry`.
    pub stage: String,
    /// For how long nothing was heard, in milliseconds.
    pub silent_ms: u64,
    /// The same in a sentence, with what was last heard and the last line of the agent's stderr.
    pub note: String,
}

/// Who has to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Party {
    /// The agent has to say something.
    Agent,
    /// A tool of the agent has to end, as far as the agent told.
    Tool,
    /// The agent has to read its stdin: what was sent to it waits there.
    AgentInput,
    /// The client has to answer what it was asked.
    Client,
    /// acpipe pauses before it goes on by itself.
    Acpipe,
}
