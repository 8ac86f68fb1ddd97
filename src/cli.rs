//! Command-line entry point: arguments, configuration, dispatch to the subcommands, exit code.

mod acp;
mod agent_choice;
mod agent_definitions;
mod agents;
mod aligned;
mod args;
mod attach;
mod chat;
mod columns;
mod completions;
pub mod config;
mod connections;
mod daemon;
mod doctor;
mod failure;
mod file_label;
#[cfg(feature = "listen")]
mod http;
mod logs;
mod man;
mod markdown;
mod mcp;
mod pager;
mod permissions;
mod processes;
mod progress;
mod record;
mod remote_hub;
mod replay;
mod rpc;
mod run;
mod save;
mod schema;
mod screen;
mod serve;
mod sessions;
mod styles;
mod telemetry;
mod terminal;
mod trace;

use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::hub::{AgentSpec, OnLost, Settings};
use acpipe_core::profile::Profile;
use acpipe_core::store::Store;
use acpipe_host::{
    DiskSessions, Durability, Launch, MemorySessions, SUPERVISOR, StdoutWriter, StoreEvents,
    check_descriptors, check_state, keep, open_to_others, read_profiles, survive_file_limit,
};
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::builtin_agents;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::{Limits, Timeout};
use acpipe_model::secret::Secrets;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::{AgentSource, Protocol, SessionOptions, Variables};
use agent_choice::StoredAgent;
use anyhow::Context as _;
use args::hints::parse;
use args::read_files::ReadFiles;
use args::shared::PlaceArgs;
use args::{AgentArgs, Cli, Persist, StoreArgs, Verb};
pub use config::policy_of;
use config::{ConfigTexts, LoadArgs};
use failure::{UsageError, exit_code, print_note, report};
use logs::Logs;
pub use man::definition;
pub use schema::{FILES, render};
pub use serve::serve_stdio;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tracing::{info, warn};

/// Runs the program and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let mut args = std::env::args_os();
    if args.next().is_some_and(|name| name == SUPERVISOR) {
        // An internal command, not part of the CLI: acpipe starts itself as a supervisor with it.
        return ExitCode::from(keep(args));
    }
    match completions::complete() {
        Ok(true) => return ExitCode::SUCCESS,
        Ok(false) => {}
        Err(error) => return report(Err(error)),
    }
    let words = match daemon::with_options_of_stdin(std::env::args_os().collect()) {
        Ok(words) => words,
        Err(error) => return report(Err(error)),
    };
    let mut cli = match parse(&words) {
        Ok(cli) => cli,
        Err(shown) => return report(shown),
    };
    if let Verb::Daemon(args) = &mut cli.verb {
        daemon::keep_options(args, &words);
    }
    let quiet = matches!(&cli.verb, Verb::Run(run) if run.quiet);
    report(Logs::begin(&cli.logs, quiet).and_then(|logs| dispatch(cli, &logs)))
}

fn dispatch(cli: Cli, logs: &Logs) -> anyhow::Result<u8> {
    let secrets = &logs.secrets;
    match cli.verb {
        Verb::Run(args) => {
            check_single_agent(&args.agent)?;
            secrets.add_variables(&args.agent.variables());
            if chat::is_wanted(&args) {
                run_task(chat::chat(args, secrets.clone(), logs.on_terminal()))
            } else {
                run_task(run::run(args, secrets.clone()))
            }
        }
        Verb::Serve(args) => {
            check_single_agent(&args.agent)?;
            secrets.add_variables(&args.agent.variables());
            run_task(serve::serve(args, secrets.clone()))
        }
        Verb::Acp(args) => {
            secrets.add_variables(&args.agent.variables());
            run_task(acp::acp(args, secrets.clone()))
        }
        Verb::Daemon(args) => run_task(daemon::daemon(args, secrets.clone())),
        Verb::Attach(args) => run_task(attach::attach(args)),
        Verb::Agents(args) => agents::agents(&args),
        Verb::Sessions(args) => on_runtime(sessions::sessions(args)),
        Verb::Trace(args) => on_runtime(async { trace::trace(&args) }),
        Verb::Permissions(args) => on_runtime(async { permissions::permissions(&args) }),
        Verb::Processes(args) => processes::processes(&args),
        Verb::Doctor(args) => on_runtime(doctor::doctor(args, secrets)),
        Verb::Replay(args) => replay::replay(&args),
        Verb::DemoAgent => {
            on_runtime(async { Ok(crate::demo::run(StdoutWriter).await?) }).map(|()| 0)
        }
        Verb::Schema(args) => schema::print(&args).map(|()| 0),
        Verb::Completions(args) => completions::print(&args).map(|()| 0),
        Verb::Man(args) => man::print(&args).map(|()| 0),
    }
}

