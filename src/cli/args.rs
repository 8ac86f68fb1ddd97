//! Command-line definition of `acpipe`.

mod duration;
pub mod hints;
mod limits;
mod options;
mod permissions;
mod serving;
pub mod shared;
mod timeouts;

use super::permissions::args::PermissionsArgs;
use super::processes::ProcessesArgs;
use super::sessions::args::SessionsArgs;
use crate::proto::frame::DEFAULT_MAX_LINE;
use crate::proto::wire::{Protocol, Variables};
use crate::shell::LoginShell;
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use limits::{LimitArgs, MaxTime};
use options::OptionArgs;
pub use permissions::PermissionArgs;
use serving::ServingArgs;
use shared::{ChunkProfile, PlaceArgs};
use std::path::PathBuf;
use timeouts::TimeoutArgs;
use tracing_subscriber::filter::{LevelFilter, Targets};

/// One small native binary between an app and any coding agent.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    long_about = "One small native binary between an app and any coding agent.\n\n\
        acpipe starts an agent that speaks ACP (the Agent Client Protocol), or the Claude Code CLI, prompts it, \
        approves what it asks, and streams what it does as AI SDK UIMessageChunks.",
    after_help = "Agents are named by their command line, after --:\n  \
        acpipe run \"fix the tests\" -- opencode acp\n  \
        acpipe serve -- npx -y @agentclientprotocol/claude-agent-acp\n\n\
        Claude Code needs no adapter:\n  \
        acpipe run --agent claude \"fix the tests\"\n\n\
        ACPIPE_AGENT holds the command line of the agent to use when none is given."
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
    #[command(flatten)]
    pub logs: LogArgs,
}

