//! Options of agents on the wire: their protocol, and the options of their sessions.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Protocol of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// The Agent Client Protocol: one process for all sessions, unless `childPerSession` is `true`.
    #[default]
    Acp,
    /// The Claude Code CLI's own protocol (stream-json in both directions): one process for each session.
    Claude,
    /// A program that reads one prompt and prints one answer: one process for each prompt.
    Command,
    /// An HTTP endpoint for chat completions, of OpenAI or a server that imitates it.
    #[serde(rename = "openai")]
    OpenAi,
    /// An HTTP endpoint that streams chunks of the AI SDK.
    #[serde(rename = "ui-stream")]
    UiStream,
}

impl Protocol {
    /// Returns the name of the protocol, as it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::Claude => "claude",
            Self::Command => "command",
            Self::OpenAi => "openai",
            Self::UiStream => "ui-stream",
        }
    }

    /// Returns `true` if agents of the protocol are HTTP endpoints: their command is an address.
    #[must_use]
    pub fn is_http(self) -> bool {
        matches!(self, Self::OpenAi | Self::UiStream)
    }

    /// Returns `true` if agents of the protocol can get MCP servers.
    #[must_use]
    pub fn takes_mcp_servers(self) -> bool {
        matches!(self, Self::Acp | Self::Claude)
    }

    /// Returns the protocol that a program's file name implies.
    #[must_use]
    pub fn of_command(command: &str) -> Self {
        let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
        match name {
            "claude" | "claude.exe" | "claude.cmd" => Self::Claude,
            _ => Self::Acp,
        }
    }
}

/// Options of a session. ACP agents accept `model` and `mode`, and acpipe itself applies `allowedTools`,
/// `disallowedTools` and `outputSchema` for them; acpipe rejects all other options for an ACP agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SessionOptions {
    /// Model, as an id or name of the agent. Default: the agent's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Initial mode, as an id or name of the agent; for Claude Code the permission mode, such as `plan`.
    /// Default: the agent's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Reasoning effort, by the agent's name: `low`, `medium`, `high` … Default: the agent's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Maximum number of turns of the agent's own loop for one prompt; at least 1. Default: the agent's
    /// choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Text to append to the agent's system prompt. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Tools that may run: names, or rules such as `Bash(git:*)`. Claude Code runs them without a permission
    /// request. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools that must not run: names, or rules. Claude Code does not offer them to its model. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Absolute paths of directories that the agent may use besides the working directory. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
    /// Sources from which the agent reads its settings: `user`, `project`, `local`. Empty: no sources.
    /// Default: the agent's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<Vec<String>>,
    /// JSON schema that every answer of the session must match; the summary's `structuredOutput` has the answer.
    /// Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl SessionOptions {
    /// Returns `true` if no option is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these options; those that are not set here are taken from `others`.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        let list =
            |own: Vec<String>, other: &[String]| if own.is_empty() { other.to_vec() } else { own };
        Self {
            model: self.model.or_else(|| others.model.clone()),
            mode: self.mode.or_else(|| others.mode.clone()),
            effort: self.effort.or_else(|| others.effort.clone()),
            max_turns: self.max_turns.or(others.max_turns),
            append_system_prompt: self
                .append_system_prompt
                .or_else(|| others.append_system_prompt.clone()),
            allowed_tools: list(self.allowed_tools, &others.allowed_tools),
            disallowed_tools: list(self.disallowed_tools, &others.disallowed_tools),
            additional_directories: list(
                self.additional_directories,
                &others.additional_directories,
            ),
            setting_sources: self
                .setting_sources
                .or_else(|| others.setting_sources.clone()),
            output_schema: self.output_schema.or_else(|| others.output_schema.clone()),
        }
    }
}
