//! `acpipe run` without a prompt at a terminal: a chat, whose prompts go to one session.

use super::args::RunArgs;
use super::args::shared::Format;
use super::daemon::DaemonUse;
use super::logs::TerminalLogs;
use super::record::Recording;
use super::run::prompt::RunPrompt;
use super::run::recorder::RunRecorder;
use super::run::run_hub::{OwnHubSetup, RunHub};
use super::run::view::RunView;
use super::run::{check_output, terminal_session};
use super::styles::Styles;
use super::telemetry::Telemetry;
use super::terminal::calls::PromptOptions;
use super::terminal::editor::LineEditor;
use super::terminal::saved_terminal::SavedTerminal;
use super::terminal::task::TerminalTask;
use super::terminal::terminal_client::TerminalClient;
use super::terminal::turn_output::TurnOutput;
use super::terminal::{QUEUE, open_questions};
use acpipe_model::secret::Secrets;
use std::io::IsTerminal as _;
use tokio::sync::mpsc;

/// File of the entered lines, in the state directory.
const HISTORY: &str = "chat-history";

/// Returns `true` if a run is a chat: it has no prompt, and a user at a terminal.
pub fn is_wanted(args: &RunArgs) -> bool {
    let has_prompt = !args.prompt.is_empty()
        || args.prompt_text.is_some()
        || !args.file.is_empty()
        || !args.attach.is_empty();
    !has_prompt
        && args.output == Format::Text
        && std::io::stdin().is_terminal()
        && Styles::stdout().is_terminal
}

/// Runs a chat until the user leaves. Returns the exit code.
pub async fn chat(args: RunArgs, secrets: Secrets, logs: TerminalLogs) -> anyhow::Result<u8> {
    check_output(&args)?;
    let _saved = SavedTerminal::begin();
    let daemon = DaemonUse::of(args.daemon, &args.agent)?;
    if daemon.is_some() {
        DaemonUse::check_run(&args)?;
    }
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let telemetry = Telemetry::start(&args.agent, &secrets)?;
    let mut view = RunView::new(args.output, args.quiet, args.raw);
    view.save_files(args.save_files.as_deref())?;
    let (found, mut hub) = RunHub::open(&args, daemon.as_ref(), &secrets, &mut view).await?;
    if let Some(daemon) = &daemon {
        hub = hub.reconnecting(daemon.reconnect(&args.agent, &found.origin)?);
    }
    let terms = PromptOptions {
        retry: !args.no_retry,
        max_time: args.max_time.0,
        run: None,
    };
    let session = terminal_session(&args, &found, &hub, terms)?;
    let history = session.state.as_ref().map(|dir| dir.join(HISTORY));
    let (inputs, input) = mpsc::channel(QUEUE);
    let editor = LineEditor::start(history, inputs.clone(), logs)?;
    let mut client = TerminalClient::new(
        TerminalTask::Chat,
        session,
        RunPrompt::of_text(String::new()),
        open_questions(true, inputs),
        Some(editor),
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
