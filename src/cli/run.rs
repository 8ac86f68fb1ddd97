//! `acpipe run`: one turn with the prompt from the command line and the answer on stdout.

mod agui_lines;
mod answer;
pub mod calls;
pub mod outcome;
pub mod prompt;
pub mod questions;
pub mod recorder;
mod refusals;
mod run_client;
pub mod run_session;
mod streams;
pub mod turn_output;
pub mod view;

use super::args::RunArgs;
use super::args::shared::{ChunkProfile, Format};
use super::daemon::{DaemonConnection, DaemonUse, live_sessions};
use super::logs::Secrets;
use super::record::Recording;
use super::remote_hub::DaemonHub;
use super::telemetry::Telemetry;
use super::{UsageError, state_dir};
use crate::core::error::{Error, ErrorKind};
use crate::core::hub::Hub;
use crate::core::session::unstarted_summary;
use crate::core::store::Store;
use crate::shell::{Events, InProcessAgents, LoopOwner, LoopSetup, Terminal, drive, drive_remote};
use calls::{PromptTerms, Steps};
use prompt::Prompt;
use questions::TerminalQuestions;
use recorder::RunRecorder;
use run_client::RunClient;
use run_session::RunSession;
use serde_json::Value;
use std::io::Write as _;
use std::time::Duration;
use turn_output::TurnOutput;
use view::View;

/// Hub of a run.
pub enum RunHub {
    /// A hub in this process, with its store.
    Own(Box<dyn Store>, Events),
    /// The hub of the daemon.
    Daemon(DaemonConnection),
}

pub async fn run(args: RunArgs, secrets: Secrets) -> anyhow::Result<u8> {
    if args.output == Format::Agui && args.agent.chunk_profile != ChunkProfile::V7 {
        let why = "-o agui prints no chunks; leave out --chunk-profile";
        return Err(UsageError(why.to_owned()).into());
    }
    let daemon = DaemonUse::of(args.daemon, &args.agent)?;
    if daemon.is_some() {
        DaemonUse::check_run(&args)?;
    }
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let telemetry = Telemetry::start(&args.agent)?;
    let mut prompt = Prompt::read(&args)?;
    let mut view = View::new(args.output, args.quiet, args.raw);
    for note in prompt.notes.drain(..) {
        view.note(&note);
    }
    let (found, hub) = match prepare(&args, daemon, &secrets, &mut view).await {
        Ok(prepared) => prepared,
        Err(error) => return report_unstarted(&args, error, &mut view),
    };
    let RunSession {
        settings,
        session,
        origin,
    } = found;
    let turn = format!("turn-{}", settings.id_prefix);
    let terms = PromptTerms {
        retry: !args.no_retry,
        max_time: args.max_time.0,
    };
    let options = &settings.default_agent.spec.options;
    let may_ask = settings.policy.may_ask(options);
    let (terminal, typed) = Terminal::open(may_ask).unzip();
    let questions = TerminalQuestions::new(terminal);
    let output = TurnOutput::new(view, RunRecorder::new(recording.recorder()));
    let mut client = RunClient::new(prompt, session, turn, terms, questions, output);
    // Options of the command line override those of a stored session.
    *client.options = settings.default_agent.spec.options.clone();
    let context = args.context.into_iter();
    let context = context.map(|(name, value)| (name, Value::from(value)));
    *client.context = context.collect();
    client.cwd.clone_from(&settings.cwd);
    let names_agent = args.agent.names_agent();
    client.steps = Steps::new(&settings.default_agent, origin.cwd.is_some());
    client.agent = names_agent.then(|| settings.default_agent.name.clone());
    let (store, stored) = match hub {
        RunHub::Daemon(connection) => {
            client.is_joining = origin.cwd.is_some();
            let mut hub = DaemonHub::new("acpipe run");
            drive_remote(connection.stream, &mut hub, &mut client, typed).await?;
            return Ok(client.exit_code());
        }
        RunHub::Own(store, stored) => (store, stored),
    };
    let launch = super::launch(&args.agent.store, &settings.limits);
    let hub = Hub::new(settings, store)
        .serving(args.agent.serving.offer())
        .reporting(telemetry.is_on());
    let setup = LoopSetup {
        input: typed,
        stored,
        max_line: args.agent.max_line,
        login: args.agent.login(),
        launch,
        in_process: InProcessAgents::new(),
        recorder: recording.recorder(),
        reports: telemetry.sink(),
        owner: LoopOwner::Program,
    };
    drive(hub, &mut client, setup).await?;
    Ok(client.exit_code())
}

/// Finds session and agent, and opens the store or the connection to the daemon.
pub async fn prepare(
    args: &RunArgs,
    daemon: Option<DaemonUse>,
    secrets: &Secrets,
    view: &mut View,
) -> anyhow::Result<(RunSession, RunHub)> {
    let found = run_session::find(args, secrets, view)?;
    let hub = match daemon {
        None => {
            refuse_open_session(args, &found.session).await?;
            let (store, stored) = run_session::store(args, &found.session, view)?;
            RunHub::Own(store, stored)
        }
        Some(daemon) => RunHub::Daemon(daemon.connect(&args.agent, found.origin.clone()).await?),
    };
    Ok((found, hub))
}

/// Returns an error if the session is open in the daemon, which would only refuse it as locked.
async fn refuse_open_session(args: &RunArgs, session: &str) -> anyhow::Result<()> {
    if args.session.is_none() && !args.r#continue {
        return Ok(());
    }
    let state = state_dir(&args.agent.store.place)?;
    if live_sessions(&state).await.contains_key(session) {
        let message = format!(
            "session {session:?} is open in the daemon; use --daemon, or `acpipe attach {session}`"
        );
        return Err(Error::new(ErrorKind::SessionLocked, message).into());
    }
    Ok(())
}

/// Reports an error before the turn in the output format that was requested, too. Returns the exit code.
fn report_unstarted(args: &RunArgs, error: anyhow::Error, view: &mut View) -> anyhow::Result<u8> {
    let error = error.downcast::<Error>()?;
    let session = args.session.as_deref().unwrap_or_default();
    view.error(
        &error,
        &unstarted_summary(session, "", &error, Duration::ZERO),
    );
    view.done();
    let mut out = Vec::new();
    view.take_output(&mut out);
    std::io::stdout().write_all(&out)?;
    Ok(error.kind.exit_code())
}
