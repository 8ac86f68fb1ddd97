//! What a run shows: the answer on stdout in the chosen format, everything else on stderr.

use crate::cli::args::Format;
use crate::cli::complain;
use crate::core::error::{Error, ErrorKind};
use crate::proto::chunk::Chunk;
use crate::proto::json::{JsonStr, value};
use crate::proto::wire::{Activity, Memory, SessionResult, TurnSummary};
use crate::shell::{FULL, hand_over};
use serde_json::Value;
use std::io::{IsTerminal as _, Write as _};

/// The formatted output of one run.
pub struct View {
    format: Format,
    quiet: bool,
    /// Whether tool activity is shown: only to a person at a terminal.
    lively: bool,
    out: Vec<u8>,
    text: String,
    /// Text blocks after the first are set apart.
    blocks: u32,
    ends_with_newline: bool,
}

impl View {
    pub fn new(format: Format, quiet: bool) -> Self {
        Self {
            format,
            quiet,
            lively: !quiet && format == Format::Text && std::io::stderr().is_terminal(),
            out: Vec::new(),
            text: String::new(),
            blocks: 0,
            ends_with_newline: true,
        }
    }

    /// A line on stderr, for people.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            complain(text);
        }
    }

    /// How the session came back, if there was one.
    pub fn session(&self, session: &SessionResult) {
        let (id, recovery) = (&session.session_id, &session.recovery);
        match recovery.memory {
            Memory::None => {}
            Memory::Kept | Memory::Replayed => self.note(&format!(
                "session {id:?} goes on in {}: {} messages so far",
                session.cwd, recovery.messages
            )),
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
    fn notice(&self, notice: &Value) {
        let words = ["title", "description"].map(|field| notice[field].as_str());
        let words: Vec<&str> = words.into_iter().flatten().collect();
        if !words.is_empty() {
            self.note(&words.join(": "));
        }
    }

    /// Shows which tool runs; only to a person at a terminal.
    pub fn activity(&self, activity: Option<&Activity>) {
        if let (true, Some(tool)) = (self.lively, activity) {
            let what = tool.description.lines().next().unwrap_or_default();
            let _ = writeln!(
                std::io::stderr().lock(),
                "\x1b[2m[{}] {what}\x1b[0m",
                tool.tool_name
            );
        }
    }

    /// The end of the turn.
    pub fn summary(&mut self, summary: &TurnSummary) {
        match self.format {
            Format::Json => self.line(summary),
            Format::Text if !self.ends_with_newline => self.out.push(b'\n'),
            Format::Text | Format::Chunks | Format::Sse => {}
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

    /// What was not written yet is forgotten.
    pub fn retract(&mut self) {
        self.out.clear();
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > FULL
    }

    pub fn take_output(&mut self, buffer: &mut Vec<u8>) {
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
