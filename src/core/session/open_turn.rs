//! Open turns of a session: the prompted one, and the background turn.

use super::{SessionMachine, SessionSink};
use crate::core::client_sink::ClientSinks;
use crate::core::turn::Turn;
use crate::core::view::chunks::ChunkView;

impl SessionMachine {
    /// Returns `true` if the turn with this id is not open.
    #[must_use]
    pub fn is_over(&self, turn_id: &str) -> bool {
        let running = self.running.as_ref().map(|r| r.turn_id.as_str());
        let background_turn = self.background_turn.as_ref().map(|u| u.turn_id.as_str());
        running != Some(turn_id) && background_turn != Some(turn_id)
    }

    /// Returns the turn with this id, if it is open.
    #[must_use]
    pub fn turn_of(&self, turn_id: &str) -> Option<&Turn> {
        let running = self.running.as_ref().filter(|r| r.turn_id == turn_id);
        let background_turn = self.background_turn.as_ref();
        let background_turn = background_turn.filter(|u| u.turn_id == turn_id);
        let running = running.map(|r| &r.turn);
        running.or_else(|| background_turn.map(|u| &u.turn))
    }

    /// Calls `act` on the turn with this id, if it is open.
    pub fn with_turn_of(
        &mut self,
        turn_id: &str,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        if self.running.as_ref().is_some_and(|r| r.turn_id == turn_id) {
            self.with_turn(clients, act);
        } else if !self.is_over(turn_id) {
            self.with_unprompted(clients, act);
        }
    }
}