/// Returns an error if the command line names several agents.
fn check_single_agent(args: &AgentArgs) -> Result<(), UsageError> {
    match args.agent.as_slice() {
        [] | [_] => Ok(()),
        _ => Err(UsageError(
            "--agent can be given once; only acpipe acp accepts several agents".to_owned(),
        )),
    }
}

/// Runs a task on a single-threaded runtime, which causes the fewest wake-ups.
fn on_runtime<T>(task: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    check_descriptors()?;
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot create the async runtime")?
        .block_on(async {
            survive_file_limit().context("cannot ignore the signal for the file size limit")?;
            task.await
        })
}

/// Runs a task with an event loop on a single-threaded runtime. As a spawned task it is woken without a call of
/// the system, which the runtime makes before it polls the future of `block_on` again.
fn run_task<T: Send + 'static>(
    task: impl Future<Output = anyhow::Result<T>> + Send + 'static,
) -> anyhow::Result<T> {
    on_runtime(async {
        match tokio::spawn(task).await {
            Ok(ended) => ended,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    })
}

/// Directory and agent of the stored session that a run continues.
#[derive(Debug, Default)]
struct ContinuedSession {
    cwd: Option<String>,
    /// Agent of the session; used if the command line names no agent.
    agent: Option<StoredAgent>,
    /// Agent inside this program; used whatever else is named.
    own: Option<AgentDefinition>,
    /// Error if neither the command line nor the environment or the configuration names an agent.
    missing_agent: Option<String>,
    /// Mode of permissions if neither the command line nor the configuration sets one.
    default_mode: Option<Mode>,
}

/// Returns the absolute path of `--cwd`, or the working directory without it.
fn directory(agent: &AgentArgs) -> Result<String, UsageError> {
    let cwd = match &agent.cwd {
        Some(cwd) if cwd.is_absolute() => cwd.clone(),
        Some(cwd) => working_directory()?.join(cwd),
        None => working_directory()?,
    };
    Ok(cwd.to_string_lossy().into_owned())
}

/// Returns the working directory.
///
/// # Errors
/// It was deleted, or a directory above it may not be entered.
fn working_directory() -> Result<PathBuf, UsageError> {
    std::env::current_dir().map_err(|error| {
        UsageError(format!(
            "cannot use the working directory: {error}; change to a directory that exists"
        ))
    })
}

/// Builds the hub's settings from arguments, environment, configuration and stored session.
fn settings(
    agent: &AgentArgs,
    origin: &ContinuedSession,
    secrets: &Secrets,
) -> anyhow::Result<Settings> {
    let cwd = match &origin.cwd {
        Some(cwd) => cwd.clone(),
        None => directory(agent)?,
    };
    let state = state_dir(&agent.store.place).ok();
    let config = load_config(agent, &cwd, origin.default_mode)?;
    // A client of the daemon has settings, too, which must not displace those of acpipe.
    let secrets = secrets.of_client();
    secrets.add_variables(&agent.variables());
    for own in &config.agents {
        secrets.add_variables(&own.env);
        secrets.add_servers(&own.mcp_servers);
        secrets.add_endpoint(&own.backend, &own.env);
    }
    let mut settings = Settings {
        profile: agent.chunk_profile.into(),
        limits: agent.timeouts.limits(),
        mcp_servers: mcp::servers(agent, &secrets)?,
        on_lost: OnLost {
            clear: agent.store.on_new == args::OnNew::Clear,
            reinject: agent.store.reinject.unwrap_or_default(),
        },
        quirks: state.as_deref().map(read_profiles).unwrap_or_default(),
        variables: agent.variables(),
        secrets,
        ..plain_settings(cwd, config.policy.clone())?
    };
    let (agents, notes) = agent_definitions::configured(&config, &settings)?;
    for note in notes {
        if config.foreign_files.contains(&note) {
            warn!("{note}");
        } else {
            // `acpipe agents` shows them; here only the use of such an agent fails.
            info!("{note}");
        }
    }
    let mut default = if let Some(own) = &origin.own {
        own.clone()
    } else {
        let chosen = agent_choice::choose(agent, origin.agent.as_ref(), &config, &settings)?;
        if let Some(note) = &chosen.note {
            // With --quiet, too: the user did not choose it.
            print_note(note);
        }
        chosen.definition
    };
    let spec = &mut default.spec;
    spec.env.0.extend(settings.variables.0.clone());
    spec.child_per_session |= agent.child_per_session;
    spec.options = agent.options.to_wire()?.or(&spec.options);
    if agent.cwd.is_some() {
        spec.cwd.clone_from(&settings.cwd);
    }
    settings.agents = agents;
    settings.agents.retain(|own| own.name != default.name);
    settings.default_agent = default;
    Ok(settings)
}

/// Reads the configuration for a directory. The policies of all agents are made from it.
fn load_config(
    agent: &AgentArgs,
    cwd: &str,
    default_mode: Option<Mode>,
) -> anyhow::Result<config::Config> {
    let state = state_dir(&agent.store.place).ok();
    let mut config = config::load(&LoadArgs {
        mode: agent.permissions.permissions.map(Into::into),
        default_mode,
        ..load_args(agent, cwd, state.as_deref())
    })?;
    let options = &agent.options;
    config
        .policy
        .set_lists(&options.allowed_tools, &options.disallowed_tools);
    Ok(config)
}

/// Reads the files of the options, for another process that serves this command line.
fn read_files(agent: &AgentArgs, cwd: &str) -> anyhow::Result<ReadFiles> {
    let state = state_dir(&agent.store.place).ok();
    let schema = agent.options.to_wire()?.output_schema;
    Ok(ReadFiles {
        config: ConfigTexts::read(&load_args(agent, cwd, state.as_deref()))?,
        mcp_config: mcp::text(agent)?,
        output_schema: schema.map(|schema| schema.to_string()),
    })
}

/// Returns the parameters of reading the configuration for a directory.
fn load_args<'a>(agent: &'a AgentArgs, cwd: &'a str, state: Option<&'a Path>) -> LoadArgs<'a> {
    LoadArgs {
        texts: agent.files.as_ref().map(|files| &files.config),
        config: agent.permissions.config.as_deref(),
        ignores_variable: agent.is_of_client,
        mode: None,
        default_mode: None,
        cwd: Some(Path::new(cwd)),
        state_dir: state,
        is_builtin: &|name| builtin_agents::find(name).is_some(),
    }
}

