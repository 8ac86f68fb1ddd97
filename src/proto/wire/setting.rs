//! Modes, models and options on the wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `session/setMode`: what the agent may do by itself, as it offers that.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetModeParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of the mode.
    pub mode: String,
}

/// `session/setModel`: the model that answers.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetModelParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of the model.
    pub model: String,
}

/// `session/setOption`: one of the agent's own options.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetOptionParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Id or name of the option.
    pub option: String,
    /// What it is set to.
    pub value: SettingValue,
}

/// What something is set to: id or name of one of the values that the agent offers, or on and off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a string or a boolean is needed")]
pub enum SettingValue {
    /// One of the values offered.
    Id(String),
    /// On or off.
    Switch(bool),
}

/// The answer to `session/setMode`, `session/setModel` and `session/setOption`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingResult {
    /// The session's whole state afterwards, by the agent's own names.
    pub state: Value,
}

/// Something that the client had set and that could not be set again in a session that was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotRestored {
    /// What: `mode`, `model`, or the id of an option.
    pub setting: String,
    /// What it was set to.
    pub value: SettingValue,
    /// What happened.
    pub message: String,
}
