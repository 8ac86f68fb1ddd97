//! `acpipe run`: one turn with the prompt from the command line and the answer on stdout.

mod agui_lines;
mod answer;
mod notices;
mod plans;
pub mod prompt;
pub mod questions;
pub mod receipt_notes;
pub mod recorder;
mod refusals;
pub mod run_hub;
pub mod run_session;
pub mod saved_files;
mod streams;
mod unstored;
pub mod view;

use super::UsageError;
use super::args::RunArgs;
use super::args::shared::{ChunkProfileArg, Format};
use super::daemon::DaemonUse;
use super::record::Recording;
use super::screen::{ScreenContent, to_stdout};
use super::telemetry::Telemetry;
use super::terminal::calls::{PromptOptions, Steps};
use super::terminal::run_limit::RunLimit;
use super::terminal::task::TerminalTask;
use super::terminal::terminal_client::TerminalClient;
use super::terminal::terminal_session::{Continuation, TerminalSession};
use super::terminal::turn_output::TurnOutput;
use super::terminal::{QUEUE, open_questions};
use super::{persists, state_dir};
use acpipe_core::session::unstarted_summary;
use acpipe_model::error::Error;
use acpipe_model::secret::Secrets;
use clap::ValueEnum as _;
use prompt::RunPrompt;
use recorder::RunRecorder;
use run_hub::{OwnHubSetup, RunHub};
use run_session::RunSession;
use serde_json::Value;
use tokio::sync::mpsc;
use view::RunView;

pub async fn run(args: RunArgs, secrets: Secrets) -> anyhow::Result<u8> {
    check_output(&args)?;
    let limit = RunLimit::begin(args.max_time.0);
    let daemon = DaemonUse::of(args.daemon, &args.agent)?;
    if daemon.is_some() {
        DaemonUse::check_run(&args)?;
    }
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let telemetry = Telemetry::start(&args.agent, &secrets)?;
    let mut view = RunView::new(args.output, args.quiet, args.raw);
    let mut prompt = match RunPrompt::read(&args, limit) {
        Ok(prompt) => prompt,
        Err(error) => return report_unstarted(&args, error, limit, &mut view),
    };
    if let Err(error) = view.save_files(args.save_files.as_deref()) {
        return report_unstarted(&args, error.into(), limit, &mut view);
    }
    for note in prompt.notes.drain(..) {
        view.note(&note);
    }
    let opened = RunHub::open(&args, daemon.as_ref(), &secrets, &mut view);
    let opening = "waiting for the daemon; see `acpipe daemon logs`";
    let (found, hub) = match limit.wait_for(opened, "daemon", opening).await {
        Ok(prepared) => prepared,
        Err(error) => return report_unstarted(&args, error, limit, &mut view),
    };
    let terms = PromptOptions {
        retry: !args.no_retry,
        max_time: args.max_time.0,
        run: Some(limit),
    };
    let session = terminal_session(&args, &found, &hub, terms)?;
    let may_ask = found.settings.policy.may_ask(&session.options);
    let (inputs, input) = mpsc::channel(QUEUE);
    let mut client = TerminalClient::new(
        TerminalTask::Turn,
        session,
        prompt,
        open_questions(may_ask, inputs),
        None,
        TurnOutput::new(view, RunRecorder::new(recording.recorder())),
    );
    let own = OwnHubSetup {
        settings: found.settings,
        args: &args.agent,
        recorder: recording.recorder(),
        telemetry,
    };
    hub.drive(&mut client, input, own).await?;
    Ok(client.exit_code())
}

/// Returns the session of a run or a chat, for its client.
///
/// # Errors
/// The state directory cannot be used.
pub fn terminal_session(
    args: &RunArgs,
    found: &RunSession,
    hub: &RunHub,
    terms: PromptOptions,
) -> anyhow::Result<TerminalSession> {
    let settings = &found.settings;
    let agent = &settings.default_agent;
    let is_stored = persists(&args.agent.store)? && !args.ephemeral;
    let is_restored = found.origin.cwd.is_some();
    let is_shared = matches!(hub, RunHub::Daemon(..));
    let context = args.context.iter();
    let context = context.map(|(name, value)| (name.clone(), Value::from(value.clone())));
    let continuation = match is_shared {
        true => Continuation::Daemon,
        false if is_stored => Continuation::Stored,
        false => Continuation::Impossible,
    };
    Ok(TerminalSession {
        id: found.session.clone(),
        cwd: Some(settings.cwd.clone()),
        is_joining: is_shared && is_restored,
        agent: args.agent.names_agent().then(|| agent.name.clone()),
        // Options of the command line override those of a stored session.
        options: Box::new(agent.spec.options.clone()),
        terms,
        steps: Steps::new(agent, is_restored),
        context: Box::new(context.collect()),
        state: is_stored
            .then(|| state_dir(&args.agent.store.place))
            .transpose()?,
        ..TerminalSession::new(settings.id_prefix.clone(), continuation)
    })
}

/// Refuses options that have no effect with the output format.
pub fn check_output(args: &RunArgs) -> Result<(), UsageError> {
    let has_chunks = matches!(args.output, Format::Chunks | Format::Sse);
    if !has_chunks && args.agent.chunk_profile != ChunkProfileArg::V7 {
        let format = name_of(args.output);
        let why = format!(
            "-o {format} prints no chunks; leave out --chunk-profile, or use -o chunks or -o sse"
        );
        return Err(UsageError(why));
    }
    if args.raw && args.output != Format::Text {
        let format = name_of(args.output);
        let why = format!("-o {format} prints the text as it is; leave out --raw");
        return Err(UsageError(why));
    }
    Ok(())
}

fn name_of(format: Format) -> String {
    let value = format.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Reports an error before the turn in the output format that was requested, too. Returns the exit code.
fn report_unstarted(
    args: &RunArgs,
    error: anyhow::Error,
    limit: RunLimit,
    view: &mut RunView,
) -> anyhow::Result<u8> {
    let error = error.downcast::<Error>()?;
    let session = args.session.as_deref().unwrap_or_default();
    view.error(
        &error,
        &unstarted_summary(session, "", &error, limit.elapsed()),
    );
    view.done();
    let mut out = Vec::new();
    view.take_output(&mut out);
    to_stdout(ScreenContent::Styled, |stdout| Ok(stdout.write_all(&out)?))?;
    Ok(error.kind.exit_code())
}
