//! Raw view: the updates of an ACP agent unchanged, for clients that use ACP themselves.

use crate::core::event::{Original, Update};
use crate::core::turn::{TurnEvent, TurnView};

/// View that passes on each update of a turn once, in order, before other views show its effect.
///
/// The function receives the update, and the id of the subagent if the agent reported it in a session of its
/// own.
#[derive(Debug)]
pub struct RawView<F>(pub F);

impl<F: FnMut(Original<'_>, Option<&str>)> TurnView for RawView<F> {
    fn event(&mut self, event: &TurnEvent<'_>) {
        match *event {
            // The output of a terminal is part of the update of a tool call, which is reported next.
            TurnEvent::Reported {
                update: Update::Terminal(_),
                ..
            } => {}
            TurnEvent::Reported {
                subagent, original, ..
            } => (self.0)(original, subagent),
            // All other events are derived from the updates, including those of a subagent's turn.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::acp::Acp;
    use crate::core::dialect::{Child, Dialect as _, Outgoing};
    use crate::core::event::{AgentEvent, TurnEnd};
    use crate::core::turn::Turn;
    use crate::core::view::chunks::{ChunkSink, ChunkState};
    use crate::proto::chunk::Chunk;
    use crate::proto::json::value;
    use crate::proto::tape::{Direction, Record, records};
    use serde_json::{Value, json};
    use std::sync::Arc;

    const RECORDINGS: &[&str] = &[
        include_str!(
            "../../../tests/transcripts/recordings/claude-agent-acp-bash-terminal-output.ndjson"
        ),
        include_str!(
            "../../../tests/transcripts/recordings/claude-agent-acp-background-task.ndjson"
        ),
        include_str!(
            "../../../tests/transcripts/recordings/claude-agent-acp-ask-user-question.ndjson"
        ),
    ];

    #[derive(Default)]
    struct Printed(Vec<Vec<u8>>);

    impl ChunkSink for Printed {
        fn chunk(&mut self, chunk: &Chunk<'_>) {
            let mut json = Vec::new();
            chunk.write(&mut json);
            self.0.push(json);
        }
    }

    /// The `session/update` notifications of a recording.
    fn notifications(recording: &str) -> Vec<Value> {
        let frames = records(recording).filter_map(|record| match record.unwrap() {
            Record::Frame(frame) if frame.direction == Direction::In => {
                serde_json::from_str::<Value>(frame.body.line()).ok()
            }
            _ => None,
        });
        frames
            .filter(|frame| frame["method"] == "session/update")
            .collect()
    }

    #[test]
    fn each_recorded_update_comes_out_once_and_in_order_beside_the_chunks() {
        for recording in RECORDINGS {
            let notifications = notifications(recording);
            let want: Vec<&Value> = notifications
                .iter()
                .map(|frame| &frame["params"]["update"])
                .collect();
            assert!(want.len() > 5, "{}", want.len());
            let (mut got, mut beside, mut alone) =
                (Vec::new(), Printed::default(), Printed::default());
            let (mut chunks, mut own) = (ChunkState::new("acp"), ChunkState::new("acp"));
            let (about, names) = (json!({}), Arc::default());
            let id = || "m".to_owned();
            let mut turn = Turn::start(id(), &about, &names, &mut chunks.view(&mut beside));
            let mut reference = Turn::start(id(), &about, &names, &mut own.view(&mut alone));
            let mut acp = Acp::default();
            for frame in &notifications {
                let line = frame.to_string();
                let mut events = Vec::new();
                let out = &mut Outgoing::default();
                acp.read(Child::MAIN, line.as_bytes(), &mut events, out);
                for event in &events {
                    let AgentEvent::Update {
                        update, original, ..
                    } = event
                    else {
                        continue;
                    };
                    let raw = RawView(|original: Original<'_>, _: Option<&str>| {
                        got.push(value(original.json()));
                    });
                    let both = &mut (chunks.view(&mut beside), raw);
                    turn.update(update, *original, both);
                    reference.update(update, *original, &mut own.view(&mut alone));
                }
            }
            turn.finish(
                &TurnEnd::default(),
                false,
                &mut (
                    chunks.view(&mut beside),
                    RawView(|_: Original<'_>, _: Option<&str>| panic!("no update")),
                ),
            );
            reference.finish(&TurnEnd::default(), false, &mut own.view(&mut alone));
            assert_eq!(got.iter().collect::<Vec<_>>(), want);
            assert!(beside.0.len() > 5 && beside.0 == alone.0);
        }
    }
}
