//! The line editor of a chat, on its own thread. It has the terminal only while it reads a line.

use super::input::{EditorEvent, TerminalInput};
use super::line::completions;
use super::offers::Offers;
use crate::cli::logs::TerminalLogs;
use acpipe_host::{make_private, open_state_file};
use anyhow::Context as _;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Config, Editor, Event, EventContext, EventHandler, Helper,
    KeyCode, KeyEvent, Modifiers, Movement, RepeatCount,
};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tracing::debug;

const PROMPT: &str = "> ";

/// Character before Enter that begins another line.
const CONTINUATION: char = '\\';

/// Maximum number of entries in the history.
const HISTORY: usize = 1000;

/// Maximum size of an entry in the history, in bytes.
const HISTORY_ENTRY: usize = 16 << 10;

/// Sequence that removes the prompt from the line of the cursor.
const LINE_START: &[u8] = b"\r\x1b[K";

/// Handle of the editor's thread.
pub struct LineEditor {
    orders: SyncSender<()>,
    /// Text that waits for the end of the input.
    pending: Vec<u8>,
    shared: Arc<EditorState>,
    is_reading: bool,
}

impl LineEditor {
    /// Starts the thread. With `history`, entered lines are stored in this file. `logs` wait while a line is read.
    ///
    /// # Errors
    /// The terminal cannot be used, or a thread cannot be started.
    pub fn start(
        history: Option<PathBuf>,
        events: mpsc::Sender<TerminalInput>,
        logs: TerminalLogs,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(EditorState::default());
        let mut editor = editor(&shared).context("cannot use the terminal")?;
        let history = history.and_then(|file| {
            let opened = open_history(&file, &mut editor);
            opened
                .inspect_err(|error| debug!(%error, "the history of the chat cannot be used"))
                .ok()
        });
        let (orders, ordered) = sync_channel(1);
        let ended = Ended(events);
        std::thread::Builder::new()
            .name("editor".into())
            .spawn(move || serve(editor, history.as_ref(), &logs, &ordered, &ended))?;
        Ok(Self {
            orders,
            pending: Vec::new(),
            shared,
            is_reading: false,
        })
    }

    /// Returns `true` while the editor has the terminal.
    pub fn is_reading(&self) -> bool {
        self.is_reading
    }

    /// Reads the next input.
    pub fn read(&mut self) {
        // A thread that has ended has sent `Failed`.
        self.shared.is_typed.store(false, Ordering::Relaxed);
        self.is_reading = self.orders.try_send(()).is_ok();
    }

    /// Must be called for each event.
    pub fn note_event(&mut self) {
        self.is_reading = false;
    }

    /// Leaves the prompt without waiting for the end of the input: acpipe ends.
    pub fn give_up(&mut self) {
        if self.is_reading {
            self.is_reading = false;
            self.pending.insert(0, b'\n');
        }
    }

    /// Sets what Tab completes.
    pub fn set_offers(&self, offers: Offers) {
        *self.shared.offers() = offers;
    }

    /// Appends a text to `buffer`. While the user types, it waits for the end of the input: the editor would not draw the
    /// input again.
    pub fn show(&mut self, text: &mut Vec<u8>, buffer: &mut Vec<u8>) {
        self.pending.append(text);
        if !self.is_reading {
            buffer.append(&mut self.pending);
        } else if self.pending.ends_with(b"\n") && !self.shared.is_typed.load(Ordering::Relaxed) {
            buffer.extend_from_slice(LINE_START);
            buffer.append(&mut self.pending);
            buffer.extend_from_slice(PROMPT.as_bytes());
        }
    }
}

/// State that the editor's thread and its handle share.
#[derive(Default)]
struct EditorState {
    offers: Mutex<Offers>,
    /// `true` if the user has entered text.
    is_typed: AtomicBool,
    /// `true` if the next completion is caused by [`Enter`].
    continues: AtomicBool,
}

impl EditorState {
    fn offers(&self) -> MutexGuard<'_, Offers> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type ChatEditor = Editor<ChatHelper, DefaultHistory>;

fn editor(shared: &Arc<EditorState>) -> rustyline::Result<ChatEditor> {
    let config = Config::builder()
        .max_history_size(HISTORY)?
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .build();
    let mut editor = ChatEditor::with_config(config)?;
    editor.set_helper(Some(ChatHelper {
        shared: Arc::clone(shared),
        files: FilenameCompleter::new(),
    }));
    let enter = || EventHandler::Conditional(Box::new(Enter(Arc::clone(shared))));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::NONE), enter());
    editor.bind_sequence(KeyEvent::ctrl('j'), enter());
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    let interrupt = EventHandler::Conditional(Box::new(CtrlC));
    editor.bind_sequence(KeyEvent::ctrl('c'), interrupt);
    Ok(editor)
}

