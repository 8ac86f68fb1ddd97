//! AG-UI events in place of chunks, for a client with the capability `agui`.

use acpipe_core::agui::{RunEvents, event_between_turns};
use acpipe_core::client_sink::ChunkAddress;
use acpipe_json::write_json;
use acpipe_protocol::agui::AguiEvent;
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
    /// Number of the first chunk.
    first: u64,
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
                first: place.seq,
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

    /// Follows that the chunks of a session after this number were not sent. Their turns go on with an error.
    pub fn retract(&mut self, session: &str, after: u64) {
        let Some(turns) = self.sessions.get_mut(session) else {
            return;
        };
        turns.retain(|turn| turn.first <= after);
        for turn in turns {
            turn.seq = turn.seq.min(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns the types of a chunk's events.
    fn types(streams: &mut EventStreams, turn: &str, seq: u64, chunk: &Value) -> String {
        let place = ChunkAddress {
            session: "s",
            turn: Some(turn),
            seq,
        };
        let events = streams.translate(place, chunk.to_string().as_bytes());
        let events: Vec<Value> = serde_json::from_slice(&[b"[", events, b"]"].concat()).unwrap();
        let types = events.iter().map(|event| event["type"].as_str().unwrap());
        types.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn retracted_run_fails_in_order() {
        let start = json!({"type": "start", "messageId": "m"});
        let step = json!({"type": "start-step"});
        let about = json!({"type": "message-metadata", "messageMetadata": {}});
        let error = json!({"type": "error", "errorText": "x"});
        for (after, want) in [(2, "CUSTOM"), (1, "CUSTOM"), (0, "RUN_STARTED CUSTOM")] {
            let mut streams = EventStreams::default();
            assert_eq!(types(&mut streams, "t", 1, &start), "RUN_STARTED");
            assert_eq!(types(&mut streams, "t", 2, &step), "STEP_STARTED");
            streams.retract("s", after);
            assert_eq!(types(&mut streams, "t", after + 1, &about), want);
            assert_eq!(types(&mut streams, "t", after + 2, &error), "RUN_ERROR");
        }
    }

    #[test]
    fn turns_of_a_session_have_runs_of_their_own() {
        let mut streams = EventStreams::default();
        let start = json!({"type": "start", "messageId": "m"});
        let step = json!({"type": "start-step"});
        let finish = json!({"type": "finish", "finishReason": "stop"});
        assert_eq!(types(&mut streams, "a", 1, &start), "RUN_STARTED");
        assert_eq!(types(&mut streams, "b", 2, &start), "RUN_STARTED");
        assert_eq!(types(&mut streams, "a", 3, &step), "STEP_STARTED");
        assert_eq!(types(&mut streams, "b", 4, &finish), "RUN_FINISHED");
        assert_eq!(
            types(&mut streams, "a", 5, &finish),
            "STEP_FINISHED RUN_FINISHED"
        );
        assert!(streams.sessions.is_empty());
    }

    #[test]
    fn turns_that_are_no_longer_followed_are_forgotten() {
        let mut streams = EventStreams::default();
        let start = json!({"type": "start", "messageId": "m"});
        for seq in 1..100 {
            types(&mut streams, &seq.to_string(), seq, &start);
        }
        assert_eq!(streams.sessions["s"].len(), MAX_TURNS);
    }
}
