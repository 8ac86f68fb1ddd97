//! `acpipe run` without a prompt at a terminal: a chat, whose prompts go to one session.

mod chat_client;
mod chat_session;
mod editor;
mod input;
mod line;
mod offers;
mod saved_terminal;
mod step;

use super::args::RunArgs;
use super::args::shared::Format;
use super::daemon::DaemonUse;
use super::logs::TerminalLogs;
use super::record::Recording;
use super::run::calls::{PromptOptions, Steps};
use super::run::check_output;
use super::run::questions::TerminalQuestions;
use super::run::recorder::RunRecorder;
use super::run::run_hub::{OwnHubSetup, RunHub};
use super::run::run_session::RunSession;
use super::run::turn_output::TurnOutput;
use super::run::view::RunView;
use super::styles::Styles;
use super::telemetry::Telemetry;
use super::{persists, state_dir};
use acpipe_host::TerminalThread;
use acpipe_model::secret::Secrets;
use chat_client::ChatClient;
use chat_session::{ChatSession, Continuation};
use editor::LineEditor;
use input::ChatInput;
use saved_terminal::SavedTerminal;
use serde_json::Value;
use std::io::IsTerminal as _;
use std::time::Duration;
use tokio::sync::mpsc;

/// File of the entered lines, in the state directory.
const HISTORY: &str = "chat-history";

/// Capacity of the queue of inputs: there is one editor, and one question at a time.
const QUEUE: usize = 16;

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
    let RunSession {
        settings,
        session,
        origin,
    } = found;
    let is_stored = persists(&args.agent.store)? && !args.ephemeral;
    let state = is_stored
        .then(|| state_dir(&args.agent.store.place))
        .transpose()?;
    let names_agent = args.agent.names_agent();
    let context = args.context.into_iter();
    let context = context.map(|(name, value)| (name, Value::from(value)));
    let session = ChatSession {
        id: session,
        cwd: settings.cwd.clone(),
        agent: names_agent.then(|| settings.default_agent.name.clone()),
        options: Box::new(settings.default_agent.spec.options.clone()),
        terms: PromptOptions {
            retry: !args.no_retry,
            max_time: args.max_time.0,
            elapsed: Duration::ZERO,
        },
        steps: Steps::new(&settings.default_agent, origin.cwd.is_some()),
        context: Box::new(context.collect()),
        continuation: match &hub {
            RunHub::Daemon(..) => Continuation::Daemon,
            RunHub::Own(..) if is_stored => Continuation::Stored,
            RunHub::Own(..) => Continuation::Impossible,
        },
        state: state.clone(),
        unique: settings.id_prefix.clone(),
        turns: 0,
        former: 0,
    };
    let history = state.map(|dir| dir.join(HISTORY));
    let (inputs, input) = mpsc::channel(QUEUE);
    let editor = LineEditor::start(history, inputs.clone(), logs)?;
    let questions = TerminalQuestions::new(open_terminal(inputs));
    let output = TurnOutput::new(view, RunRecorder::new(recording.recorder()));
    let is_joining = matches!(hub, RunHub::Daemon(..)) && origin.cwd.is_some();
    let mut client = ChatClient::new(session, is_joining, questions, editor, output);
    let own = OwnHubSetup {
        settings,
        args: &args.agent,
        recorder: recording.recorder(),
        telemetry,
    };
    hub.drive(&mut client, Some(input), own).await?;
    Ok(client.exit_code())
}

/// Opens the terminal for questions. Its lines join the other inputs.
fn open_terminal(inputs: mpsc::Sender<ChatInput>) -> Option<TerminalThread> {
    let (terminal, mut typed) = TerminalThread::open(true)?;
    tokio::spawn(async move {
        while let Some(line) = typed.recv().await {
            if inputs.send(ChatInput::Terminal(line)).await.is_err() {
                return;
            }
        }
    });
    Some(terminal)
}
