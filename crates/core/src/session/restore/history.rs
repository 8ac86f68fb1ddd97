//! History that an agent replays while its session is restored. It is never shown as new updates.

use crate::replay::{Replay, ReplayedMessages};
use crate::turn::Renamed;
use acpipe_model::event::{Original, Update};

/// Maximum size of a replayed history, in bytes of the agent's lines. The replay is held in memory.
pub const REPLAY_LIMIT: usize = 512 << 20;

/// History of a session, as far as the agent has replayed it.
#[derive(Debug, Default)]
pub struct RestoredHistory {
    /// `None` while no replay is expected.
    replay: Option<Replay>,
    /// Size of the replayed lines.
    bytes: usize,
}

impl RestoredHistory {
    pub fn expect(&mut self, replay: Option<Replay>) {
        self.replay = replay;
    }

    pub fn has_begun(&self) -> bool {
        self.replay.is_some() && self.bytes > 0
    }

    /// Replaces the agent's ids of tool calls in a replayed update.
    pub fn identify_calls(&mut self, subagent: Option<&str>, update: &mut Update<'_>) -> Renamed {
        let replay = self.replay.as_mut();
        replay.map_or_else(Renamed::new, |replay| {
            replay.identify_calls(subagent, update)
        })
    }

    /// Adds an update. Returns `false` if the history exceeds its limit now, and is dropped.
    pub fn add(&mut self, update: &Update<'_>, original: Original<'_>) -> bool {
        self.bytes = self.bytes.saturating_add(original.line.len());
        if self.is_too_large() {
            self.replay = None;
            return false;
        }
        if let Some(replay) = &mut self.replay
            && !matches!(update, Update::Session(_))
        {
            replay.update(update, original);
        }
        true
    }

    pub fn is_too_large(&self) -> bool {
        self.bytes > REPLAY_LIMIT
    }

    pub fn is_empty(&self) -> bool {
        self.replay.as_ref().is_none_or(Replay::is_empty)
    }

    /// Takes the replayed messages; `None` if no replay was expected.
    pub fn take(&mut self) -> Option<ReplayedMessages> {
        self.replay.take().map(Replay::finish)
    }
}
