//! What a run shows: the answer on stdout in the chosen format, everything else on stderr.

use super::asks::words::short;
use crate::cli::args::Format;
use crate::cli::complain;
use crate::core::error::{Error, ErrorKind};
use crate::proto::chunk::Chunk;
use crate::proto::json::{JsonStr, value};
use crate::proto::wire::{Activity, Memory, SessionResult, TurnSummary};
use crate::shell::{FULL, hand_over};
use serde_json::Value;
use std::collections::HashSet;
use std::io::{IsTerminal as _, Write as _};

/// How much is shown of a tool that runs, in characters.
const ACTIVITY: usize = 200;

/// The formatted output of one run.
pub struct View {
    format: Format,
    quiet: bool,
    /// Whether stdout and stderr are one to see: a terminal, where notes have their place in the text.
    screen: bool,
    out: Vec<u8>,
    text: String,
    /// Text blocks after the first are set apart.
    blocks: u32,
    ends_with_newline: bool,
    held: Held,
    refused: Refused,
}

/// What the policy refused though nobody saw it: the run may end well without what was wanted.
#[derive(Default)]
struct Refused {
    questions: HashSet<String>,
    /// By what, each once.
    rules: Vec<String>,
}

/// While a person is asked something nothing else is shown on the terminal, unless it becomes too much.
#[derive(Default)]
struct Held {
    asking: bool,
    out: Vec<u8>,
    notes: String,
}

impl View {
    pub fn new(format: Format, quiet: bool) -> Self {
        Self {
            format,
            quiet,
            screen: std::io::stdout().is_terminal() && std::io::stderr().is_terminal(),
            out: Vec::new(),
            text: String::new(),
            blocks: 0,
            ends_with_newline: true,
            held: Held::default(),
            refused: Refused::default(),
        }
    }

    /// A line on stderr, for people.
    pub fn note(&mut self, text: &str) {
        if !self.quiet {
            self.tell(&format!("acpipe: {text}\n"));
        }
    }

