//! Modes, models and options of sessions on the wire.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of `session/setMode`, which sets the mode of a session: for most agents, what the agent may do
/// without a permission request.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetModeParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of one of the modes that the agent offers.
    pub mode: String,
}

/// Parameters of `session/setModel`, which sets the model of a session.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetModelParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of one of the models that the agent offers.
    pub model: String,
}

/// Parameters of `session/setOption`, which sets one of the agent's own options in a session.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SetOptionParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of one of the options that the agent offers.
    pub option: String,
    /// New value: an id or a name of one of the option's values, or a boolean for an option of type
    /// `boolean`.
    pub value: SettingValue,
}

/// Value of a setting: the id or name of a value that the agent offers, or a boolean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged, expecting = "must be a string or a boolean")]
pub enum SettingValue {
    /// Id or name of one of the offered values.
    Id(String),
    /// On or off.
    Switch(bool),
}

/// Result of `session/setMode`, `session/setModel` and `session/setOption`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettingResult {
    /// Complete state of the session after the change, by the agent's own names.
    pub state: Value,
    /// Why the agent may run tools without asking, although the policy can refuse them or ask about them, see
    /// `policyWarning` of the receipt. Absent if nothing is known against the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_warning: Option<String>,
}

/// A setting of the client that a restored session does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotRestored {
    /// The setting: `mode`, `model`, the id of an option, or `mcpServers` (the MCP servers that a client named).
    pub setting: String,
    /// Value that the client had set. Names of the servers, separated by commas, for `mcpServers`.
    pub value: SettingValue,
    /// Error message.
    pub message: String,
}
