//! Records of a log, as they are written and read.

use crate::agent_command::AgentCommand;
use crate::agent_session_record::AgentSessionRecord;
use crate::shared_value::SharedValue;
use acpipe_model::setting::ChosenSettings;
use acpipe_protocol::wire::{LedgerEntry, Recovery, SessionOptions, TurnSummary};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Version of the log format, written in the first line of each log.
pub const FORMAT: u32 = 1;

/// Record to write, except chunks, which are written without this type.
#[derive(Debug, Clone, Serialize)]
#[serde(
    tag = "record",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Record<'a> {
    /// Identity of the session: the first line, and again whenever it changes.
    Session {
        /// Time of the record, RFC 3339.
        at: &'a str,
        /// The identity.
        #[serde(flatten)]
        identity: &'a Identity,
    },
    /// Prompt, recorded before it is sent to the agent.
    Prompt {
        /// Time of the record, RFC 3339.
        at: &'a str,
        turn_id: &'a str,
        /// The prompt as a UI message.
        message: &'a Value,
    },
    /// End of a turn, recorded before its summary is returned.
    End {
        /// Time of the record, RFC 3339.
        at: &'a str,
        turn_id: &'a str,
        summary: &'a TurnSummary,
    },
    Recovery {
        /// Time of the record, RFC 3339.
        at: &'a str,
        recovery: &'a Recovery,
    },
    /// A decision on a request of the agent, or the answer to a question.
    Decision {
        /// Time of the record, RFC 3339.
        at: &'a str,
        turn_id: &'a str,
        decision: &'a LedgerEntry,
    },
    /// Message that belongs to no turn; it is added, or replaces the message of the same id.
    Message {
        /// Time of the record, RFC 3339.
        at: &'a str,
        /// The UI message.
        message: &'a Value,
    },
}

/// Identity of a session: the client's id, the agent's id, and what is needed to restore the session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Identity {
    /// Version of the log format.
    pub format: u32,
    /// Session id of the client.
    pub session_id: String,
    /// Time of the session's creation, RFC 3339.
    pub created_at: String,
    pub cwd: String,
    /// Command line of the agent that has the session.
    #[serde(default)]
    pub agent: Option<String>,
    /// Session id of the agent.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// Name of the agent; absent for the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Command with which that agent is started again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<SharedValue<AgentCommand>>,
    /// Session ids of all agents that had the session, the current one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSessionRecord>,
    /// Title of the session, as reported by the agent.
    #[serde(default)]
    pub title: Option<String>,
    /// Current mode, by the agent's id.
    #[serde(default)]
    pub mode: Option<String>,
    /// Current model, by the agent's id.
    #[serde(default)]
    pub model: Option<String>,
    /// Options with which the session was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<SharedValue<SessionOptions>>,
    /// Settings made by the client: modes, models and options.
    #[serde(default)]
    pub wanted: ChosenSettings,
    /// Cost so far, if known.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Number of the last chunk before this line.
    #[serde(default)]
    pub seq: u64,
}

impl Identity {
    #[must_use]
    pub fn of_line(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

impl Record<'_> {
    /// Returns the time of the record, RFC 3339.
    pub fn at(&self) -> &str {
        match self {
            Self::Session { at, .. }
            | Self::Prompt { at, .. }
            | Self::End { at, .. }
            | Self::Recovery { at, .. }
            | Self::Decision { at, .. }
            | Self::Message { at, .. } => at,
        }
    }
}

/// A line as it is read: the fields of all records.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogLine<'a> {
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

/// Returns the beginning of a chunk's line, up to its number.
pub fn chunk_prefix(turn_id: Option<&str>) -> Vec<u8> {
    let turn = acpipe_json::to_raw(&turn_id);
    format!(r#"{{"record":"chunk","turnId":{turn},"seq":"#).into_bytes()
}
