//! Terminals, those that the agent runs itself and those that acpipe runs for it: what is told of them, shown as
//! `data-terminal`.
//!
//! While a terminal says something, its last 8 KiB are shown; at its end the last 1 MiB. `offset` tells how much came before.

use super::ChunkSink;
use crate::core::event::TerminalUpdate;
use crate::core::host::TerminalView;
use crate::core::proportion::{FRAME, Proportion};
use crate::core::tail::{Tail, end};
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
    output: Tail,
    details: Map<String, Value>,
    proportion: Proportion,
    /// Whether something was not shown.
    stale: bool,
    /// Whether the part that was shown is all that is kept.
    whole: bool,
    /// Whether its end was shown.
    ended: bool,
}

/// How much of the output is shown while more may come, in bytes.
const LIVE: usize = 8 * 1024;

/// How much of the output is kept, and shown at the end, in bytes.
const KEPT: usize = 1024 * 1024;

/// Limit of the terminal output that stands in a call's result, in bytes: its end is kept.
const RESULT_LIMIT: usize = 64 * 1024;

impl Terminals {
    /// Adds what is told and shows the terminal.
    pub fn update(&mut self, update: &TerminalUpdate<'_>, sink: &mut impl ChunkSink) {
        let terminal = self.terminal(&update.id, update.tool.clone().into_owned());
        let mut said = FRAME;
        if let Some(text) = update.output {
            let mut output = String::new();
            text.decode_into(&mut output);
            terminal.output.push(&output);
            said += output.len();
            terminal.stale = true;
        }
        if let Some(details) = update.details {
            said += details.get().len();
            for (name, said) in Members::of(details).without(&["terminal_id"]).iter() {
                let said = value(said);
                terminal.stale |= terminal.details.get(name) != Some(&said);
                terminal.details.insert(name.to_owned(), said);
            }
        }
        terminal.hear(said);
        terminal.show_in_proportion(sink);
    }

    /// Takes what a terminal that acpipe runs says now.
    pub fn served(
        &mut self,
        id: &str,
        tool: String,
        said: &TerminalView<'_>,
        sink: &mut impl ChunkSink,
    ) {
        let terminal = self.terminal(id, tool);
        let before = terminal.output.total();
        terminal.output.follow(said.text, said.total);
        let news = terminal.output.total().saturating_sub(before);
        terminal.hear(usize::try_from(news).unwrap_or(usize::MAX));
        terminal.stale |= news > 0;
        if said.total > said.text.len() as u64 {
            terminal.details.insert("truncated".to_owned(), true.into());
        }
        let Some(exit) = said.exit else {
            terminal.show_in_proportion(sink);
            return;
        };
        let exit = [
            ("exit_code", Value::from(exit.code)),
            ("signal", exit.signal.clone().into()),
        ];
        for (name, value) in exit {
            terminal.stale |= terminal.details.get(name) != Some(&value);
            terminal.details.insert(name.to_owned(), value);
        }
        terminal.end(sink);
    }

