//! AG-UI events in place of chunks, for a client with the capability `agui`.

use crate::core::agui::{RunEvents, event_between_turns};
use crate::core::client_sink::ChunkAddress;
use crate::proto::agui::AguiEvent;
use crate::proto::json::write_json;
use std::collections::BTreeMap;

/// Maximum number of turns of one session whose state is kept. More than a few are turns that the client no longer
/// follows.
const MAX_TURNS: usize = 8;

/// Translators of the turns that a client follows.
#[derive(Default)]
pub struct EventStreams {
    /// Turns by session, oldest first.
    sessions: BTreeMap<String, Vec<TurnEvents>>,
    /// Events of the last chunk, as elements of a JSON array.
    events: Vec<u8>,
}

struct TurnEvents {
    turn: String,
    /// Number of the last chunk.
    seq: u64,
    run: RunEvents,
}

impl EventStreams {
    /// Returns the events of a chunk as the elements of a JSON array; empty if there are none.
    pub fn translate(&mut self, place: ChunkAddress<'_>, json: &[u8]) -> &[u8] {
        self.events.clear();
        let events = &mut self.events;
        let mut emit = |event: &AguiEvent<'_>| {
            if !events.is_empty() {
                events.push(b',');
            }
            write_json(events, event);
        };
        let Some(turn) = place.turn else {
            event_between_turns(json, &mut emit);
            return &self.events;
        };
        let turns = self.sessions.entry(place.session.to_owned()).or_default();
        // A client that attaches again receives chunks again.
        turns.retain(|known| known.turn != turn || known.seq < place.seq);
        let at = turns.iter().position(|known| known.turn == turn);
        let at = at.unwrap_or_else(|| {
            if turns.len() == MAX_TURNS {
                turns.remove(0);
            }
            turns.push(TurnEvents {
                turn: turn.to_owned(),
                seq: 0,
                run: RunEvents::new(place.session, turn),
            });
            turns.len() - 1
        });
        let known = &mut turns[at];
        known.seq = place.seq;
        known.run.chunk(json, &mut emit);
        if known.run.has_ended() {
            turns.remove(at);
        }
        if turns.is_empty() {
            self.sessions.remove(place.session);
        }
        &self.events
    }
}
