//! Session options on the command line.

use crate::cli::UsageError;
use crate::cli::config::text_of;
use acpipe_core::output_schema::OutputSchema;
use acpipe_json::shallow;
use acpipe_protocol::wire::SessionOptions;
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Heading of the options that hold for all agents.
const HEADING: &str = "Tools of all agents";

/// Options of sessions that set none.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sessions of the default agent")]
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
    ///
    /// Holds for every agent. What an agent, a session or a rule of the configuration denies or asks about, stays so.
    #[arg(long = "allow-tool", value_name = "RULE", help_heading = HEADING)]
    pub allowed_tools: Vec<String>,
    /// Deny a tool (repeatable)
    ///
    /// Holds for every agent, whatever its definition and the options of the session say.
    #[arg(long = "disallow-tool", value_name = "RULE", help_heading = HEADING)]
    pub disallowed_tools: Vec<String>,
    /// Let the agent work in this directory, too (Claude only, repeatable)
    #[arg(long = "add-dir", value_name = "DIR")]
    pub additional_directories: Vec<PathBuf>,
    /// Comma-separated setting files to load: user, project, local; `""` for none (Claude only)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub setting_sources: Option<Vec<String>>,
    /// JSON schema that the answer must match: a file, or the schema itself
    ///
    /// The agent is asked once to correct an answer that does not match. With `-o json` the answer is in
    /// `structuredOutput`; the exit code is 65 if it still does not match.
    #[arg(long, value_name = "FILE")]
    pub output_schema: Option<String>,
}

impl OptionArgs {
    /// Converts the options to the types of the wire protocol.
    ///
    /// # Errors
    /// The schema is not JSON, or an additional directory does not exist.
    pub fn to_wire(&self) -> anyhow::Result<SessionOptions> {
        let schema = self.output_schema.as_deref().map(read_schema).transpose()?;
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

/// Reads an output schema from a file, or from the argument itself if that is an object or a boolean.
fn read_schema(given: &str) -> anyhow::Result<Value> {
    let is_schema = given.trim_start().starts_with('{') || matches!(given, "true" | "false");
    let text = if is_schema {
        given.to_owned()
    } else {
        text_of(Path::new(given)).map_err(|error| {
            UsageError(format!(
                "--output-schema: cannot read {given}: {error}; give a file with a JSON schema, or the schema itself"
            ))
        })?
    };
    let schema = serde_json::from_str(&shallow(&text))
        .map_err(|error| UsageError(format!("--output-schema: not valid JSON: {error}")))?;
    match OutputSchema::compile(&schema) {
        Ok(_) => Ok(schema),
        Err(why) => {
            Err(UsageError(format!("--output-schema: not a valid JSON schema: {why}")).into())
        }
    }
}
