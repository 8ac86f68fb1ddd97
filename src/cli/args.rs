//! Command-line definition of `acpipe`.

mod acp;
mod attach;
pub mod daemon;
pub mod display;
pub mod duration;
pub mod hints;
mod limits;
mod logs;
mod options;
#[cfg(feature = "otlp")]
mod otlp;
mod permissions;
pub mod read_files;
pub mod record;
mod serving;
pub mod shared;
mod single;
mod size;
pub mod timeouts;
mod version;

use super::agents::args::AgentsArgs;
use super::attach::args::FollowArgs;
use super::completions::args::CompletionsArgs;
use super::doctor::args::DoctorArgs;
#[cfg(feature = "listen")]
use super::http::ListenArgs;
use super::man::args::ManArgs;
use super::permissions::args::PermissionsArgs;
use super::processes::ProcessesArgs;
use super::replay::args::ReplayArgs;
use super::sessions::args::SessionsArgs;
use super::trace::args::TraceArgs;
pub use acp::AcpArgs;
use acpipe_host::LoginShell;
use acpipe_protocol::wire::{Protocol, Variables};
pub use attach::AttachArgs;
use clap::builder::FalseyValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
pub use daemon::DaemonArgs;
use display::DisplayArgs;
pub use limits::LimitArgs;
use limits::MaxTime;
pub use logs::{LogArgs, LogFormat};
use options::OptionArgs;
#[cfg(feature = "otlp")]
use otlp::OtlpArgs;
pub use permissions::PermissionArgs;
use read_files::ReadFiles;
use record::RecordArgs;
use serving::ServingArgs;
use shared::{AgentKind, ChunkProfileArg, Format, PlaceArgs};
use size::size;
use std::path::PathBuf;
use timeouts::TimeoutArgs;

/// Run coding agents from the command line or an app.
#[derive(Debug, Parser)]
#[command(
    version = version::VERSION.as_str(),
    about,
    long_about = "Run coding agents from the command line or an app.\n\n\
        acpipe starts an agent that speaks ACP (the Agent Client Protocol) or the Claude Code CLI, sends it \
        prompts, answers its permission requests, and streams its output as AI SDK UIMessageChunks.",
    after_help = "Name the agent, or give its command line after --:\n  \
        acpipe run --agent claude \"fix the tests\"\n  \
        acpipe run \"fix the tests\" -- my-agent --acp\n\n\
        List the agents on this machine, and choose the default one:\n  \
        acpipe agents\n  \
        acpipe agents default claude\n\n\
        The environment variable ACPIPE_AGENT holds the default agent of a shell: a name, or a command line."
)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
    #[command(flatten)]
    pub logs: LogArgs,
    #[command(flatten)]
    pub display: DisplayArgs,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Send a prompt to an agent and print its answer; without a prompt, chat with it
    Run(RunArgs),
    /// Serve an editor or app over JSON-RPC on stdin and stdout
    Serve(ServeArgs),
    /// Run as an ACP agent for an editor, in front of any other agent
    Acp(AcpArgs),
    /// Keep sessions and their agents in the background while windows come and go
    Daemon(DaemonArgs),
    /// Follow a session of the daemon in the terminal, and control it
    Attach(FollowArgs),
    /// List agents, give them names and choose the default one
    Agents(AgentsArgs),
    /// List, show, export and delete stored sessions
    Sessions(SessionsArgs),
    /// Show a tape or a stored session as a timeline, in a browser or a terminal
    Trace(TraceArgs),
    /// Show which tool calls were allowed and refused, and by whom
    Permissions(PermissionsArgs),
    /// List the processes that acpipe started, and end orphaned ones
    Processes(ProcessesArgs),
    /// Check this machine and its agents, and measure the faults of an agent
    Doctor(DoctorArgs),
    /// Repeat the agent of a tape on stdin and stdout
    Replay(ReplayArgs),
    /// Run the built-in demo agent: ACP on stdin and stdout, no model, no network
    #[command(
        long_about = "Run the built-in demo agent: ACP on stdin and stdout, no model, no network.\n\n\
        acpipe uses it when no agent is configured. It also shows how an ACP agent works."
    )]
    DemoAgent,
    /// Print the JSON schemas of the protocol
    Schema(SchemaArgs),
    /// Print a script that completes commands, options and names in a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page for each command
    Man(ManArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        acpipe run --agent demo \"hello\"                       ask the built-in demo agent\n  \
        acpipe run \"what is this project?\" -- opencode acp     ask another agent\n  \
        git diff | acpipe run \"review this\" -- codex-acp       append stdin to the prompt\n  \
        acpipe run -f task.md --attach shot.png -- codex-acp    read the prompt from a file, attach an image\n  \
        acpipe run -o json \"2+2?\" -- gemini --acp | jq .text   print the summary as JSON\n  \
        acpipe run -q -o json --output-schema answer.json --max-time 10m \"review this\" -- codex-acp |\n    \
            jq .structuredOutput                                get an answer of a given form, or an exit code\n  \
        acpipe run -c \"and now the tests\"                     continue the last session of this directory\n  \
        acpipe run --agent claude                             chat\n  \
        acpipe run --permissions ask \"fix it\" -- opencode acp  approve each tool call in the terminal\n  \
        acpipe run --config ci.toml \"test\" -- opencode acp     decide by rules, see docs/guides/permissions.md\n\n\
        Ctrl-C cancels the turn; a second Ctrl-C kills the agent.\n\
        With --daemon, a second Ctrl-C leaves the agent running, and so does a closed terminal: the turn goes on,\n\
        and `acpipe attach` follows it.\n\n\
        Exit codes: 0 success, 1 agent failed, 2 usage error, 76 handshake failed, 77 sign-in required,\n\
        124 timeout, 126 agent failed to start, 127 agent not found, 130 cancelled.\n\
        The full list is in docs/reference/errors.md.")]
