//! The agents that acpipe knows: lists, details, and agents that clients register.

use super::{
    AgentCapabilities, AgentSource, AgentState, PeerInfo, Program, Protocol, SessionOptions,
    Variables,
};
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `agent/list`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentListParams {
    /// Whether the result also has the built-in agents that nothing has named yet. Default: `false`.
    #[serde(default)]
    pub built_in: bool,
}

/// Result of `agent/list`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentListResult {
    /// The agents: the default agent, then those of the configuration, of clients, and built-in ones.
    pub agents: Vec<AgentSummary>,
}

/// An agent in the result of `agent/list`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentSummary {
    /// Name of the agent.
    pub agent: String,
    /// Whether it is the agent of calls without an `agent`.
    pub is_default: bool,
    /// Description for people. Absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Words by which agents can be grouped. Empty if there are none.
    pub tags: Vec<String>,
    /// State of the agent.
    pub state: AgentState,
    /// Protocol of the agent.
    pub protocol: Protocol,
    /// Program that the agent was or would be started with.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Where the agent is configured.
    pub source: AgentSource,
    /// Whether the program is installed on this machine. `false` if only a package runner can start it.
    pub installed: bool,
    /// File that would be started: the program, or the package runner that downloads it. `null` if there is
    /// neither.
    pub program: Option<Program>,
    /// Name and version that the agent reported when it was ready last. `null` if it never was.
    pub agent_info: Option<PeerInfo>,
    /// Capabilities that the agent reported when it was ready last. `null` if it never was.
    pub capabilities: Option<AgentCapabilities>,
    /// Number of the agent's open sessions.
    pub sessions: u64,
}

/// Parameters of `agent/get`.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GetAgentParams {
    /// Name of the agent. Default: `default`.
    #[serde(default)]
    pub agent: Option<String>,
}

/// Result of `agent/get`: the definition of an agent.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentDetails {
    /// The agent as in the result of `agent/list`.
    #[serde(flatten)]
    pub summary: AgentSummary,
    /// Working directory of the agent, and of sessions without a `cwd`.
    pub cwd: String,
    /// Names of the variables that the definition sets or unsets. Values are not shown.
    pub variables: Vec<String>,
    /// Whether each session has its own agent process.
    pub child_per_session: bool,
    /// Options of sessions that set none.
    pub options: Box<SessionOptions>,
    /// Instructions that acpipe sends before the first prompt of each session. Absent if there are none, or
    /// if the agent has an option for a system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Names of the MCP servers that every session gets.
    pub mcp_servers: Vec<String>,
    /// How to install the agent. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub install: Option<String>,
    /// Command by which the user signs in. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub login: Option<String>,
}

/// Parameters of `agent/register`, which defines an agent under a new name without starting it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RegisterParams {
    /// Name of the agent: letters, digits, `.`, `_` and `-`, at most 64 bytes. It must not be in use.
    pub agent: String,
    /// Path or name of the program, as for `agent/connect`. Required unless the protocol has a command of its
    /// own.
    #[serde(default)]
    pub command: Option<String>,
    /// Arguments of the program. Default: none.
    #[serde(default)]
    pub args: Vec<String>,
    /// Working directory of the agent, and of sessions without a `cwd`. Default: acpipe's own.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Environment variables to set, or with `null` to unset. Default: none.
    #[serde(default)]
    pub env: Variables,
    /// Protocol of the agent. Default: as for `agent/connect`.
    #[serde(default)]
    pub protocol: Option<Protocol>,
    /// Whether each session has its own agent process. Default: `false`.
    #[serde(default)]
    pub child_per_session: Option<bool>,
    /// Options of the agent's sessions. Default: none.
    #[serde(default)]
    pub options: Box<SessionOptions>,
    /// Instructions for the agent: appended to its system prompt, or sent before the first prompt of each
    /// session if it has no option for that. Default: none.
    #[serde(default)]
    pub instructions: Option<String>,
    /// Description for people. Default: none.
    #[serde(default)]
    pub description: Option<String>,
    /// Words by which agents can be grouped. Default: none.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether the agent stays registered when the client leaves, for as long as acpipe runs. Default:
    /// `false`.
    #[serde(default)]
    pub persist: bool,
}
