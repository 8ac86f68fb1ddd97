//! Arguments of `acpipe agents`.

use crate::cli::args::shared::{AgentKind, PlaceArgs};
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
        acpipe agents                                   list your agents and those found on this machine\n  \
        acpipe agents default claude                    use Claude Code where no agent is named\n  \
        acpipe agents add mine -- my-agent --acp        give a command line a name\n  \
        acpipe agents add reviewer --extends claude --permissions reads --prompt \"Only review.\"\n  \
        acpipe run --agent reviewer \"the last commit\"\n\n\
        A name may be shortened to a unique beginning. Your agents are in the configuration file, which\n\
        docs/reference/configuration.md describes; acpipe doctor NAME checks one."
)]
pub struct AgentsArgs {
    #[command(subcommand)]
    pub verb: Option<AgentsVerb>,
    #[command(flatten)]
    pub list: ListAgentsArgs,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// Configuration file
    ///
    /// The default is the file named by the environment variable `ACPIPE_CONFIG`, else acpipe/config.toml in the
    /// platform's configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum AgentsVerb {
    /// List agents; the programs of installed ones are asked for their versions
    #[command(visible_alias = "ls")]
    List(ListAgentsArgs),
    /// Show the definition of an agent, and whether it is installed
    Show(ShowAgentArgs),
    /// Add an agent to the configuration file
    Add(AddArgs),
    /// Remove an agent from the configuration file
    #[command(visible_alias = "rm")]
    Remove(AgentNameArgs),
    /// Set the agent that is used where none is named; without a name, print it
    Default(DefaultArgs),
    /// Add agents from a file of the ACP registry (registry.json or agent.json)
    Import(ImportArgs),
    /// Trust the .acpipe.toml of this project, as it is now: its agents may start programs
    Trust(TrustArgs),
}

#[derive(Debug, Default, Args)]
pub struct ListAgentsArgs {
    /// Also list the built-in agents that are not installed
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowAgentArgs {
    /// Name of the agent
    pub name: String,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AgentNameArgs {
    /// Name of the agent
    pub name: String,
}

#[derive(Debug, Args)]
pub struct AddArgs {
    /// Name of the new agent: letters, digits, `.`, `_` and `-`
    pub name: String,
    /// Take everything that is not given here from another agent
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    pub extends: Option<String>,
    /// Protocol of the command [default: chosen by the command's name]
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    pub protocol: Option<AgentKind>,
    /// Description in one phrase
    #[arg(long, value_name = "TEXT")]
    pub description: Option<String>,
    /// Instructions for the agent
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,
    /// Model
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Initial mode
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
    /// Permissions of the agent: approve, reads, ask, deny, or a preset
    #[arg(long, value_name = "MODE")]
    pub permissions: Option<String>,
    /// Set an environment variable of the agent (repeatable)
    ///
    /// The value is stored in the configuration file.
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// Command line of the agent
    #[arg(
        last = true,
        value_name = "COMMAND",
        required_unless_present = "extends"
    )]
    pub command: Vec<String>,
}

#[derive(Debug, Args)]
pub struct DefaultArgs {
    /// Name of the agent
    #[arg(conflicts_with = "unset")]
    pub name: Option<String>,
    /// Remove the setting
    #[arg(long)]
    pub unset: bool,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File of the registry, `-` for stdin
    ///
    /// To import from a URL: curl -fsSL URL | acpipe agents import -
    pub file: PathBuf,
    /// Ids of the agents to import [default: all]
    pub names: Vec<String>,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// Do not trust the file any more
    #[arg(long)]
    pub revoke: bool,
}