/// Returns the time in milliseconds since 1970.
fn now_millis() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis())
}

/// Returns a hexadecimal text that no other process of this machine has, for one that started at this time.
fn unique(started: u128) -> String {
    format!("{started:x}{:x}", std::process::id())
}

/// Builds settings with default values for everything but the policy, and the demo agent.
fn plain_settings(cwd: String, policy: Policy) -> anyhow::Result<Settings> {
    let started = now_millis();
    let own_program = own_program()?;
    let demo = AgentSpec {
        command: own_program.clone(),
        args: vec!["demo-agent".to_owned()],
        cwd: cwd.clone(),
        env: Variables::default(),
        source: AgentSource::Demo,
        protocol: Protocol::Acp,
        child_per_session: false,
        options: SessionOptions::default(),
        fallback: None,
        backend: BackendOptions::default(),
    };
    Ok(Settings {
        default_agent: AgentDefinition::unnamed(demo),
        agents: Vec::new(),
        own_program,
        quirks: BTreeMap::new(),
        policy,
        profile: Profile::default(),
        cwd,
        id_prefix: unique(started),
        request_seed: acpipe_host::random_number(),
        clock: (Instant::now(), i64::try_from(started).unwrap_or(i64::MAX)),
        idle_after: None,
        max_sessions: None,
        inherited: inherited(),
        variables: Variables::default(),
        secrets: Secrets::default(),
        limits: Limits::default(),
        mcp_servers: Vec::new(),
        on_lost: OnLost::default(),
    })
}

