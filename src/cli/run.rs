//! `acpipe run`: one turn with the prompt from the command line and the answer on stdout.

mod agui_lines;
mod answer;
pub mod calls;
mod notices;
pub mod outcome;
mod plans;
pub mod prompt;
pub mod questions;
pub mod receipt_notes;
pub mod recorder;
mod refusals;
mod run_client;
pub mod run_hub;
mod run_limit;
pub mod run_session;
pub mod saved_files;
mod streams;
pub mod turn_output;
mod unstored;
pub mod view;

use super::UsageError;
use super::args::RunArgs;
use super::args::shared::{ChunkProfileArg, Format};
use super::daemon::DaemonUse;
use super::record::Recording;
use super::screen::{ScreenContent, to_stdout};
use super::telemetry::Telemetry;
use acpipe_core::session::unstarted_summary;
use acpipe_host::TerminalThread;
use acpipe_model::error::Error;
use acpipe_model::secret::Secrets;
use calls::{PromptOptions, Steps};
use clap::ValueEnum as _;
use prompt::RunPrompt;
use questions::TerminalQuestions;
use recorder::RunRecorder;
use run_client::RunClient;
use run_hub::{OwnHubSetup, RunHub};
use run_limit::RunLimit;
use run_session::RunSession;
use serde_json::Value;
use std::time::Duration;
use turn_output::TurnOutput;
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
    let RunSession {
        settings,
        session,
        origin,
    } = found;
    let turn = format!("turn-{}", settings.id_prefix);
    let terms = PromptOptions {
        retry: !args.no_retry,
        max_time: args.max_time.0,
        elapsed: Duration::ZERO,
    };
    let options = &settings.default_agent.spec.options;
    let may_ask = settings.policy.may_ask(options);
    let (terminal, typed) = TerminalThread::open(may_ask).unzip();
    let questions = TerminalQuestions::new(terminal);
    let output = TurnOutput::new(view, RunRecorder::new(recording.recorder()));
    let mut client = RunClient::new(prompt, session, turn, (terms, limit), questions, output);
    // Options of the command line override those of a stored session.
    *client.options = settings.default_agent.spec.options.clone();
    let context = args.context.into_iter();
    let context = context.map(|(name, value)| (name, Value::from(value)));
    *client.context = context.collect();
    client.cwd.clone_from(&settings.cwd);
    let names_agent = args.agent.names_agent();
    client.steps = Steps::new(&settings.default_agent, origin.cwd.is_some());
    client.agent = names_agent.then(|| settings.default_agent.name.clone());
    client.is_joining = matches!(hub, RunHub::Daemon(..)) && origin.cwd.is_some();
    let own = OwnHubSetup {
        settings,
        args: &args.agent,
        recorder: recording.recorder(),
        telemetry,
    };
    hub.drive(&mut client, typed, own).await?;
    Ok(client.exit_code())
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
