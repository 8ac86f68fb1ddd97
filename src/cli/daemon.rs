//! `acpipe daemon`: a resident acpipe, which keeps sessions and their agents while windows come and go.
//!
//! The daemon has one loop for all clients (`cli/connections`). Commands with `--daemon` are clients on its Unix
//! socket: they pass messages on, and outlive a daemon (`relay`).

mod command_line;
mod connect;
mod control;
mod dropped_options;
mod hello;
mod lasting_files;
mod live_sessions;
mod logs;
mod relay;
mod remote_settings;
mod restart;
mod serve;
mod socket_clients;
pub(in crate::cli) mod start;
mod start_options;
mod status;

use super::args::daemon::{DaemonVerb, ResidentArgs, StartArgs};
use super::args::shared::PlaceArgs;
use super::args::{AgentArgs, AttachArgs, DaemonArgs, LimitArgs, RunArgs};
use super::remote_hub::Reconnect;
use super::{UsageError, check_single_agent, print_note, state_dir};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use command_line::ClientCommand;
pub use connect::{DaemonConnection, Refused, connect_control};
use connect::{connect_client, connect_running};
use control::Control;
pub use hello::SessionOrigin;
use lasting_files::check_files;
pub use live_sessions::live_sessions;
pub use relay::RelayFace;
#[cfg(feature = "listen")]
pub use serve::serve_http;
use start_options::StartVariables;
pub use start_options::with_options_of_stdin;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runs the subcommand and returns the exit code.
pub async fn daemon(args: DaemonArgs, secrets: Secrets) -> anyhow::Result<u8> {
    match args.verb {
        DaemonVerb::Run(args) => return Box::pin(serve::serve_daemon(args, secrets)).await,
        DaemonVerb::Start(args) => start_daemon(&args).await?,
        DaemonVerb::Restart(args) => restart::restart(&args, &secrets).await?,
        DaemonVerb::Stop(place) => {
            let state = state_dir(&place)?;
            if !stop(&state).await? {
                print_note("no daemon is running");
            }
        }
        DaemonVerb::Status(args) => return status::status(&args).await,
        DaemonVerb::Logs(args) => return logs::logs(&args).await,
    }
    Ok(0)
}

/// Keeps the options of `acpipe daemon run`, which a restart gives to the next daemon.
pub fn keep_options(args: &mut DaemonArgs, words: &[OsString]) {
    if let DaemonVerb::Run(run) = &mut args.verb {
        let words = words.iter().skip(1);
        let words: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        run.options = command_line::options_after("run", &words);
    }
}

/// Checks that a process with many clients has no option that only a single one can use.
fn check_resident(args: &ResidentArgs) -> Result<(), UsageError> {
    if args.agent.record.record.is_some() {
        let why = "--record cannot be used here, because a tape has one client; give it to `acpipe run`, `serve` or `acp`";
        return Err(UsageError(why.to_owned()));
    }
    check_single_agent(&args.agent)
}

async fn start_daemon(args: &StartArgs) -> anyhow::Result<()> {
    check_resident(&args.resident)?;
    let variables = StartVariables::own();
    check_files(&args.resident, &variables)?;
    let state = state_of(&args.resident)?;
    let begun = start::begin_start(&state).await?;
    if let Some(connection) = connect_control(&state).await? {
        let pid = connection.info.pid;
        let message = format!(
            "the daemon is already running (process {pid}); use `acpipe daemon restart` to change its options"
        );
        return Err(Error::new(ErrorKind::Busy, message).into());
    }
    let options = given_options("start");
    start::start(&begun, &state, &current_directory()?, &options, &variables)?;
    note_start(&state).await
}

/// Stops the daemon. Returns `false` if none is running.
async fn stop(state: &Path) -> anyhow::Result<bool> {
    match connect_control(state).await? {
        Some(connection) => {
            let pid = connection.info.pid;
            Control::begin(connection).await?.stop().await?;
            print_note(&format!("the daemon has stopped (process {pid})"));
            Ok(true)
        }
        None => Ok(false),
    }
}

async fn note_start(state: &Path) -> anyhow::Result<()> {
    let Some(connection) = connect_control(state).await? else {
        let message = "the daemon exited after its start; `acpipe daemon logs` shows why";
        return Err(Error::new(ErrorKind::Internal, message).into());
    };
    let info = connection.info;
    print_note(&format!("the daemon is running (process {})", info.pid));
    serve::note_page(&info);
    Ok(())
}

