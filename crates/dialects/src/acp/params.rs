//! Parameters of the calls to an agent, serialized from borrowed data.

use super::prompt;
use acpipe_protocol::wire::McpServer;
use serde_json::{Map, Value};

/// Parameters of `session/new`, `session/load` and `session/resume`. ACP requires `mcpServers` even if it is
/// empty.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenSession<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<&'a str>,
    pub cwd: &'a str,
    pub mcp_servers: &'a [McpServer],
    /// Other members, from a client that speaks ACP.
    #[serde(flatten)]
    pub more: &'a Map<String, Value>,
}

/// Parameters of `session/list`.
#[derive(serde::Serialize)]
pub(super) struct ListSessions<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<&'a str>,
}

/// Parameters of `session/prompt`, with borrowed text, since the text can be large.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptRequest<'a> {
    pub session_id: &'a str,
    pub prompt: Vec<prompt::Block<'a>>,
    /// Other members, from a client that speaks ACP.
    #[serde(flatten)]
    pub more: Option<&'a Map<String, Value>>,
}

/// Parameters of `session/set_model`, which was removed from ACP; many agents support nothing else.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModel<'a> {
    pub session_id: &'a str,
    pub model_id: &'a str,
}