#[expect(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct RunArgs {
    /// Prompt; several arguments are joined with spaces, `-` reads stdin
    ///
    /// If stdin is piped, its text is appended after an empty line. Without a prompt, and with stdin and stdout at a
    /// terminal, the run is a chat; `/help` in it lists its commands.
    pub prompt: Vec<String>,
    /// Prompt that may begin with -; PROMPT arguments are appended to it
    #[arg(long = "prompt", value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt_text: Option<String>,
    /// Read the prompt from this file, `-` for stdin (repeatable)
    ///
    /// PROMPT arguments come before the text of the files.
    #[arg(short, long, value_name = "FILE")]
    pub file: Vec<PathBuf>,
    /// Attach this file to the prompt (repeatable)
    ///
    /// Images and audio are sent as such, other files as resources.
    #[arg(long, value_name = "FILE")]
    pub attach: Vec<PathBuf>,
    /// Output format of stdout
    #[arg(short, long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    pub output: Format,
    /// Print the text of the answer as it is, also at a terminal, where it is otherwise rendered as Markdown
    #[arg(long)]
    pub raw: bool,
    /// Write the images and other data of the answer to new files in this directory
    ///
    /// The directory is created if it does not exist; it may be a link. Files and links in it stay as they are.
    #[arg(long, value_name = "DIR")]
    pub save_files: Option<PathBuf>,
    /// Continue the session NAME of this directory; create it if it does not exist
    ///
    /// Without an agent on the command line, the session's own agent is used.
    #[arg(long, value_name = "NAME", conflicts_with = "continue")]
    pub session: Option<String>,
    /// Continue the newest session of this directory
    ///
    /// Without an agent on the command line, the session's own agent is used.
    #[arg(short, long)]
    pub r#continue: bool,
    /// Do not store this run; same as --persist never
    #[arg(long, conflicts_with_all = ["session", "continue", "persist"])]
    pub ephemeral: bool,
    /// Print only errors to stderr
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// End the run after this time, for example 90s, 10m or 1h; 0 means no limit
    ///
    /// The time begins with the command, and includes reading the prompt, the start of the agent, the opening of the
    /// session, the queue and writing the answer; the error says which of them used it up. A turn is cancelled, and
    /// has a few seconds more to end. The exit code is then 124. In a chat, the limit is that of each turn.
    #[arg(long, value_name = "DURATION", default_value = "none", hide_default_value = true, value_parser = MaxTime::parse)]
    pub max_time: MaxTime,
    /// Give the agent a value besides the prompt, for example `branch=main` (repeatable)
    ///
    /// The values precede the prompt as one JSON object.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    pub context: Vec<(String, String)>,
    /// Do not retry the prompt when the AI service is overloaded
    #[arg(long)]
    pub no_retry: bool,
    #[command(flatten)]
    pub daemon: AttachArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The protocol is described in docs/reference/protocol.md and schemas/. Example clients are in examples/.\n\n\
        Try it:\n  \
        printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":1}}' | acpipe serve"
)]
pub struct ServeArgs {
    #[command(flatten)]
    pub attach: AttachArgs,
    #[command(flatten)]
    pub limits: LimitArgs,
    #[command(flatten)]
    pub agent: AgentArgs,
    // Its heading in the help would be that of all options behind it.
    #[cfg(feature = "listen")]
    #[command(flatten)]
    pub listen: ListenArgs,
}

