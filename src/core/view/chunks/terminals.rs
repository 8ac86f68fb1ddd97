//! The chunks of terminals: what was reported of one is shown as `data-terminal`.
//!
//! While a terminal says something, its last 8 KiB are shown; at its end the last 1 MiB. `offset` tells how much came before.

use super::ChunkSink;
use crate::core::proportion::{FRAME, Proportion};
use crate::core::turn::Terminal;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Members, Raw, to_raw};

/// What was shown of a terminal.
#[derive(Debug)]
pub struct ShownTerminal {
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

/// How much of the output is shown at the end, in bytes: as much as a turn keeps.
const KEPT: usize = 1024 * 1024;

/// What was shown of the terminal of this number.
pub fn shown(terminals: &mut Vec<ShownTerminal>, at: usize) -> &mut ShownTerminal {
    while terminals.len() <= at {
        terminals.push(ShownTerminal {
            proportion: Proportion::default(),
            stale: true,
            whole: false,
            ended: false,
        });
    }
    &mut terminals[at]
}

impl ShownTerminal {
    /// Notes what was reported of the terminal.
    pub fn hear(&mut self, bytes: usize, changed: bool) {
        // Half of it: at the end it is shown once more.
        self.proportion.hear(bytes / 2);
        self.stale |= changed;
    }

    /// Shows a change of the terminal or of its call, all that is kept where one of them ended.
    pub fn show_change(&mut self, terminal: &Terminal, ended: bool, sink: &mut impl ChunkSink) {
        // What is reported after the end is shown in proportion.
        if ended && !std::mem::replace(&mut self.ended, true) {
            self.show_all(terminal, sink);
            return;
        }
        let shown = terminal.output.last(LIVE).0.len();
        if self.stale && self.proportion.allows(shown + FRAME) {
            self.show(terminal, LIVE, sink);
        }
    }

    /// Shows what was held back.
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