/// Returns the path of acpipe's program file.
fn own_program() -> anyhow::Result<String> {
    let me = std::env::current_exe().context("cannot find the acpipe program file")?;
    Ok(me.to_string_lossy().into_owned())
}

/// Returns acpipe's own environment variables that are valid UTF-8.
fn inherited() -> Variables {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, Some(value.into_string().ok()?)))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Opens the session store and the channel of its later events.
fn store(args: &StoreArgs) -> anyhow::Result<(Box<dyn Store>, StoreEvents)> {
    store_by(args, DiskSessions::open)
}

/// Like `store`, but an unusable state directory fails each session that needs it instead of the start.
fn store_for_clients(args: &StoreArgs) -> anyhow::Result<(Box<dyn Store>, StoreEvents)> {
    store_by(args, DiskSessions::begin)
}

/// Opens a store for sessions that are kept in memory.
fn store_in_memory(args: &StoreArgs) -> (Box<dyn Store>, StoreEvents) {
    // Without a state directory there are no stored sessions.
    let state = state_dir(&args.place);
    let store = state.map_or_else(
        |_| MemorySessions::default(),
        |state| MemorySessions::beside(&state),
    );
    (Box::new(store), StoreEvents::none())
}

fn store_by(
    args: &StoreArgs,
    open: impl FnOnce(&Path, Durability) -> std::io::Result<(DiskSessions, StoreEvents)>,
) -> anyhow::Result<(Box<dyn Store>, StoreEvents)> {
    if !persists(args)? {
        return Ok(store_in_memory(args));
    }
    let dir = state_dir(&args.place)?;
    let durability = match args.durability {
        args::DurabilityArg::Turn => Durability::Turn,
        args::DurabilityArg::None => Durability::None,
    };
    let (files, events) = open(&dir, durability).map_err(|e| {
        let hint = "choose another directory with --state-dir, or use --persist never";
        let message = format!("cannot store sessions in {}: {e}; {hint}", dir.display());
        Error::new(ErrorKind::Storage, message)
    })?;
    for open in open_to_others(&dir) {
        let open = open.display();
        print_note(&format!(
            "every user of this machine can create files in {open}; run chmod o-w on it"
        ));
    }
    Ok((Box::new(files), events))
}

/// Records this acpipe's launch in the state directory, even if sessions are not stored.
fn launch(args: &StoreArgs, limits: &Limits) -> Arc<Launch> {
    let grace = limits.of(Timeout::Terminate).unwrap_or_default();
    Launch::begin(state_dir(&args.place).ok().as_deref(), grace)
}

/// Returns `true` if sessions are stored on disk.
fn persists(args: &StoreArgs) -> Result<bool, UsageError> {
    let variable = std::env::var("PERSIST_MESSAGES").ok();
    persists_with(args.persist, variable.as_deref())
}

/// Returns `true` if sessions are stored on disk with this option and this value of `PERSIST_MESSAGES`.
fn persists_with(option: Option<Persist>, variable: Option<&str>) -> Result<bool, UsageError> {
    match (option, variable) {
        (Some(persist), _) => Ok(persist == Persist::Always),
        (None, None | Some("" | "true")) => Ok(true),
        (None, Some("false")) => Ok(false),
        (None, Some(other)) => Err(UsageError(format!(
            "PERSIST_MESSAGES must be true or false, not {other:?}"
        ))),
    }
}

/// Returns the absolute path of the state directory.
///
/// # Errors
/// The directory or an entry of it belongs to another user, who could choose what acpipe trusts and where it writes.
fn state_dir(place: &PlaceArgs) -> anyhow::Result<PathBuf> {
    let dir = match &place.state_dir {
        Some(dir) => std::path::absolute(dir).context("cannot read the working directory")?,
        None => acpipe_host::state_dir()?,
    };
    check_state(&dir).map_err(|error| {
        let dir = dir.display();
        let message = format!(
            "cannot use the state directory {dir}: {error}; change its owner, or choose another directory with --state-dir"
        );
        Error::new(ErrorKind::Storage, message)
    })?;
    Ok(dir)
}