#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Agent to use, by its name: one of the configuration, or a built-in one such as claude, codex or gemini
    ///
    /// `acpipe agents` lists them. With options after --, these are passed to the agent; with a command after --,
    /// the agent is started by that command.
    ///
    /// Only `acpipe acp` accepts several agents (repeatable); the client chooses one for each session.
    #[arg(long, value_name = "NAME")]
    pub agent: Vec<String>,
    /// `true` in the daemon for a client: the variables of this process are not those of the client
    #[arg(skip)]
    pub is_of_client: bool,
    /// In the daemon: the files of a client, which has read them
    #[arg(skip)]
    pub files: Option<Box<ReadFiles>>,
    /// Protocol of the command after -- [default: chosen by the command's name]
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    pub protocol: Option<AgentKind>,
    /// Start one process of the default agent per session, for agents that can run only one session
    #[arg(long)]
    pub child_per_session: bool,
    /// Working directory of the agent and its sessions
    #[arg(long, value_name = "DIR")]
    pub cwd: Option<PathBuf>,
    /// Set an environment variable of the agent, or unset it if =VALUE is missing (repeatable)
    ///
    /// The agent is the default agent. Agents that a client defines get the variable, too; those of the configuration and
    /// the built-in ones do not, if a client names them.
    #[arg(short, long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub env: Vec<(String, Option<String>)>,
    /// Add the MCP servers of this file, in the format of .mcp.json, to every session
    ///
    /// If a client configures a server of the same name, the client's server is used.
    #[arg(long, value_name = "FILE")]
    pub mcp_config: Option<PathBuf>,
    #[command(flatten)]
    pub permissions: PermissionArgs,
    /// Major version of the AI SDK that the chunks are for, or discobot for the names of that system
    #[arg(long, value_enum, default_value_t = ChunkProfileArg::V7, value_name = "PROFILE")]
    pub chunk_profile: ChunkProfileArg,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Maximum length of a line of the agent, in bytes; accepts the suffixes K, M and G
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size)]
    pub max_line: usize,
    /// Do not search the PATH of the login shell for programs
    #[arg(long, env = "ACPIPE_NO_PATH_PROBE", value_parser = FalseyValueParser::new())]
    pub no_path_probe: bool,
    #[command(flatten)]
    pub serving: ServingArgs,
    #[command(flatten)]
    pub record: RecordArgs,
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub otlp: OtlpArgs,
    #[command(flatten)]
    pub timeouts: TimeoutArgs,
    #[command(flatten)]
    pub options: OptionArgs,
    /// Command line of the agent
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub command: Vec<String>,
}

impl AgentArgs {
    /// Returns `true` if the command line names an agent.
    pub fn names_agent(&self) -> bool {
        !self.command.is_empty() || !self.agent.is_empty()
    }

    /// Returns the name of `--agent`, the first one if there are several.
    pub fn agent_name(&self) -> Option<&str> {
        self.agent.first().map(String::as_str)
    }

