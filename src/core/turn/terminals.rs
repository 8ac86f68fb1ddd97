//! Terminals, those that the agent runs itself and those that acpipe runs for it: what is told of them, shown as
//! `data-terminal`.

use super::ChunkSink;
use crate::core::event::TerminalUpdate;
use crate::core::host::TerminalOutput;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Members, Raw, to_raw, value};
use serde_json::{Map, Value};

/// The terminals of a turn.
#[derive(Debug, Default)]
pub struct Terminals(Vec<Terminal>);

#[derive(Debug)]
struct Terminal {
    id: String,
    tool: String,
    output: String,
    details: Map<String, Value>,
    /// How much of the output was shown.
    shown: usize,
    stale: bool,
}

/// Up to this length every piece shows the terminal anew; beyond, only growth by a quarter does, so that
/// all that is shown stays in proportion to what was said.
const ALWAYS_SHOWN: usize = 4096;

/// Limit of the terminal output that stands in a call's result, in bytes: its end is kept.
const RESULT_LIMIT: usize = 64 * 1024;

impl Terminals {
    /// Adds what is told and shows the terminal whole.
    pub fn update(&mut self, update: &TerminalUpdate<'_>, sink: &mut impl ChunkSink) {
        let terminal = self.terminal(&update.id, update.tool.clone().into_owned());
        let mut news = false;
        if let Some(text) = update.output {
            text.decode_into(&mut terminal.output);
        }
        if let Some(details) = update.details {
            for (name, said) in Members::of(details).without(&["terminal_id"]).iter() {
                let said = value(said);
                news |= terminal.details.get(name) != Some(&said);
                terminal.details.insert(name.to_owned(), said);
            }
        }
        if terminal.has_grown() || news {
            terminal.show(sink);
        } else {
            terminal.stale = true;
        }
    }

    /// Takes what a terminal that acpipe runs shows now: all that is kept of its output.
    pub fn served(
        &mut self,
        id: &str,
        tool: String,
        said: &TerminalOutput,
        sink: &mut impl ChunkSink,
    ) {
        let terminal = self.terminal(id, tool);
        let first = terminal.output.is_empty();
        terminal.output.clone_from(&said.text);
        if said.truncated {
            terminal.details.insert("truncated".to_owned(), true.into());
        }
        if let Some(exit) = &said.exit {
            terminal
                .details
                .insert("exit_code".to_owned(), exit.code.into());
            terminal
                .details
                .insert("signal".to_owned(), exit.signal.clone().into());
        }
        if first || said.exit.is_some() || terminal.has_grown() {
            terminal.show(sink);
        } else {
            terminal.stale = true;
        }
    }

    fn terminal(&mut self, id: &str, tool: String) -> &mut Terminal {
        let known = self.0.iter().position(|t| t.id == id);
        let at = known.unwrap_or_else(|| {
            self.0.push(Terminal {
                id: id.to_owned(),
                tool,
                output: String::new(),
                details: Map::new(),
                shown: 0,
                stale: false,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// The end of the output of a call's terminals, one terminal after the other; `None` for a call without terminals.
    pub fn output_of(&self, tool: &str) -> Option<String> {
        let mut outputs = self.0.iter().filter(|t| t.tool == tool).peekable();
        outputs.peek()?;
        let ends: Vec<&str> = outputs.map(|t| end(&t.output, RESULT_LIMIT)).collect();
        let all = ends.join("\n");
        let kept = end(&all, RESULT_LIMIT);
        let whole: usize = self
            .0
            .iter()
            .filter(|t| t.tool == tool)
            .map(|t| t.output.len())
            .sum();
        let dots = if kept.len() < whole { "…" } else { "" };
        Some(format!("{dots}{kept}"))
    }

    /// The calls that have terminals.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|t| t.tool.as_str())
    }

    /// Shows what was held back.
    pub fn flush(&mut self, sink: &mut impl ChunkSink) {
        for terminal in self.0.iter_mut().filter(|t| t.stale) {
            terminal.show(sink);
        }
    }
}

/// At most `limit` bytes of the end of a text, cut between characters.
fn end(text: &str, limit: usize) -> &str {
    let cut = text.len().saturating_sub(limit);
    let start = (cut..=text.len()).find(|&at| text.is_char_boundary(at));
    &text[start.unwrap_or(text.len())..]
}

impl Terminal {
    fn has_grown(&self) -> bool {
        let len = self.output.len();
        len <= ALWAYS_SHOWN || len >= self.shown + self.shown / 4
    }

    fn show(&mut self, sink: &mut impl ChunkSink) {
        self.shown = self.output.len();
        self.stale = false;
        let mut data = Members::default();
        data.set_owned("toolCallId", &self.tool);
        data.set_owned("output", &self.output);
        data.set_owned("details", &self.details);
        let data = to_raw(&data);
        sink.chunk(&Chunk::DataTerminal {
            id: &self.id,
            data: Raw(&data),
        });
    }
}
