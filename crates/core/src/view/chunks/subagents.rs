//! Chunks of subagents: the output of each forms its own message, which is shown whole as `data-subagent` and
//! is not part of the main text.

use super::{ChunkSink, ChunkState};
use crate::fold::FoldSink;
use crate::output_budget::{OutputBudget, REPEATS, size};
use crate::turn::{Subagent, TurnEvent};
use acpipe_protocol::chunk::{Chunk, SubagentState};

#[derive(Debug)]
pub struct ShownSubagent {
    state: ChunkState,
    folded: FoldSink,
    proportion: OutputBudget,
    /// Approximate size of its message in bytes: what was last shown, plus the chunks since.
    size: usize,
    /// Size of all chunks when the subagent was last shown.
    shown_at_size: usize,
    /// Size of all chunks at the last report.
    reported_at_size: usize,
}

impl ShownSubagent {
    /// Returns the state of the subagent with index `at`, created on first use.
    pub fn of<'a>(subagents: &'a mut Vec<Self>, at: usize, dialect: &'static str) -> &'a mut Self {
        while subagents.len() <= at {
            subagents.push(Self {
                state: ChunkState::new(dialect),
                folded: FoldSink::default(),
                proportion: OutputBudget::default(),
                size: 0,
                shown_at_size: 0,
                reported_at_size: 0,
            });
        }
        &mut subagents[at]
    }

    pub fn event(&mut self, event: &TurnEvent<'_>) {
        self.state.show(event, &mut self.folded);
    }

    /// Shows the subagent. After an update of `reported` bytes, it is shown only in proportion to all that
    /// was reported of it.
    pub fn show(
        &mut self,
        subagent: &Subagent,
        reported: Option<usize>,
        sink: &mut impl ChunkSink,
    ) {
        if let Some(bytes) = reported {
            let size = self.folded.size();
            // The chunks have what is new in proportion, so their size is not counted several times.
            let added = size - std::mem::replace(&mut self.reported_at_size, size);
            self.proportion.grow(bytes, added / REPEATS);
            let since = size - self.shown_at_size;
            if !self.proportion.allows(self.size + since) {
                return;
            }
        }
        let message = self.folded.message();
        self.size = size(&message) + size(&subagent.info) + size(&subagent.state);
        self.shown_at_size = self.folded.size();
        self.proportion.show(self.size);
        sink.chunk(&Chunk::DataSubagent {
            id: &subagent.id,
            data: SubagentState {
                info: &subagent.info,
                state: &subagent.state,
                message: &message,
            },
        });
    }
}
