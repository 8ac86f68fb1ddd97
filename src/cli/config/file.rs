//! Types of the configuration file. The schema, the reader and the editor are derived from them.

use super::values::{Answer, EnvTable, PresetName, Texts, TimeoutTable};
use acpipe_model::asking::Asking;
use acpipe_model::backend_options::{CommandInput, CommandOutput};
use acpipe_policy::{Effect, Mode};
use acpipe_protocol::wire::{McpServersByName, Protocol};
#[cfg(test)]
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Configuration of acpipe: the user's `config.toml`, or `.acpipe.toml` of a project. With the line
/// `#:schema PATH/config.schema.json` at the top of the file, editors complete and check it.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Name of the agent that is used if the command line names no agent: an agent of this file or a
    /// built-in agent.
    pub agent: Option<String>,
    /// Whether `serve`, `run` and `acp` use the daemon, as with `--daemon`. Only in the user's file. Default: `false`.
    pub attach: Option<bool>,
    /// Permissions of all agents.
    pub permissions: Option<PermissionTable>,
    /// Agents by name. A name consists of at most 64 letters, digits, `.`, `_` and `-`, and begins with a
    /// letter or digit.
    #[cfg_attr(test, schemars(extend("propertyNames" = { "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "not": { "const": "default" } })))]
    pub agents: Option<BTreeMap<String, AgentTable>>,
}

/// Permissions: rules, and a default for tool calls that match no rule.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PermissionTable {
    /// Mode if no rule matches. Default: `approve`.
    pub default: Option<Mode>,
    /// Behaviour of another system if no rule matches, instead of `default`.
    pub preset: Option<PresetName>,
    /// `true` prefers "always" to "once" among the options that an agent offers. Default: `false`.
    pub always: Option<bool>,
    /// Decision on a request that the client does not answer. Default: `deny`.
    pub unanswered: Option<Answer>,
    /// Rules that allow, as Claude Code writes them: `Read`, `Bash(git:*)`, `Edit(src/**)`.
    pub allowed_tools: Option<Texts>,
    /// Rules that deny, in the same form.
    pub disallowed_tools: Option<Texts>,
    /// Names of tools that acpipe does not know, so that rules can name them.
    pub tools: Option<Texts>,
    /// Rules. Deny has precedence over ask, and ask over allow.
    pub rules: Option<Vec<RuleTable>>,
}

/// A rule: it matches if each of its conditions matches.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// Name in verdicts and in the ledger. Default: the number of the rule.
    pub name: Option<String>,
    /// Effect of the rule. Required.
    #[cfg_attr(test, schemars(with = "Effect"))]
    pub effect: Option<Effect>,
    /// Options that no command may have; for rules that allow commands.
    pub without: Option<Texts>,
    /// Kinds of tool calls: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`,
    /// `switch_mode`, `other`.
    pub kind: Option<Texts>,
    /// Names of tools, with `*`.
    pub tool: Option<Texts>,
    /// Titles of tool calls, with `*`.
    pub title: Option<Texts>,
    /// Paths, with `*`, `**`, `?`, `[a-z]` and `{a,b}`.
    pub path: Option<Texts>,
    /// Commands, with `*`; `<read-only>` for commands that only read.
    pub command: Option<Texts>,
}