fn state_of(resident: &ResidentArgs) -> anyhow::Result<PathBuf> {
    state_dir(&resident.agent.store.place)
}

/// Returns the options of this command after `daemon VERB`.
fn given_options(verb: &str) -> Vec<String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    command_line::options_after(verb, &words)
}

fn current_directory() -> anyhow::Result<PathBuf> {
    Ok(super::working_directory()?)
}

/// Serves `acpipe serve` or `acpipe acp` as a client of the daemon, if the command line or the configuration asks for
/// that. Returns `None` if it does not, and the exit code otherwise.
///
/// # Errors
/// The options cannot be used with the daemon, or the daemon cannot be used.
pub async fn serve_by_daemon(
    attach: AttachArgs,
    agent: &AgentArgs,
    limits: &LimitArgs,
    face: RelayFace,
) -> anyhow::Result<Option<u8>> {
    let Some(daemon) = DaemonUse::of(attach, agent)? else {
        return Ok(None);
    };
    command_line::check(agent, limits)?;
    let command = ClientCommand::own(agent, &daemon.cwd)?;
    let state = state_dir(&agent.store.place)?;
    relay::relay(&state, command, face).await.map(Some)
}

/// Connects `acpipe attach` with the settings of a directory. Returns `None` if no daemon runs.
///
/// # Errors
/// The configuration is not valid, or the daemon refuses the client.
pub async fn connect_follower(
    place: &PlaceArgs,
    cwd: &str,
) -> anyhow::Result<Option<DaemonConnection>> {
    let command = || ClientCommand::without_options(place, cwd);
    connect_running(&state_dir(place)?, cwd, command).await
}

/// Decision that a command uses the daemon.
pub struct DaemonUse {
    /// Directory of the command.
    cwd: String,
}

impl DaemonUse {
    /// Decides by the command line and the user's configuration. `None` if the command does not use the daemon.
    ///
    /// # Errors
    /// The configuration is not valid.
    pub fn of(attach: AttachArgs, agent: &AgentArgs) -> anyhow::Result<Option<Self>> {
        if attach.no_daemon {
            return Ok(None);
        }
        let cwd = super::directory(agent)?;
        let config = super::load_config(agent, &cwd, None)?;
        let is_used = attach.daemon || config.attach;
        Ok(is_used.then_some(Self { cwd }))
    }

    /// Checks that a run has no option that cannot be used with the daemon.
    ///
    /// # Errors
    /// It has one.
    pub fn check_run(args: &RunArgs) -> Result<(), UsageError> {
        if args.ephemeral {
            let message = "--ephemeral cannot be used with the daemon, because it stores its sessions; use --no-daemon";
            return Err(UsageError(message.to_owned()));
        }
        command_line::check_agent(&args.agent)
    }

    /// Connects a run, and starts the daemon if it does not run.
    ///
    /// # Errors
    /// The daemon cannot be started, or refuses the client.
    pub async fn connect(
        &self,
        agent: &AgentArgs,
        session: SessionOrigin,
    ) -> anyhow::Result<DaemonConnection> {
        // As in `acpipe run` without the daemon, a session has the project's file of its own directory.
        let cwd = session.cwd.as_ref().unwrap_or(&self.cwd);
        let command = ClientCommand::own(agent, cwd)?;
        let state = state_dir(&agent.store.place)?;
        connect_client(&state, command, session).await
    }

    /// Returns how a chat connects again.
    ///
    /// # Errors
    /// The command line or the state directory cannot be used.
    pub fn reconnect(
        &self,
        agent: &AgentArgs,
        session: &SessionOrigin,
    ) -> anyhow::Result<Reconnect> {
        let cwd = session.cwd.as_ref().unwrap_or(&self.cwd);
        let command = ClientCommand::own(agent, cwd)?;
        let state = state_dir(&agent.store.place)?;
        let session = session.clone();
        Ok(Box::new(move || {
            let (state, command, session) = (state.clone(), command.clone(), session.clone());
            Box::pin(async move {
                let connection = connect_client(&state, command, session).await;
                let other = |error| Error::new(ErrorKind::Internal, format!("{error:#}"));
                let typed = |error: anyhow::Error| error.downcast::<Error>().unwrap_or_else(other);
                connection
                    .map(|connection| connection.stream)
                    .map_err(typed)
            })
        }))
    }
}