/// What is logged, and where.
#[derive(Debug, Args)]
#[command(next_help_heading = "Logs")]
pub struct LogArgs {
    /// Say more; repeat for more still: -v is info, -vv debug, -vvv trace
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// What is logged: off, error, warn, info, debug or trace; and of a part, `warn,acpipe::shell=debug` say
    #[arg(
        long,
        value_name = "LEVEL",
        env = "ACPIPE_LOG",
        default_value = "warn",
        value_parser = levels,
        global = true
    )]
    pub log_level: Targets,
    /// Log to the end of this file, not to stderr
    #[arg(long, value_name = "FILE", global = true)]
    pub log_file: Option<PathBuf>,
    /// The form of the log
    #[arg(long, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT", global = true)]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    Text,
    /// A JSON object a line
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run one turn: a prompt in, the answer out
    Run(RunArgs),
    /// Serve an editor or app: JSON-RPC on stdin and stdout
    Serve(ServeArgs),
    /// List, read, export and remove stored sessions
    Sessions(SessionsArgs),
    /// Show what agents were allowed and refused, and by whom
    Permissions(PermissionsArgs),
    /// Show the processes that acpipe started, and end those that killed ones left
    Processes(ProcessesArgs),
    /// Be the built-in demo agent: ACP on stdin and stdout, no model, no network
    #[command(
        long_about = "Be the built-in demo agent: ACP on stdin and stdout, no model, no network.\n\n\
        It answers where no agent is configured, and shows how an ACP agent works."
    )]
    DemoAgent,
    /// Print the schemas of the protocol
    Schema(SchemaArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe run \"hello\"                                    the demo agent answers\n  \
        acpipe run \"what is this project?\" -- opencode acp     an agent of your own\n  \
        git diff | acpipe run \"review this\" -- codex-acp       stdin joins the prompt\n  \
        acpipe run -f task.md --attach shot.png -- codex-acp    the prompt from a file, with an image\n  \
        acpipe run -o json \"2+2?\" -- gemini --acp | jq .text   the summary as JSON\n  \
        acpipe run -c \"and now the tests\"                     go on where the last run here ended\n  \
        acpipe run --permissions ask \"fix it\" -- opencode acp  allow each step yourself, at the terminal\n  \
        acpipe run --config ci.toml \"test\" -- opencode acp     by rules: docs/guides/permissions.md has whole files\n\n\
        Ctrl-C cancels the turn; a second one kills the agent.\n\n\
        Exit codes: 0 done, 1 the agent failed, 2 usage, 76 handshake, 77 sign in first, 124 timeout,\n\
        126 agent not started, 127 agent not found, 130 cancelled; the whole table is in docs/reference/errors.md.")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct RunArgs {
    /// The prompt; several words are joined, piped stdin is added after an empty line; `-` alone is stdin
    pub prompt: Vec<String>,
    /// The prompt, where it begins with -; the words come after it
    #[arg(long = "prompt", value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt_text: Option<String>,
    /// Read the prompt from this file, `-` for stdin; the words come before it; repeat for more
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Send this file along: an image or a sound as such, anything else as a resource; repeat for more
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// What goes to stdout
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub output: Format,
    /// Continue this session of the directory, with its own agent where none is named; created if it does not exist
    #[arg(long, value_name = "NAME", conflicts_with = "continue")]
    pub session: Option<String>,
    /// Continue the newest session of the directory, with its own agent where none is named
    #[arg(short, long)]
    pub r#continue: bool,
    /// Store nothing of this run, as --persist never
    #[arg(long, conflicts_with_all = ["session", "continue", "persist"])]
    pub ephemeral: bool,
    /// Say nothing on stderr but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Cancel the turn when it has lasted this long, however much the agent says: 90s, 10m, 1h; exit code 124. The
    /// agent's start and the opening of the session have limits of their own (--timeout); 0 is no limit
    #[arg(long, value_name = "DURATION", default_value = "none", hide_default_value = true, value_parser = MaxTime::parse)]
    pub max_time: MaxTime,
    /// Do not send the prompt again when the AI service is overloaded
    #[arg(long)]
    pub no_retry: bool,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The protocol is in docs/reference/protocol.md and schemas/; examples/ has clients to read.\n\n\
        Try it:\n  \
        printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}' | acpipe serve"
)]
pub struct ServeArgs {
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// The protocol that the agent speaks; `claude` alone finds the Claude Code CLI [default: by its name]
    #[arg(long, value_enum, value_name = "KIND")]
    pub agent: Option<Kind>,
    /// Give each session a process of its own: for agents that cannot run two sessions in one
    #[arg(long)]
    pub child_per_session: bool,
    /// Working directory of the agent and its sessions
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set a variable of the agent's environment; without = it is unset
    #[arg(short, long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<(String, Option<String>)>,
    /// A file of MCP servers that every session gets, in the form of .mcp.json; the client's own go before them
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    #[command(flatten)]
    pub permissions: PermissionArgs,
    /// Major of the AI SDK whose chunks are sent
    #[arg(long, value_enum, default_value_t = ChunkProfile::V7, value_name = "MAJOR")]
    pub chunk_profile: ChunkProfile,
    #[command(flatten)]
    pub store: StoreArgs,
    /// The longest line of the agent that is kept, in bytes (K, M and G are understood)
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub max_line: usize,
    /// Do not ask the login shell for its PATH where a program is not found
    #[arg(long, env = "ACPIPE_NO_PATH_PROBE", value_parser = FalseyValueParser::new())]
    pub no_path_probe: bool,
    #[command(flatten)]
    pub serving: ServingArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    #[command(flatten)]
    pub options: OptionArgs,
    /// The agent's command line
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub command: Vec<String>,
}

impl AgentArgs {
    /// Returns `true` if the command line names an agent.
    pub fn names_agent(&self) -> bool {
        !self.command.is_empty() || self.agent == Some(Kind::Claude)
    }

    /// Returns the variables to set (`Some`) and to unset (`None`) in the agent's environment.
    pub fn variables(&self) -> Variables {
        self.env.iter().cloned().collect()
    }

    /// Returns the login shell; it is not queried with `--no-path-probe`.
    pub fn login(&self) -> LoginShell {
        LoginShell::new(!self.no_path_probe)
    }
}

