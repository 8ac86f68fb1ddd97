//! Output of a run: the answer on stdout in the chosen format, everything else on stderr.

use super::agui_lines::AguiLines;
use super::answer::AnswerText;
use super::plans::ShownPlans;
use super::refusals::PolicyRefusals;
use super::saved_files::SavedFiles;
use super::streams::Streams;
use super::unstored::StoreFailures;
use crate::cli::args::shared::Format;
use crate::cli::file_label::file_line;
use crate::cli::progress::ProgressLine;
use crate::cli::remote_hub::shown_chunk;
use crate::cli::screen::{ScreenContent, push_escaped};
use crate::cli::styles::{DIM, HEAD, Styles};
use acpipe_core::restore_plan::describe_attempts;
use acpipe_host::{FULL, hand_over};
use acpipe_json::value;
use acpipe_model::answer_file::ReceivedFile;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::printable::printable;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{Memory, SessionResult, TurnSummary};
use anstyle::Style;
use serde_json::Value;
use std::borrow::Cow;
use std::io::Write as _;
use std::path::Path;

/// Maximum length in characters of a running tool's name or description, and of a line of the agent's stderr.
pub(super) const ACTIVITY: usize = 200;

/// Formatted output of one run.
pub struct RunView {
    pub format: Format,
    pub(super) quiet: bool,
    streams: Streams,
    /// Abilities of stdout; at a terminal, control sequences of the agent are removed.
    pub stdout: Styles,
    pub(super) stderr: Styles,
    out: Vec<u8>,
    answer: AnswerText,
    held: HeldOutput,
    /// Line on the terminal until the next output.
    progress: Option<ProgressLine>,
    refused: PolicyRefusals,
    pub(super) plans: ShownPlans,
    /// Warning that was shown last: tools may run without asking.
    pub(super) shown_warning: String,
    /// Last receipt that was shown.
    pub(super) receipt: Option<Value>,
    /// Translator of the turn for `-o agui`.
    events: AguiLines,
    /// Failures of the store of a run that names no session.
    pub(super) unstored: StoreFailures,
    /// Directory for the files of answers.
    saved: Option<SavedFiles>,
    /// Summaries of the turns so far, printed at the end with `-o json`.
    summaries: Vec<Value>,
}

/// Output held back while the user is asked at the terminal, up to [`FULL`] bytes.
#[derive(Default)]
struct HeldOutput {
    asking: bool,
    out: Vec<u8>,
    notes: String,
}

impl RunView {
    /// Creates the output; `is_raw` if an answer at a terminal is not rendered as Markdown.
    pub fn new(format: Format, quiet: bool, is_raw: bool) -> Self {
        let stdout = Styles::stdout();
        Self {
            format,
            quiet,
            streams: Streams::find(),
            stdout,
            stderr: Styles::stderr(),
            out: Vec::new(),
            answer: AnswerText::new(stdout, is_raw),
            held: HeldOutput::default(),
            progress: None,
            refused: PolicyRefusals::default(),
            plans: ShownPlans::default(),
            shown_warning: String::new(),
            receipt: None,
            events: AguiLines::default(),
            unstored: StoreFailures::default(),
            saved: None,
            summaries: Vec::new(),
        }
    }

    /// Sets the directory of `--save-files`, if it is given.
    ///
    /// # Errors
    /// `storage`: the directory cannot be used.
    pub fn save_files(&mut self, directory: Option<&Path>) -> Result<(), Error> {
        self.saved = directory.map(SavedFiles::open).transpose()?;
        Ok(())
    }

    /// Returns the exit code of the run; `code` is that of its turn.
    pub fn exit_code(&self, code: u8) -> u8 {
        match &self.saved {
            Some(saved) if code == 0 && saved.has_failed() => ErrorKind::Storage.exit_code(),
            _ => code,
        }
    }

