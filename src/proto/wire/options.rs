//! What agents are started with on the wire: the language that they speak, options of their sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The protocol that an agent speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// The Agent Client Protocol: one process for all sessions.
    #[default]
    Acp,
    /// The Claude Code CLI's own, stream-json both ways: one process for each session.
    Claude,
}

impl Protocol {
    /// The protocol of a program that is what its name says.
    #[must_use]
    pub fn of_command(command: &str) -> Self {
        let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
        match name {
            "claude" | "claude.exe" | "claude.cmd" => Self::Claude,
            _ => Self::Acp,
        }
    }
}

/// Options of a session. An agent that speaks ACP takes `model` and `mode`, and acpipe holds its `allowedTools` and
/// `disallowedTools`; any other of them is refused there, rather than forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionOptions {
    /// The model, by the agent's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode that it begins in: with Claude Code the permission mode, `plan` say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How hard the model thinks, in the agent's words: `low`, `medium`, `high` …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// How many turns of its own loop the agent may take for a prompt; at least 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Text that is appended to the agent's own system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append_system_prompt: Option<String>,
    /// Tools that may run: names, or rules such as `Bash(git:*)`. Claude Code does not ask about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Tools that may not run: names, or rules. Claude Code does not get them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Directories beside the working directory that the agent may work in; absolute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub additional_directories: Vec<String>,
    /// The files that the agent takes settings from: `user`, `project`, `local`; its default where absent,
    /// none where empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<Vec<String>>,
    /// A JSON schema that the answer has to match: it is given as `structuredOutput`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

impl SessionOptions {
    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and of others what is not said here.
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
