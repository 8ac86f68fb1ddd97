//! Session options on the command line.

use crate::cli::UsageError;
use crate::proto::wire::SessionOptions;
use clap::Args;
use std::path::PathBuf;

/// Default options of sessions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Session")]
pub struct OptionArgs {
    /// Model, by the name or id that the agent offers
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Initial mode; for Claude: default, acceptEdits, plan, auto, dontAsk or bypassPermissions
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Reasoning effort: low, medium, high, xhigh or max (Claude only)
    #[arg(long, value_name = "LEVEL")]
    pub effort: Option<String>,
    /// Maximum number of model turns per prompt (Claude only)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_turns: Option<u32>,
    /// Text to append to the agent's system prompt (Claude only)
    #[arg(long, value_name = "TEXT")]
    pub append_system_prompt: Option<String>,
    /// Allow a tool without asking, for example `Read` or `Bash(git:*)` (repeatable)
    #[arg(long = "allow-tool", value_name = "RULE")]
    pub allowed_tools: Vec<String>,
    /// Deny a tool (repeatable)
    #[arg(long = "disallow-tool", value_name = "RULE")]
    pub disallowed_tools: Vec<String>,
    /// Let the agent work in this directory, too (Claude only, repeatable)
    #[arg(long = "add-dir", value_name = "DIR")]
    pub additional_directories: Vec<PathBuf>,
    /// Comma-separated setting files to load: user, project, local; `""` for none (Claude only)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub setting_sources: Option<Vec<String>>,
    /// JSON schema that the answer must match, as text (Claude only)
    #[arg(long, value_name = "JSON")]
    pub output_schema: Option<String>,
}

impl OptionArgs {
    /// Converts the options to the types of the wire protocol.
    ///
    /// # Errors
    /// The schema is not JSON, or an additional directory does not exist.
    pub fn to_wire(&self) -> anyhow::Result<SessionOptions> {
        let schema = self.output_schema.as_deref();
        let schema = schema.map(serde_json::from_str).transpose();
        let schema = schema.map_err(|error| {
            UsageError(format!(
                "--output-schema: not valid JSON: {error}; to use a file, write --output-schema \"$(cat FILE)\""
            ))
        })?;
        let absolute = |dir: &PathBuf| {
            let dir = std::path::absolute(dir).map_err(|error| {
                UsageError(format!("--add-dir: not a valid directory: {error}"))
            })?;
            if !dir.is_dir() {
                let message = format!("--add-dir: {} is not a directory", dir.display());
                return Err(UsageError(message).into());
            }
            Ok(dir.to_string_lossy().into_owned())
        };
        let directories: anyhow::Result<Vec<String>> =
            self.additional_directories.iter().map(absolute).collect();
        let sources = self.setting_sources.as_ref();
        let named = |sources: &Vec<String>| {
            let named = sources.iter().filter(|source| !source.is_empty());
            named.cloned().collect()
        };
        Ok(SessionOptions {
            model: self.model.clone(),
            mode: self.mode.clone(),
            effort: self.effort.clone(),
            max_turns: self.max_turns,
            append_system_prompt: self.append_system_prompt.clone(),
            allowed_tools: self.allowed_tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            additional_directories: directories?,
            setting_sources: sources.map(named),
            output_schema: schema,
        })
    }
}