/// Opens the file of the history, which only the user can read, and loads it.
fn open_history(file: &Path, editor: &mut ChatEditor) -> anyhow::Result<HistoryFile> {
    if let Some(dir) = file.parent() {
        make_private(dir)?;
    }
    let mut options = File::options();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let history = HistoryFile(open_state_file(options, file)?);
    editor.load_history(&history.path())?;
    Ok(history)
}

/// Open file of the history. The editor gets the path of the descriptor, since another user could exchange the file.
struct HistoryFile(File);

impl HistoryFile {
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/dev/fd/{}", self.0.as_raw_fd()))
    }
}

/// Sender of events that reports the end of the thread, also by a panic.
struct Ended(mpsc::Sender<TerminalInput>);

impl Ended {
    fn send(&self, event: EditorEvent) {
        // Sending fails only if the loop has ended.
        let _ = self.0.blocking_send(TerminalInput::Editor(event));
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.send(EditorEvent::Failed("the line editor ended".to_owned()));
    }
}

/// Reads a line for each order, until the handle is dropped.
fn serve(
    mut editor: ChatEditor,
    history: Option<&HistoryFile>,
    logs: &TerminalLogs,
    orders: &Receiver<()>,
    events: &Ended,
) {
    while let Ok(()) = orders.recv() {
        let event = match logs.without(|| editor.readline(PROMPT)) {
            Ok(line) => {
                remember(&mut editor, history, &line);
                EditorEvent::Line(line)
            }
            Err(ReadlineError::Interrupted | ReadlineError::Signal(_)) => EditorEvent::Interrupted,
            Err(ReadlineError::Eof) => EditorEvent::Ended,
            Err(error) => EditorEvent::Failed(format!("cannot read the terminal: {error}")),
        };
        events.send(event);
    }
}

fn remember(editor: &mut ChatEditor, history: Option<&HistoryFile>, line: &str) {
    if line.trim().is_empty() || line.len() > HISTORY_ENTRY {
        return;
    }
    let is_new = editor.add_history_entry(line).unwrap_or_default();
    if let (true, Some(file)) = (is_new, history)
        && let Err(error) = editor.append_history(&file.path())
    {
        debug!(%error, "a line of the chat is not stored in its history");
    }
}

/// Enter ends the input, unless `\` is before the cursor: that becomes a new line, as its completion. Of the editor's
/// commands, only a completion replaces text and leaves the cursor behind it.
struct Enter(Arc<EditorState>);

impl ConditionalEventHandler for Enter {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext) -> Option<Cmd> {
        let continues = cx.line()[..cx.pos()].ends_with(CONTINUATION);
        self.0.continues.store(continues, Ordering::Relaxed);
        continues.then_some(Cmd::Complete)
    }
}

/// Ctrl-C clears the input; if it is empty, ends it.
struct CtrlC;

impl ConditionalEventHandler for CtrlC {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, cx: &EventContext) -> Option<Cmd> {
        Some(if cx.line().is_empty() {
            Cmd::Interrupt
        } else {
            Cmd::Kill(Movement::WholeBuffer)
        })
    }
}

/// Completion of commands, their arguments and file names.
struct ChatHelper {
    shared: Arc<EditorState>,
    files: FilenameCompleter,
}

impl Completer for ChatHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if self.shared.continues.swap(false, Ordering::Relaxed) {
            let newline = Pair {
                display: String::new(),
                replacement: "\n".to_owned(),
            };
            return Ok((pos - CONTINUATION.len_utf8(), vec![newline]));
        }
        if line.starts_with("/attach ") {
            return self.files.complete_path(line, pos);
        }
        let (start, names) = completions(&line[..pos], &self.shared.offers());
        let pairs = names.into_iter().map(|name| Pair {
            display: name.clone(),
            replacement: name,
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for ChatHelper {
    type Hint = String;

    /// Called after each change of the input.
    fn hint(&self, line: &str, _: usize, _: &rustyline::Context<'_>) -> Option<String> {
        self.shared
            .is_typed
            .store(!line.is_empty(), Ordering::Relaxed);
        None
    }
}

impl Highlighter for ChatHelper {}

impl Validator for ChatHelper {}

impl Helper for ChatHelper {}