    fn tell(&mut self, line: &str) {
        if self.screen {
            if !self.ends_with_newline {
                self.out.push(b'\n');
                self.ends_with_newline = true;
            }
            self.out.extend_from_slice(line.as_bytes());
        } else if self.held.asking && self.held.notes.len() <= FULL {
            self.held.notes += line;
        } else {
            // Nobody may be there to read it: that is no failure of the run.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }

    /// Whether what is written has to be seen before a person is asked something.
    pub fn is_screen(&self) -> bool {
        self.screen
    }

    /// A person is asked something. True where a line is begun on the screen.
    pub fn hold(&mut self) -> bool {
        let begun = !self.held.asking && self.screen && !self.ends_with_newline;
        self.held.asking = true;
        begun
    }

    /// Nobody is asked anything any more.
    pub fn release(&mut self) {
        self.held.asking = false;
        let notes = std::mem::take(&mut self.held.notes);
        let _ = std::io::stderr().lock().write_all(notes.as_bytes());
    }

    /// How the session came back, if there was one.
    pub fn session(&mut self, session: &SessionResult) {
        let (id, recovery) = (&session.session_id, &session.recovery);
        match recovery.memory {
            Memory::None => {}
            Memory::Kept | Memory::Replayed => {
                let missed = match (recovery.missed, recovery.reinjected) {
                    (0, _) => String::new(),
                    (n, 0) => format!(
                        "; the agent has not seen the last {n}, when another agent had the session: --reinject N \
                         sends their end"
                    ),
                    (n, _) => format!(
                        "; the agent is given the end of the last {n}, which it has not seen"
                    ),
                };
                self.note(&format!(
                    "session {id:?} goes on in {}: {} messages so far{missed}",
                    session.cwd, recovery.messages
                ));
            }
            Memory::Lost => {
                let why: Vec<&str> = recovery.failed.iter().map(|f| f.message.as_str()).collect();
                let why = match why.as_slice() {
                    [] => "it never had it".to_owned(),
                    why => why.join("; "),
                };
                let help = match recovery.reinjected {
                    0 => "--reinject N gives it the end of what was said".to_owned(),
                    n => format!("it is given the last {n} characters of what was said"),
                };
                self.note(&format!(
                    "the agent remembers nothing of session {id:?} ({why}): {help}"
                ));
            }
        }
    }

    pub fn error(&mut self, error: &Error) {
        let chunk = Chunk::Error {
            error_text: &error.message,
        };
        match self.format {
            Format::Text | Format::Json => {}
            Format::Chunks | Format::Sse => {
                let mut json = Vec::new();
                chunk.write(&mut json);
                self.chunk(&chunk, &json);
            }
        }
        if self.format == Format::Json {
            let mut data = error.data();
            data["message"] = error.message.as_str().into();
            let failure = serde_json::json!({ "isError": true, "errors": [data] });
            self.line(&failure);
        }
        complain(&error.message);
    }

    /// The next chunk, and the JSON of it.
    pub fn chunk(&mut self, chunk: &Chunk<'_>, json: &[u8]) {
        if let Chunk::DataPermission { id, data } = chunk {
            self.decided(id, &value(data.0));
        }
        match self.format {
            Format::Text => self.text(chunk),
            Format::Chunks => {
                self.out.extend_from_slice(json);
                self.out.push(b'\n');
            }
            Format::Sse => {
                self.out.extend_from_slice(b"data: ");
                self.out.extend_from_slice(json);
                self.out.extend_from_slice(b"\n\n");
            }
            Format::Json => {}
        }
    }

    fn decided(&mut self, question: &str, data: &Value) {
        if data["by"] != "policy" || data["approved"] != false {
            return;
        }
        self.refused.questions.insert(question.to_owned());
        if let Some(rule) = data["rule"].as_str()
            && !self.refused.rules.iter().any(|known| known == rule)
        {
            self.refused.rules.push(rule.to_owned());
        }
    }

    fn text(&mut self, chunk: &Chunk<'_>) {
        match chunk {
            Chunk::TextStart { .. } => {
                if self.blocks > 0 {
                    let gap: &[u8] = if self.ends_with_newline {
                        b"\n"
                    } else {
                        b"\n\n"
                    };
                    self.out.extend_from_slice(gap);
                    self.ends_with_newline = true;
                }
                self.blocks += 1;
            }
            Chunk::TextDelta { delta, .. } => {
                self.text.clear();
                if let Some(text) = JsonStr::new(delta.0) {
                    text.decode_into(&mut self.text);
                }
                self.out.extend_from_slice(self.text.as_bytes());
                if !self.text.is_empty() {
                    self.ends_with_newline = self.text.ends_with('\n');
                }
            }
            Chunk::DataNotice { data, .. } => self.notice(&value(data.0)),
            _ => {}
        }
    }

    /// A notice, the agent's or acpipe's, as far as it has words.
    fn notice(&mut self, notice: &Value) {
        let words = ["title", "description"].map(|field| notice[field].as_str());
        let words: Vec<&str> = words.into_iter().flatten().collect();
        if !words.is_empty() {
            self.note(&words.join(": "));
        }
    }

    /// Shows which tool runs; only to a person at a terminal.
    pub fn activity(&mut self, activity: Option<&Activity>) {
        let lively = !self.quiet && self.format == Format::Text && std::io::stderr().is_terminal();
        if let (true, Some(tool)) = (lively, activity) {
            let name = short(&tool.tool_name, ACTIVITY);
            let what = tool.description.lines().next().unwrap_or_default();
            let what = short(what, ACTIVITY);
            self.tell(&format!("\x1b[2m[{name}] {what}\x1b[0m\n"));
        }
    }

    /// The end of the turn.
    pub fn summary(&mut self, summary: &TurnSummary) {
        match self.format {
            Format::Json => self.line(summary),
            Format::Text if !self.ends_with_newline => self.out.push(b'\n'),
            Format::Text | Format::Chunks | Format::Sse => {}
        }
        let rules = self.refused.rules.join("; ");
        match self.refused.questions.len() {
            0 => {}
            1 => self.note(&format!("the policy refused the agent a tool: {rules}")),
            n => self.note(&format!("the policy refused the agent {n} tools: {rules}")),
        }
        for error in &summary.errors {
            complain(&error.message);
            if let Some(cause) = error.data["cause"]["message"].as_str() {
                self.note(cause);
            }
        }
        match summary.stop_reason.as_str() {
            "end_turn" | "error" => {}
            "cancelled" if was_asked_to_stop(summary) => self.note("the turn was cancelled"),
            "cancelled" => self.note("the agent broke the turn off"),
            "refusal" => self.note("the agent refused"),
            "max_tokens" => self.note("the answer is cut: the agent's token limit was reached"),
            other if summary.errors.is_empty() => self.note(&format!("the agent stopped: {other}")),
            _ => {}
        }
    }

    /// The end of the run, whatever became of it.
    pub fn done(&mut self) {
        if self.format == Format::Sse {
            self.out.extend_from_slice(b"data: [DONE]\n\n");
        }
    }

    fn line(&mut self, value: &impl serde::Serialize) {
        if serde_json::to_writer(&mut self.out, value).is_ok() {
            self.out.push(b'\n');
        }
    }

    /// What was not handed over yet is forgotten.
    pub fn retract(&mut self) {
        self.out.clear();
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > FULL
    }

    pub fn take_output(&mut self, buffer: &mut Vec<u8>) {
        let size = self.held.out.len() + self.out.len();
        if self.held.asking && size <= FULL && self.screen {
            self.held.out.append(&mut self.out);
            return;
        }
        if !self.held.out.is_empty() {
            hand_over(&mut self.held.out, buffer);
        }
        hand_over(&mut self.out, buffer);
    }
}

/// The exit code that a summary stands for.
pub fn exit_code(summary: &TurnSummary) -> u8 {
    let kind = |name: &str| ErrorKind::ALL.iter().find(|k| k.name() == name);
    match summary.errors.first() {
        Some(error) => kind(&error.kind).map_or(1, |k| k.exit_code()),
        None if summary.stop_reason != "cancelled" => 0,
        None if was_asked_to_stop(summary) => ErrorKind::Cancelled.exit_code(),
        // Some agents end the turn so when a permission is refused.
        None => 1,
    }
}

fn was_asked_to_stop(summary: &TurnSummary) -> bool {
    summary.metadata.contains_key("cancelRequested")
}