/// How sessions are kept.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Whether sessions are kept on the disk; `PERSIST_MESSAGES=true|false` says the same [default: always]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub persist: Option<Persist>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// When what was said must be on the disk for sure
    #[arg(long, value_enum, default_value_t = Durability::Turn, value_name = "WHEN")]
    pub durability: Durability,
    /// What becomes of a session's messages when its agent has lost its memory of them
    #[arg(long, value_enum, default_value_t = OnNew::Keep, value_name = "WHAT")]
    pub on_new: OnNew,
    /// Give an agent that lost its memory the last N characters of the session with its next prompt
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub reinject: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Persist {
    /// Keep them: they come back after a restart
    Always,
    /// Keep them in memory, while acpipe runs
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Durability {
    /// Before the summary of a turn is given
    Turn,
    /// Whenever the system likes: kept when acpipe is killed, maybe not when the machine is
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnNew {
    /// They stay, with a marker
    Keep,
    /// They go to the archive, and the session begins anew
    Clear,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write the files into this directory instead of printing one document
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON Schema with all types, for code generators, instead of the `OpenRPC` document
    #[arg(long, conflicts_with = "dir")]
    pub bundle: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The answer as it comes, for people and pipes
    Text,
    /// AI SDK chunks, one JSON object a line
    Chunks,
    /// The same as server-sent events, as the AI SDK's HTTP stream has them
    Sse,
    /// The summary of the turn as one JSON object
    Json,
}

/// Protocol that an agent speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// The Agent Client Protocol
    Acp,
    /// The Claude Code CLI's stream-json
    Claude,
}

impl From<Kind> for Protocol {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Acp => Self::Acp,
            Kind::Claude => Self::Claude,
        }
    }
}

/// Parses log levels, global and per module. An invalid level is rejected here because `Targets` would parse
/// it as a module name.
fn levels(text: &str) -> Result<Targets, String> {
    // An empty variable counts as unset.
    let text = if text.is_empty() { "warn" } else { text };
    let words = text.split(',').filter(|word| !word.contains('='));
    for word in words {
        if word.is_empty() || word.parse::<LevelFilter>().is_err() {
            return Err(format!("{word:?} is no level"));
        }
    }
    text.parse().map_err(|error| format!("{error}"))
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("a name is needed before =".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn size(text: &str) -> Result<usize, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit
        .to_ascii_uppercase()
        .trim_end_matches("IB")
        .trim_end_matches('B')
    {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(format!("{unit:?} is no unit: use K, M or G")),
    };
    let number: usize = number
        .parse()
        .map_err(|_| "a number is needed".to_owned())?;
    match number
        .checked_shl(shift)
        .filter(|n| n >> shift == number && *n > 0)
    {
        Some(size) if size <= DEFAULT_MAX_LINE * 64 => Ok(size),
        _ => Err("it must be between 1 byte and 4G".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_units() {
        let cases = [
            ("64M", Some(64 << 20)),
            ("100", Some(100)),
            ("2KiB", Some(2048)),
            ("1g", Some(1 << 30)),
        ];
        for (text, want) in cases {
            assert_eq!(size(text).ok(), want, "{text}");
        }
        for bad in ["", "M", "0", "5X", "99999999999999999999", "99G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn levels_are_of_all_or_of_parts() {
        for good in [
            "",
            "off",
            "DEBUG",
            "warn,acpipe::shell=debug",
            "acpipe::shell=trace",
        ] {
            assert!(levels(good).is_ok(), "{good}");
        }
        for bad in [",", "loud", "debug,acpipe", "acpipe=loud", "warn,"] {
            assert!(levels(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variables_are_set_or_unset() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), Some("b=c".into()))));
        assert_eq!(variable("A"), Ok(("A".into(), None)));
        assert!(variable("=x").is_err());
    }

    #[test]
    fn a_schema_that_is_no_json_is_a_mistake_of_the_caller() {
        let line = ["acpipe", "run", "--output-schema", "file.json", "hello"];
        let Verb::Run(run) = Cli::try_parse_from(line).unwrap().verb else {
            panic!("not run");
        };
        let error = run.agent.options.to_wire().unwrap_err();
        assert!(error.is::<crate::cli::Mistake>(), "{error}");
    }

    #[test]
    fn setting_sources_leave_the_prompt_alone() {
        for (list, want) in [("user,local", vec!["user", "local"]), ("", vec![])] {
            let line = ["acpipe", "run", "--setting-sources", list, "hello"];
            let Verb::Run(run) = Cli::try_parse_from(line).unwrap().verb else {
                panic!("not run");
            };
            assert_eq!(run.prompt, ["hello"]);
            let wire = run.agent.options.to_wire().unwrap();
            assert_eq!(wire.setting_sources.unwrap(), want);
        }
    }
}
