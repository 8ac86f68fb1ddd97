//! Chunks of terminals: the output of a terminal is shown as `data-terminal`.
//!
//! While the terminal runs, its last 8 KiB are shown; at its end, the last 1 MiB. `offset` is the number of
//! bytes before that.

use super::ChunkSink;
use crate::output_budget::{FRAME, OutputBudget};
use crate::turn::Terminal;
use acpipe_json::{Members, Raw, to_raw};
use acpipe_protocol::chunk::Chunk;

#[derive(Debug)]
pub struct ShownTerminal {
    proportion: OutputBudget,
    /// Whether there are changes that were not shown.
    stale: bool,
    /// Whether the shown part is all of the output that is kept.
    whole: bool,
    /// Whether the terminal was shown at its end.
    ended: bool,
}

/// Bytes of output that are shown while the terminal runs.
const LIVE: usize = 8 * 1024;

/// Bytes of output that are shown at the end: as much as a turn keeps.
const KEPT: usize = 1024 * 1024;

/// State of the terminal with index `at`, created on first use.
pub fn shown(terminals: &mut Vec<ShownTerminal>, at: usize) -> &mut ShownTerminal {
    while terminals.len() <= at {
        terminals.push(ShownTerminal {
            proportion: OutputBudget::default(),
            stale: true,
            whole: false,
            ended: false,
        });
    }
    &mut terminals[at]
}

impl ShownTerminal {
    /// Records a report of `bytes` bytes about the terminal.
    pub fn grow(&mut self, bytes: usize, changed: bool) {
        // Half of the size, since the output is shown once more at the end.
        self.proportion.grow(bytes / 2, bytes / 2);
        self.stale |= changed;
    }

    /// Shows a change of the terminal or of its call; at the end of either, all of the output that is kept.
    pub fn show_change(&mut self, terminal: &Terminal, ended: bool, sink: &mut impl ChunkSink) {
        // Reports after the end are shown in proportion.
        if ended && !std::mem::replace(&mut self.ended, true) {
            self.show_all(terminal, sink);
            return;
        }
        let shown = terminal.output.last(LIVE).0.len();
        if self.stale && self.proportion.allows(shown + FRAME) {
            self.show(terminal, LIVE, sink);
        }
    }

    /// Shows output that was held back.
    pub fn show_all(&mut self, terminal: &Terminal, sink: &mut impl ChunkSink) {
        if self.stale || !self.whole {
            self.show(terminal, KEPT, sink);
        }
    }

    fn show(&mut self, terminal: &Terminal, limit: usize, sink: &mut impl ChunkSink) {
        let (output, offset) = terminal.output.last(limit);
        self.stale = false;
        self.whole = output.len() == terminal.output.text().len();
        self.proportion.show(output.len() + FRAME);
        let mut data = Members::default();
        data.set_owned("toolCallId", &terminal.tool);
        data.set_owned("output", &output);
        if offset > 0 {
            data.set_owned("offset", &offset);
        }
        data.set_owned("details", &terminal.details);
        let data = to_raw(&data);
        sink.chunk(&Chunk::DataTerminal {
            id: &terminal.id,
            data: Raw(&data),
        });
    }
}