    /// Returns the protocol of `--protocol`.
    pub fn protocol(&self) -> Option<Protocol> {
        self.protocol.map(Protocol::from)
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
    /// Whether to store sessions on disk [env: `PERSIST_MESSAGES=true|false`] [default: always]
    #[arg(long, value_enum, value_name = "WHEN")]
    pub persist: Option<Persist>,
    #[command(flatten)]
    pub place: PlaceArgs,
    /// When stored messages are flushed to disk
    #[arg(long, value_enum, default_value_t = DurabilityArg::Turn, value_name = "WHEN")]
    pub durability: DurabilityArg,
    /// Treatment of a session's stored messages if its agent no longer remembers them
    #[arg(long, value_enum, default_value_t = OnNew::Keep, value_name = "WHAT")]
    pub on_new: OnNew,
    /// Repeat the last N characters of the session to an agent that no longer remembers it [default: 0, and
    /// 32000 for `acpipe acp`]
    #[arg(long, value_name = "N")]
    pub reinject: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Persist {
    /// On disk; sessions survive a restart of acpipe
    Always,
    /// In memory only, until acpipe exits
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityArg {
    /// Before the summary of each turn is sent
    Turn,
    /// When the operating system does: messages survive a crash of acpipe, but maybe not of the machine
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnNew {
    /// Keep them and mark where the agent's memory starts
    Keep,
    /// Archive them and start the session with no messages
    Clear,
}

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Write the schema files to this directory instead of printing one document
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Print one JSON Schema with all types, for code generators, instead of the `OpenRPC` document
    #[arg(long, conflicts_with = "dir")]
    pub bundle: bool,
}

fn variable(text: &str) -> Result<(String, Option<String>), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("the name before = is missing; write NAME=VALUE".to_owned());
    }
    Ok((name.to_owned(), value))
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match variable(text)? {
        (name, Some(value)) => Ok((name, value)),
        (name, None) => Err(format!("the value is missing; write {name}=VALUE")),
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
    fn variables_are_set_or_unset() {
        assert_eq!(variable("A=b=c"), Ok(("A".into(), Some("b=c".into()))));
        assert_eq!(variable("A"), Ok(("A".into(), None)));
        assert!(variable("=x").is_err());
    }

    #[test]
    fn context_values_are_texts() {
        assert_eq!(key_value("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(key_value("n="), Ok(("n".into(), String::new())));
        assert!(key_value("n").unwrap_err().contains("n=VALUE"));
        assert!(key_value("=x").is_err());
    }

    #[test]
    fn output_schema_is_a_file_or_the_schema() {
        let schema = |given: &str| {
            let line = ["acpipe", "run", "--output-schema", given, "hello"];
            let Verb::Run(run) = Cli::try_parse_from(line).unwrap().verb else {
                panic!("not run");
            };
            let wire = run.agent.options.to_wire();
            wire.map(|options| options.output_schema.unwrap())
        };
        let directory = std::env::temp_dir();
        let file = directory.join(format!("acpipe-schema-{}.json", std::process::id()));
        std::fs::write(&file, r#"{"type": "integer"}"#).unwrap();
        let integer = serde_json::json!({"type": "integer"});
        assert_eq!(schema(&file.to_string_lossy()).unwrap(), integer);
        assert_eq!(schema(r#"{"type": "integer"}"#).unwrap(), integer);
        let nested =
            |levels: usize| format!("{}true{}", "{\"items\":".repeat(levels), "}".repeat(levels));
        assert!(schema(&nested(100)).is_ok());
        std::fs::remove_file(file).unwrap();
        for (wrong, why) in [
            ("no-such-file.json", "cannot read no-such-file.json"),
            ("{\"type\"", "not valid JSON"),
            (r#"{"type": "int"}"#, "not a valid JSON schema"),
            (&nested(101), "is nested more than 100 levels deep"),
            (&nested(200), "is nested more than 100 levels deep"),
        ] {
            let error = schema(wrong).unwrap_err();
            assert!(error.is::<crate::cli::UsageError>(), "{error}");
            assert!(error.to_string().contains(why), "{error}");
        }
    }

    #[test]
    fn setting_sources_option_does_not_consume_the_prompt() {
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
