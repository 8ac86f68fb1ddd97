//! The chunks of subagents: what each does makes a message of its own, shown whole as `data-subagent` and kept out of the
//! main text.

use super::{ChunkSink, ChunkState};
use crate::core::fold::Folding;
use crate::core::proportion::{Proportion, size};
use crate::core::turn::{Subagent, TurnEvent};
use crate::proto::chunk::{Chunk, SubagentState};

/// What was shown of a subagent.
#[derive(Debug)]
pub struct ShownSubagent {
    /// Prints the subagent's turn as if it were an agent's.
    state: ChunkState,
    folded: Folding,
    proportion: Proportion,
    /// About how large its message is, in bytes: what was shown last, and the chunks since.
    size: usize,
    /// The size of all chunks when it was shown last.
    folded_then: usize,
}

impl ShownSubagent {
    /// What was shown of the subagent of this number.
    pub fn of<'a>(subagents: &'a mut Vec<Self>, at: usize, dialect: &'static str) -> &'a mut Self {
        while subagents.len() <= at {
            subagents.push(Self {
                state: ChunkState::new(dialect),
                folded: Folding::default(),
                proportion: Proportion::default(),
                size: 0,
                folded_then: 0,
            });
        }
        &mut subagents[at]
    }

    /// Takes an event of the subagent's turn.
    pub fn event(&mut self, event: &TurnEvent<'_>) {
        self.state.show(event, &mut self.folded);
    }

    /// Shows the subagent, after an update of `reported` bytes in proportion to all that was reported of it.
    pub fn show(
        &mut self,
        subagent: &Subagent,
        reported: Option<usize>,
        sink: &mut impl ChunkSink,
    ) {
        if let Some(bytes) = reported {
            self.proportion.hear(bytes);
            let since = self.folded.size() - self.folded_then;
            if !self.proportion.allows(self.size + since) {
                return;
            }
        }
        let message = self.folded.message();
        self.size = size(&message) + size(&subagent.info) + size(&subagent.state);
        self.folded_then = self.folded.size();
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