    /// Writes a note for the user to stderr, unless `--quiet` is set.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            self.print_styled(DIM, text);
        }
    }

    /// Writes a message even with `--quiet`, on its own line and without control sequences.
    pub fn print_note(&mut self, text: &str) {
        self.print_styled(HEAD, text);
    }

    fn print_styled(&mut self, style: Style, text: &str) {
        let name = self.stderr.paint(style, "acpipe:");
        self.write_note(&format!("{name} {}\n", printable(text)));
    }

    /// Shows what acpipe does, on a terminal and until the next output.
    pub fn begin_step(&mut self, step: String) {
        if !self.quiet && ProgressLine::is_possible() {
            match &self.progress {
                Some(line) => line.next(step),
                None => self.progress = Some(ProgressLine::begin(step)),
            }
        }
    }

    /// Shows what a step waits for: in place of its progress, or as a note.
    pub fn wait_note(&mut self, text: &str) {
        match &self.progress {
            Some(line) => line.explain(text.to_owned()),
            None => self.note(text),
        }
    }

    pub(super) fn write_note(&mut self, line: &str) {
        self.progress = None;
        if self.streams != Streams::Apart {
            self.answer.end_line(&mut self.out);
            self.out.extend_from_slice(line.as_bytes());
        } else if self.held.asking && self.held.notes.len() <= FULL {
            self.held.notes += line;
        } else {
            // A closed stderr is not a failure of the run.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }

    /// Returns `true` if stdout and stderr are a terminal: output must then be written before a question is
    /// shown.
    pub fn is_screen(&self) -> bool {
        self.streams == Streams::Screen
    }

    /// Starts to hold back output while the user is asked. Returns `true` if the cursor is not at the start
    /// of a line.
    pub fn hold(&mut self) -> bool {
        let begun = !self.held.asking && self.is_screen() && !self.answer.ends_with_newline();
        self.held.asking = true;
        self.progress = None;
        begun
    }

    /// Adds text to the output that waits for the end of its Markdown: a question follows.
    pub fn flush(&mut self) {
        self.answer.flush(&mut self.out);
    }

    /// Stops holding back output.
    pub fn release(&mut self) {
        self.held.asking = false;
        let notes = std::mem::take(&mut self.held.notes);
        let _ = std::io::stderr().lock().write_all(notes.as_bytes());
    }

    /// Shows how the session was restored, if it was.
    pub fn session(&mut self, session: &SessionResult) {
        self.note_unstored();
        let (id, recovery) = (&session.session_id, &session.recovery);
        match recovery.memory {
            Memory::None => {}
            Memory::Kept | Memory::Replayed => {
                let missed = match (recovery.missed, recovery.reinjected) {
                    (0, _) => String::new(),
                    (n, 0) => format!(
                        "; the agent has not seen the last {n}, which another agent received; send their end with \
                             --reinject N"
                    ),
                    (n, _) => format!(
                        "; the agent has not seen the last {n} and receives the end of them"
                    ),
                };
                self.note(&format!(
                    "continuing session {id:?} in {}: {} messages so far{missed}",
                    session.cwd, recovery.messages
                ));
            }
            Memory::Lost => {
                let why = describe_attempts(&recovery.failed);
                self.lost(&format!("session {id:?}"), &why, recovery.reinjected);
            }
        }
        self.receipt = serde_json::to_value(recovery).ok();
    }

    /// Shows that the run is not stored.
    fn note_unstored(&mut self) {
        if let Some(note) = self.unstored.note() {
            self.note(&note);
        }
    }

    /// Shows an error before the turn; `summary` is that of a turn that never began.
    pub fn error(&mut self, error: &Error, summary: &TurnSummary) {
        let chunk = Chunk::Error {
            error_text: &error.message,
        };
        match self.format {
            Format::Text | Format::Json => {}
            Format::Chunks | Format::Sse | Format::Agui => {
                let mut json = Vec::new();
                chunk.write(&mut json);
                self.chunk(&chunk, &json);
            }
        }
        self.keep(summary);
        self.print_note(&error.message);
        self.output_of(error.kind.name(), &error.data());
    }

    /// Shows the next chunk; `json` is its serialized form.
    pub fn chunk(&mut self, chunk: &Chunk<'_>, json: &[u8]) {
        self.adapted(chunk, [json]);
    }

    /// Shows the next chunk, for which these chunks stand in the profile.
    pub fn adapted<'j>(&mut self, chunk: &Chunk<'_>, all: impl IntoIterator<Item = &'j [u8]>) {
        self.content(chunk);
        self.json(all);
    }

    /// Shows the next chunk, of which only the JSON text exists; `chunk` is its content if that is shown to people.
    pub fn json_chunk(&mut self, chunk: Option<&Chunk<'_>>, json: &[u8]) {
        if let Some(chunk) = chunk {
            self.content(chunk);
        }
        self.json([json]);
    }

    /// Shows what a chunk means for people.
    fn content(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            // A chunk of an endpoint with members that acpipe does not know, or a file.
            Chunk::Passed(json) => {
                match shown_chunk(json.0.get().as_bytes()) {
                    Some(Chunk::Passed(_)) if !self.uses_files() => {}
                    Some(Chunk::Passed(file)) => self.file(file.0.get().as_bytes()),
                    Some(chunk) => self.content(&chunk),
                    None => {}
                }
                return;
            }
            Chunk::File { .. } | Chunk::SourceUrl { .. } | Chunk::SourceDocument { .. }
                if self.uses_files() =>
            {
                let mut json = Vec::new();
                chunk.write(&mut json);
                self.file(&json);
            }
            Chunk::DataPermission { id, data } => {
                if let Some(note) = self.refused.decided(id, &value(data.0)) {
                    self.note(note);
                }
            }
            Chunk::DataRecovery { data } => self.recovered(value(data.0)),
            Chunk::DataPlan { id, data } => self.plan(id, data.0),
            Chunk::DataNotice { data, .. } => {
                self.progress = None;
                self.notice(&value(data.0));
            }
            _ => {}
        }
        if self.format == Format::Text {
            self.text(chunk);
        }
    }

    /// Returns `true` if files of the answer are shown or saved. They can be large, and are only read then.
    fn uses_files(&self) -> bool {
        self.format == Format::Text || self.saved.is_some()
    }

    /// Shows a file of the answer, and saves its data if the user wants that; `json` is its chunk.
    fn file(&mut self, json: &[u8]) {
        let chunk: Value = serde_json::from_slice(json).unwrap_or_default();
        let Some(file) = ReceivedFile::of_chunk(&chunk) else {
            return;
        };
        if self.format == Format::Text {
            self.progress = None;
            let line = file_line(&file.about, self.stdout);
            self.answer.push_file(&line, &mut self.out);
        }
        if let Some(note) = self.saved.as_mut().and_then(|saved| saved.save(&file)) {
            self.note(&note);
        }
    }

    /// Writes chunks in the formats that consist of them.
    fn json<'j>(&mut self, all: impl IntoIterator<Item = &'j [u8]>) {
        let (before, after): (&[u8], &[u8]) = match self.format {
            Format::Text | Format::Json => return,
            Format::Chunks => (b"", b"\n"),
            Format::Sse => (b"data: ", b"\n\n"),
            Format::Agui => {
                for json in all {
                    for line in self.events.of(json).split_inclusive(|b| *b == b'\n') {
                        self.push(line, ScreenContent::Json);
                    }
                }
                return;
            }
        };
        for json in all {
            self.out.extend_from_slice(before);
            self.push(json, ScreenContent::Json);
            self.out.extend_from_slice(after);
        }
    }

    /// Sets the turn whose chunks come next.
    pub fn begin(&mut self, session: &str, turn: &str) {
        self.events.begin(session, turn);
    }

    fn text(&mut self, chunk: &Chunk<'_>) {
        self.progress = None;
        match chunk {
            Chunk::TextStart { .. } => self.answer.begin_block(&mut self.out),
            Chunk::TextDelta { delta, .. } => self.answer.push_json(delta.0, &mut self.out),
            Chunk::TextEnd { .. } => self.answer.end_block(&mut self.out),
            _ => {}
        }
    }

    /// Shows stored messages in text output: text that is escaped already.
    pub fn stored(&mut self, text: &str) {
        if self.format == Format::Text {
            self.answer.push_lines(text, &mut self.out);
        }
    }

    /// Ends a line that is not complete.
    pub fn end_line(&mut self) {
        if self.format == Format::Text {
            self.answer.end_block(&mut self.out);
            self.answer.end_line(&mut self.out);
        }
    }

    /// Ends the output of a turn before another one: a blank line follows its text.
    pub fn next_turn(&mut self) {
        if self.format == Format::Text {
            self.answer.end_turn(&mut self.out);
        }
    }

    /// Shows the end of the turn.
    pub fn summary(&mut self, summary: &TurnSummary) {
        self.progress = None;
        let mut summary = Cow::Borrowed(summary);
        let mut unsaved = None;
        if let Some(saved) = &mut self.saved {
            let summary = summary.to_mut();
            let omitted = summary.omitted.unwrap_or_default().files;
            unsaved = saved.end_turn(&mut summary.files, omitted);
        }
        let summary = &*summary;
        self.keep(summary);
        self.end_line();
        if let Some(error) = unsaved {
            self.print_note(&error);
        }
        self.note_unstored();
        if let Some(note) = self.refused.take() {
            self.note(&note);
        }
        for error in &summary.errors {
            self.print_note(&error.message);
            self.output_of(&error.kind, &error.data);
            if let Some(cause) = error.data["cause"]["message"].as_str() {
                self.note(cause);
            }
        }
        if summary.errors.is_empty()
            && let Some(note) = &summary.outcome.note
        {
            self.note(note);
        }
    }

    /// Shows the end of a turn of which no summary follows.
    pub fn followed_end(&mut self, note: Option<&str>) {
        self.end_line();
        let refusals = self.refused.take();
        for note in [refusals.as_deref(), note].into_iter().flatten() {
            self.note(note);
        }
    }

    /// Stores a summary for the end of the run, for `-o json`.
    fn keep(&mut self, summary: &TurnSummary) {
        if self.format == Format::Json {
            self.summaries.push(serde_json::json!(summary));
        }
    }

    /// Ends the output, after success or failure.
    pub fn done(&mut self) {
        self.progress = None;
        match self.format {
            Format::Sse => self.out.extend_from_slice(b"data: [DONE]\n\n"),
            Format::Json => self.write_summary(),
            Format::Text | Format::Chunks | Format::Agui => {}
        }
    }

    /// Appends the agent's output, escaped if stdout is a terminal.
    fn push(&mut self, bytes: &[u8], content: ScreenContent) {
        self.progress = None;
        if self.stdout.is_terminal {
            push_escaped(&mut self.out, bytes, content);
        } else {
            self.out.extend_from_slice(bytes);
        }
    }

    /// Writes the summary of the last turn as one JSON object, with the earlier turns in its metadata.
    fn write_summary(&mut self) {
        let Some(mut summary) = self.summaries.pop() else {
            return;
        };
        let earlier = std::mem::take(&mut self.summaries);
        if !earlier.is_empty() {
            summary["metadata"]["earlierTurns"] = earlier.into();
        }
        self.push(summary.to_string().as_bytes(), ScreenContent::Json);
        self.out.push(b'\n');
    }

    /// Drops output that was not taken yet.
    pub fn retract(&mut self) {
        self.out.clear();
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > FULL
    }

    pub fn take_output(&mut self, buffer: &mut Vec<u8>) {
        let size = self.held.out.len() + self.out.len();
        if self.held.asking && size <= FULL && self.is_screen() {
            self.held.out.append(&mut self.out);
            return;
        }
        if !self.held.out.is_empty() {
            hand_over(&mut self.held.out, buffer);
        }
        hand_over(&mut self.out, buffer);
    }
}
