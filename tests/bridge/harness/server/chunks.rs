//! Chunks of sessions, and the turns that they form.

use super::turn::Turn;
use super::{Id, Server};
use crate::harness::stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Default)]
pub(super) struct Stream {
    pub(super) seq: u64,
    pub(super) gap_allowed: bool,
    pub(super) chunks: VecDeque<ReceivedChunk>,
    /// Turns whose answer has arrived: no chunk of them may follow.
    pub(super) closed: BTreeSet<String>,
}

pub(super) struct ReceivedChunk {
    pub(super) seq: u64,
    pub(super) turn: Option<String>,
    pub(super) chunk: Value,
}

impl Server {
    /// Allows the sequence numbers of this session's chunks to skip values, for tests that switch chunks off,
    /// and to repeat, since older profiles emit two chunks for one.
    pub fn allow_gaps(&mut self, session: &str) {
        self.stream(session).gap_allowed = true;
    }

    /// Expects the session's chunks again from sequence number 1.
    pub fn rewind(&mut self, session: &str) {
        self.stream(session).seq = 0;
    }

    /// Waits for the first chunk outside of turns.
    pub fn chunk_outside_turns(&mut self, session: &str) -> Value {
        self.until(&format!("a chunk outside of turns of {session}"), |s| {
            let chunks = &mut s.stream(session).chunks;
            let at = chunks.iter().position(|c| c.turn.is_none())?;
            chunks.remove(at).map(|c| c.chunk)
        })
    }

    /// Waits until the first unprompted message has ended, and returns its checked chunks.
    pub fn unprompted(&mut self, session: &str) -> Vec<Value> {
        let chunks = self.until(&format!("an unprompted message of {session}"), |s| {
            let stream = s.stream(session);
            let about = |c: &ReceivedChunk, dialect| {
                c.chunk["messageMetadata"][dialect]["unprompted"] == true
            };
            let unasked = |c: &&ReceivedChunk| about(c, "acp") || about(c, "claude");
            let turn = stream.chunks.iter().find(unasked)?.turn.clone();
            let over = |c: &ReceivedChunk| {
                c.turn == turn
                    && ["finish", "error", "abort"].contains(&c.chunk["type"].as_str().unwrap())
            };
            if !stream.chunks.iter().any(over) {
                return None;
            }
            stream.closed.extend(turn.clone());
            let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut stream.chunks)
                .into_iter()
                .partition(|c| c.turn == turn);
            stream.chunks = rest.into();
            Some(own.into_iter().map(|c| c.chunk).collect::<Vec<_>>())
        });
        if let Err(wrong) = stream::check(&chunks) {
            self.fail(&wrong);
        }
        chunks
    }

    /// Takes all unclaimed chunks of a session, unchecked.
    pub fn take_chunks(&mut self, session: &str) -> Vec<Value> {
        let chunks = std::mem::take(&mut self.stream(session).chunks);
        chunks.into_iter().map(|c| c.chunk).collect()
    }

    /// Takes all unclaimed chunks of a session by sequence number.
    pub fn numbered(&mut self, session: &str) -> BTreeMap<u64, Value> {
        let chunks = std::mem::take(&mut self.stream(session).chunks);
        chunks.into_iter().map(|c| (c.seq, c.chunk)).collect()
    }

    /// Waits until a matching chunk of this session has arrived; claims nothing.
    pub fn await_chunk(&mut self, session: &str, is: impl Fn(&Value) -> bool) {
        self.until(&format!("a certain chunk of {session}"), |s| {
            s.stream(session)
                .chunks
                .iter()
                .any(|c| is(&c.chunk))
                .then_some(())
        });
    }

    /// Waits until exactly these turns of a session are reported as queued.
    pub fn await_queue(&mut self, session: &str, turns: &[&str]) {
        let turns: Vec<Value> = turns.iter().map(|id| json!({ "turnId": id })).collect();
        let told = json!(turns);
        self.until(&format!("the queue {told} of {session}"), |s| {
            let queue = s.queues.get(session).cloned();
            (queue.unwrap_or_else(|| json!([])) == told).then_some(())
        });
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> Id {
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "message": text}),
        )
    }

    /// Runs one turn of the session `default`.
    pub fn prompt(&mut self, text: &str) -> Turn {
        let id = self.send_prompt("default", text);
        self.turn(&id)
    }

    /// Waits for the answer to a prompt and returns it with the turn's checked chunks.
    pub fn turn(&mut self, id: &Id) -> Turn {
        let summary = self.result(id);
        self.claim_turn(&summary)
    }

    /// Claims the chunks of a turn whose summary has arrived by another path than the prompt's answer.
    pub fn claim_turn(&mut self, summary: &Value) -> Turn {
        let turn_id = summary["turnId"].as_str().unwrap().to_owned();
        let session = summary["sessionId"].as_str().unwrap().to_owned();
        let stream = self.stream(&session);
        stream.closed.insert(turn_id.clone());
        let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut stream.chunks)
            .into_iter()
            .partition(|c| c.turn.as_deref() == Some(&*turn_id));
        stream.chunks = rest.into();
        let quiet = stream.gap_allowed && own.is_empty();
        let chunks: Vec<Value> = own.into_iter().map(|c| c.chunk).collect();
        if !quiet && let Err(wrong) = stream::check_with_summary(&chunks, summary) {
            self.fail(&wrong);
        }
        let mut activity = Vec::new();
        self.notifications.retain(|(method, params)| {
            let own = method == "session/activity" && params["sessionId"] == *session;
            if own {
                activity.push(params["activity"].clone());
            }
            !own
        });
        for pair in activity.windows(2) {
            assert_ne!(pair[0], pair[1], "activity that is no change");
        }
        assert!(
            activity.last().is_none_or(Value::is_null),
            "activity after the turn: {activity:?}"
        );
        Turn {
            summary: summary.clone(),
            chunks,
            activity,
        }
    }

    pub(super) fn stream(&mut self, session: &str) -> &mut Stream {
        self.streams.entry(session.to_owned()).or_default()
    }

    pub(super) fn chunk(&mut self, params: &Value) {
        let (Some(session), Some(seq)) = (params["sessionId"].as_str(), params["seq"].as_u64())
        else {
            self.fail(&format!("a chunk without session or number: {params}"));
        };
        let turn = params["turnId"].as_str().map(str::to_owned);
        let stream = self.stream(session);
        let next = stream.seq + 1;
        // On a slow disk the client lags, and neighbouring deltas arrive as one with the number of the last.
        let kind = params["chunk"]["type"].as_str().unwrap_or_default();
        let is_merged = seq > next && kind.ends_with("-delta");
        let fits = seq == next || is_merged || (stream.gap_allowed && seq >= stream.seq);
        let late = turn.as_ref().is_some_and(|t| stream.closed.contains(t));
        stream.seq = seq;
        stream.chunks.push_back(ReceivedChunk {
            seq,
            turn,
            chunk: params["chunk"].clone(),
        });
        if !fits {
            self.fail(&format!("chunk {seq} where {next} was due: {params}"));
        }
        if late {
            self.fail(&format!("a chunk after its turn's answer: {params}"));
        }
    }
}
