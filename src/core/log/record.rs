//! The lines of a log: what each says, as it is written and read.

use crate::core::agent_command::AgentCommand;
use crate::core::setting::Wanted;
use crate::proto::wire::{LedgerEntry, Recovery, SessionOptions, TurnSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The version of the format: the first line of a log says it.
pub const FORMAT: u32 = 1;

/// What is written, apart from chunks: these are written as they are made.
#[derive(Debug, Clone, Serialize)]
#[serde(
    tag = "record",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Record<'a> {
    /// Who the session is: the first line, and again whenever that changes.
    Session {
        at: &'a str,
        #[serde(flatten)]
        identity: &'a Identity,
    },
    /// A prompt, before it is sent.
    Prompt {
        at: &'a str,
        turn_id: &'a str,
        message: &'a Value,
    },
    /// A turn ended, and its summary was or is about to be given.
    End {
        at: &'a str,
        turn_id: &'a str,
        summary: &'a TurnSummary,
    },
    /// The session was brought back.
    Recovery { at: &'a str, recovery: &'a Recovery },
    /// Something was allowed or not, or a question was answered.
    Decision {
        at: &'a str,
        turn_id: &'a str,
        decision: &'a LedgerEntry,
    },
    /// A message that is of no turn: added, or in the place of the one with its id.
    Message { at: &'a str, message: &'a Value },
}

/// Who a session is: the client's id and the agent's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Version of the format.
    pub format: u32,
    /// The client's id.
    pub session_id: String,
    /// When it was made, RFC 3339.
    pub created_at: String,
    /// Working directory.
    pub cwd: String,
    /// The command line of the agent that has it.
    #[serde(default)]
    pub agent: Option<String>,
    /// The agent's id.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// Name of the agent; absent for the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// How that agent is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<AgentCommand>,
    /// The ids of all agents that had the session, the last one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Given>,
    /// What it is about, as the agent told.
    #[serde(default)]
    pub title: Option<String>,
    /// The mode it is in, by the agent's id.
    #[serde(default)]
    pub mode: Option<String>,
    /// The model it uses, by the agent's id.
    #[serde(default)]
    pub model: Option<String>,
    /// What it was opened with.
    #[serde(default, skip_serializing_if = "SessionOptions::is_empty")]
    pub options: SessionOptions,
    /// What the client set: modes, models, options.
    #[serde(default)]
    pub wanted: Wanted,
    /// What it cost so far, where that is known.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The number of the last chunk before this line.
    #[serde(default)]
    pub seq: u64,
}

/// A line as it is read: every field that any record has.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line<'a> {
    #[serde(borrow)]
    pub record: Cow<'a, str>,
    #[serde(borrow, default)]
    pub at: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub turn_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub seq: Option<u64>,
    #[serde(borrow, default)]
    pub chunk: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub summary: Option<&'a RawValue>,
}

/// The beginning of the line of a chunk, up to its number.
#[must_use]
pub fn chunk_prefix(turn_id: Option<&str>) -> Vec<u8> {
    let turn = crate::proto::json::to_raw(&turn_id);
    format!(r#"{{"record":"chunk","turnId":{turn},"seq":"#).into_bytes()
}

/// An agent's id of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Given {
    /// The key of the agent: its program.
    pub agent: String,
    /// The agent's id.
    pub id: String,
    /// How many messages there were when another agent took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
}
