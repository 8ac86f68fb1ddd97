//! Terminals that the agent runs itself: what it told of them, shown as `data-terminal`.

use super::ChunkSink;
use crate::core::event::TerminalUpdate;
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

impl Terminals {
    /// Adds what is told and shows the terminal whole.
    pub fn update(&mut self, update: &TerminalUpdate<'_>, sink: &mut impl ChunkSink) {
        let known = self.0.iter().position(|t| t.id == update.id);
        let at = known.unwrap_or_else(|| {
            self.0.push(Terminal {
                id: update.id.clone().into_owned(),
                tool: update.tool.clone().into_owned(),
                output: String::new(),
                details: Map::new(),
                shown: 0,
                stale: false,
            });
            self.0.len() - 1
        });
        let terminal = &mut self.0[at];
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
        let len = terminal.output.len();
        let grown = len <= ALWAYS_SHOWN || len >= terminal.shown + terminal.shown / 4;
        if grown || news {
            terminal.show(sink);
        } else {
            terminal.stale = true;
        }
    }

    /// Shows what was held back.
    pub fn flush(&mut self, sink: &mut impl ChunkSink) {
        for terminal in self.0.iter_mut().filter(|t| t.stale) {
            terminal.show(sink);
        }
    }
}

impl Terminal {
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
