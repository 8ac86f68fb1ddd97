//! Fixed facts of an agent, read once for each connection.

use super::option::SelectOption;
use std::time::Duration;

/// Feature of an agent beyond text prompts. Clients use only what the agent declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Images in prompts.
    Images,
    /// Audio in prompts.
    Audio,
    /// The content of files in prompts. Links are always possible.
    Files,
    /// MCP servers with streamable HTTP.
    McpHttp,
    /// MCP servers with server-sent events.
    McpSse,
    /// [`Agent::resume`](super::Agent::resume).
    Resume,
    /// [`Agent::load`](super::Agent::load).
    Load,
    /// [`Agent::list`](super::Agent::list).
    List,
}

/// Fixed facts of an agent.
#[derive(Debug)]
pub struct AgentFacts {
    pub name: String,
    pub title: String,
    pub version: String,
    pub instructions: Option<String>,
    pub allowed_tools: Option<Vec<String>>,
    pub capabilities: Vec<Capability>,
    pub options: Vec<SelectOption>,
    pub keeps_history: bool,
    pub cancel_grace: Duration,
}