    fn terminal(&mut self, id: &str, tool: String) -> &mut Terminal {
        let known = self.0.iter().position(|t| t.id == id);
        let at = known.unwrap_or_else(|| {
            self.0.push(Terminal {
                id: id.to_owned(),
                tool,
                output: Tail::new(KEPT),
                details: Map::new(),
                proportion: Proportion::default(),
                stale: true,
                whole: false,
                ended: false,
            });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// The end of the output of a call's terminals, one terminal after the other; `None` for a call without terminals.
    pub fn output_of(&self, tool: &str) -> Option<String> {
        let own = || self.0.iter().filter(|t| t.tool == tool);
        own().next()?;
        let ends: Vec<&str> = own().map(|t| t.output.last(RESULT_LIMIT).0).collect();
        let all = ends.join("\n");
        let kept = end(&all, RESULT_LIMIT);
        let whole: u64 = own().map(|t| t.output.total()).sum();
        let dots = if (kept.len() as u64) < whole {
            "…"
        } else {
            ""
        };
        Some(format!("{dots}{kept}"))
    }

    /// The calls that have terminals.
    pub fn calls(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|t| t.tool.as_str())
    }

    /// The status of a call changed: shows what was held back of its terminals, all that is kept where the call ended.
    pub fn tool_changed(&mut self, tool: &str, ended: bool, sink: &mut impl ChunkSink) {
        for terminal in self.0.iter_mut().filter(|t| t.tool == tool) {
            if ended {
                terminal.end(sink);
            } else if terminal.stale {
                terminal.show_in_proportion(sink);
            }
        }
    }

    /// Shows what was held back: no more comes.
    pub fn flush(&mut self, sink: &mut impl ChunkSink) {
        for terminal in &mut self.0 {
            terminal.show_all(sink);
        }
    }
}

impl Terminal {
    fn hear(&mut self, bytes: usize) {
        // Half of it: at the end it is shown once more.
        self.proportion.hear(bytes / 2);
    }

    fn show_in_proportion(&mut self, sink: &mut impl ChunkSink) {
        let shown = self.output.last(LIVE).0.len();
        if self.stale && self.proportion.allows(shown + FRAME) {
            self.show(LIVE, sink);
        }
    }

    /// It ended, or its call did. What is said later is shown in proportion.
    fn end(&mut self, sink: &mut impl ChunkSink) {
        if std::mem::replace(&mut self.ended, true) {
            self.show_in_proportion(sink);
        } else {
            self.show_all(sink);
        }
    }

    fn show_all(&mut self, sink: &mut impl ChunkSink) {
        if self.stale || !self.whole {
            self.show(KEPT, sink);
        }
    }

    fn show(&mut self, limit: usize, sink: &mut impl ChunkSink) {
        let (output, offset) = self.output.last(limit);
        self.stale = false;
        self.whole = output.len() == self.output.text().len();
        self.proportion.show(output.len() + FRAME);
        let mut data = Members::default();
        data.set_owned("toolCallId", &self.tool);
        data.set_owned("output", &output);
        if offset > 0 {
            data.set_owned("offset", &offset);
        }
        data.set_owned("details", &self.details);
        let data = to_raw(&data);
        sink.chunk(&Chunk::DataTerminal {
            id: &self.id,
            data: Raw(&data),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::host::TerminalExit;

    /// Counts what is shown, and keeps the last of each terminal.
    #[derive(Default)]
    struct Shown {
        bytes: usize,
        last: std::collections::BTreeMap<String, Value>,
    }

    impl ChunkSink for Shown {
        fn chunk(&mut self, chunk: &Chunk<'_>) {
            let mut json = Vec::new();
            chunk.write(&mut json);
            self.bytes += json.len();
            let json: Value = serde_json::from_slice(&json).unwrap();
            let id = json["id"].as_str().unwrap().to_owned();
            self.last.insert(id, json["data"].clone());
        }
    }

    #[test]
    fn served_terminals_that_scroll_are_shown_in_proportion() {
        const MIB: u64 = 1 << 20;
        let mut terminals = Terminals::default();
        let mut shown = Shown::default();
        let kept = "0123456789abcdef".repeat(64 * 1024);
        // All of what is kept is new each time, or a little of it.
        let total = |n: u64, step: u64| {
            if n.is_multiple_of(2) {
                step * MIB
            } else {
                MIB + step * 10
            }
        };
        let (id, tool) = (|n: u64| format!("t{n}"), |n: u64| format!("tool{n}"));
        for step in 1..=200 {
            for n in 0..32 {
                let view = TerminalView {
                    text: &kept,
                    total: total(n, step),
                    exit: None,
                };
                terminals.served(&id(n), tool(n), &view, &mut shown);
                terminals.tool_changed(&tool(n), false, &mut shown);
            }
        }
        let live = shown.bytes;
        // 3 GB were said: each is shown at most 200 times, a small part of it.
        assert!(live < 40 << 20, "{live}");
        for n in 0..32 {
            let exit = TerminalExit {
                code: Some(0),
                signal: None,
            };
            let view = TerminalView {
                text: &kept,
                total: total(n, 200),
                exit: Some(&exit),
            };
            for _ in 0..3 {
                terminals.served(&id(n), tool(n), &view, &mut shown);
                terminals.tool_changed(&tool(n), true, &mut shown);
            }
        }
        terminals.flush(&mut shown);
        // Each is shown once more, whole.
        let ends = shown.bytes - live;
        assert!(ends < 33 << 20, "{ends}");
        let last = &shown.last["t0"];
        assert_eq!(last["output"], kept);
        assert_eq!(last["offset"], 199 * MIB);
        assert_eq!(last["details"]["truncated"], true);
        assert_eq!(last["details"]["exit_code"], 0);
    }
}