/// An agent. It needs `use`, `command`, `url` or `extends`.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AgentTable {
    /// Name of the built-in agent to start.
    #[serde(rename = "use")]
    pub uses: Option<String>,
    /// Program to start, instead of `use`: a path, or a name that is searched for in `PATH`.
    pub command: Option<String>,
    /// Address of the endpoint, instead of `command`; for `protocol = "openai"` and `"ui-stream"`.
    pub url: Option<String>,
    /// Arguments of the program. Default: none.
    pub args: Option<Vec<String>>,
    /// Name of an agent of which this agent is a variant. It has the keys of that agent, except those that
    /// it sets itself; `prompt` is appended, `env`, `mcp_servers` and `timeout` are merged by key, and all
    /// rules hold.
    pub extends: Option<String>,
    /// Environment variables of the program, in addition to those of acpipe; `false` unsets a variable.
    pub env: Option<EnvTable>,
    /// Working directory of the program: an absolute path, or one below `~/`. In a project's file, other
    /// paths are relative to the file. Default: the working directory of acpipe.
    pub cwd: Option<String>,
    /// Protocol of the program. Default: `claude` for a program of this name, else `acp`.
    pub protocol: Option<Protocol>,
    /// Description of the agent, for people and for agents that choose one.
    pub description: Option<String>,
    /// Tags, by which agents are found.
    pub tags: Option<Vec<String>>,
    /// Instructions of the agent, in addition to its own.
    pub prompt: Option<String>,
    /// Model, as an id or name of the agent.
    pub model: Option<String>,
    /// Initial mode, as an id or name of the agent.
    pub mode: Option<String>,
    /// When the agent asks for permission before it runs tools: `always`, `settings` (about what its own settings name),
    /// `never`, or the ids of its modes in which it asks. acpipe chooses the first of these modes if the permissions
    /// restrict and no mode is set, and warns if the agent may run tools without asking. Default: what acpipe knows
    /// of the program.
    pub asks: Option<Asking>,
    /// Tools that may run: names, or rules such as `Bash(git:*)`.
    pub tools: Option<Texts>,
    /// Tools that must not run: names, or rules.
    pub disallowed_tools: Option<Texts>,
    /// MCP servers of the agent's sessions by name, with the fields of `.mcp.json`.
    pub mcp_servers: Option<McpServersByName>,
    /// Permissions of this agent, in addition to the rules of `[permissions]`: the name of a mode or preset,
    /// or a table.
    pub permissions: Option<AgentPermissions>,
    /// Time limits: a duration for a whole turn, or durations by stage.
    pub timeout: Option<TimeoutTable>,
    /// Whether each session gets its own process. Default: `false`.
    pub child_per_session: Option<bool>,
    /// Options of the agent's protocol.
    pub options: Option<OptionTable>,
    /// How a command receives the prompt; for `protocol = "command"`. Default: `text`.
    pub input: Option<CommandInput>,
    /// How a command writes its answer; for `protocol = "command"`. Default: `text`.
    pub output: Option<CommandOutput>,
    /// Path of the text in the JSON of a command's answer: keys and numbers of array elements, joined by dots.
    /// Default: `text`.
    pub answer: Option<String>,
    /// Limit on the earlier messages that the agent receives with each prompt, if it receives them.
    pub history: Option<HistoryTable>,
    /// Name of the variable that holds the key of the endpoint, which is sent as `Authorization: Bearer`.
    /// Default: `OPENAI_API_KEY` for `protocol = "openai"` with `https` or on this machine, if it is set.
    pub api_key_env: Option<String>,
    /// Additional headers of the requests to the endpoint; `${NAME}` in a value is replaced by the variable.
    pub headers: Option<BTreeMap<String, String>>,
    /// `false` requests the answer as a whole; for `protocol = "openai"`. Default: `true`.
    pub stream: Option<bool>,
}

/// Limit on earlier messages. The newest messages are sent.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HistoryTable {
    /// Maximum number of messages. Default: 100.
    pub messages: Option<usize>,
    /// Maximum number of tokens, estimated as four bytes of JSON for each. Default: 64000.
    pub tokens: Option<usize>,
}

/// Permissions of an agent.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub enum AgentPermissions {
    /// Name of a mode (`approve`, `reads`, `ask`, `deny`) or of a preset.
    Named(String),
    /// Rules and a default.
    Table(Box<PermissionTable>),
}

/// Options of an agent's sessions that not every protocol has.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OptionTable {
    /// Reasoning effort, by the agent's name: `low`, `medium`, `high` …
    pub effort: Option<String>,
    /// Maximum number of turns of the agent's own loop for one prompt.
    #[cfg_attr(test, schemars(range(min = 1, max = 4_294_967_295_u32)))]
    pub max_turns: Option<u32>,
    /// Directories that the agent may use besides its working directory; paths as for `cwd`.
    pub add_dirs: Option<Vec<String>>,
    /// Sources from which the agent reads its settings: `user`, `project`, `local`.
    pub setting_sources: Option<Vec<String>>,
    /// JSON schema that every answer must match.
    pub output_schema: Option<Value>,
}
