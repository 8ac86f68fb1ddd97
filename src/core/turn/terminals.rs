//! Terminals that the agent runs itself: what it told of them, shown as `data-terminal`.

use super::ChunkSink;
use crate::core::event::TerminalUpdate;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, members_without, to_raw};
use serde_json::{Map, Value, json};

/// The terminals of a turn.
#[derive(Debug, Default)]
pub struct Terminals(Vec<Terminal>);

#[derive(Debug)]
struct Terminal {
    id: String,
    tool: String,
    output: String,
    details: Map<String, Value>,
}

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
            });
            self.0.len() - 1
        });
        let terminal = &mut self.0[at];
        if let Some(text) = update.output {
            text.decode_into(&mut terminal.output);
        }
        if let Some(details) = update.details {
            let more = members_without(details.get(), &["terminal_id"]);
            terminal.details.extend(more);
        }
        let data = to_raw(&json!({
            "toolCallId": terminal.tool,
            "output": terminal.output,
            "details": terminal.details,
        }));
        sink.chunk(&Chunk::DataTerminal {
            id: &terminal.id,
            data: Raw(&data),
        });
    }
}
