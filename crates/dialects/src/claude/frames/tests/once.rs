//! Property tests: every text is shown once, whatever part of the stream is received and however the output
//! of two subagents is interleaved.

use super::*;
use std::collections::BTreeMap;

/// Deterministic pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    /// Returns a text in pieces.
    fn pieces(&mut self) -> Vec<String> {
        const PIECES: &[&str] = &["a", "b ", "\n", "é\"", "😀", "word "];
        let count = 1 + self.below(5);
        (0..count)
            .map(|_| PIECES[self.below(PIECES.len())].to_owned())
            .collect()
    }
}

/// Returns the lines of a message of one to three blocks, some of them missing, and its complete text.
fn message(id: &str, parent: &Value, dice: &mut Dice) -> (Vec<String>, String) {
    let event = |event: Value| stream(id, parent.clone(), event);
    let (mut lines, mut text) = (Vec::new(), String::new());
    let streamed = dice.below(4) > 0;
    let with_whole = !streamed || dice.below(3) > 0;
    if streamed && dice.below(4) > 0 {
        lines.push(event(
            json!({"type": "message_start", "message": {"id": id}}),
        ));
    }
    for index in 0..=dice.below(3) {
        let pieces = dice.pieces();
        let all = pieces.concat();
        if streamed && dice.below(4) > 0 {
            lines.push(event(json!({
                "type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""},
            })));
        }
        // A whole block may come alone or after some of its pieces; without whole blocks, all pieces come.
        let bits = match (streamed, with_whole) {
            (false, _) => 0,
            (true, true) => dice.below(pieces.len() + 1),
            (true, false) => pieces.len(),
        };
        for piece in &pieces[..bits] {
            lines.push(event(json!({
                "type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": piece},
            })));
        }
        let mut closing = Vec::new();
        if streamed {
            closing.push(event(json!({"type": "content_block_stop", "index": index})));
        }
        if with_whole {
            let mut frame: Value =
                serde_json::from_str(&whole(id, json!([{"type": "text", "text": all}]))).unwrap();
            frame["parent_tool_use_id"] = parent.clone();
            closing.insert(dice.below(closing.len() + 1), frame.to_string());
        }
        lines.extend(closing);
        text += &all;
    }
    if streamed {
        lines.push(event(
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        ));
        lines.push(event(json!({"type": "message_stop"})));
    }
    (lines, text)
}

/// Returns the text that was reported for each speaker.
fn texts(lines: &[String]) -> BTreeMap<String, String> {
    let mut frames = Frames::default();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for line in lines {
        let mut events = Vec::new();
        frames.read(&Frame::read(line).unwrap(), line, "s", &mut events);
        for event in &events {
            let AgentEvent::Update { update, .. } = event else {
                panic!("{event:?}");
            };
            let (speaker, update) = match update {
                Update::FromSubagent { id, update } => (id.to_string(), update.as_ref()),
                update => (String::new(), update),
            };
            if let Update::Message(piece) = update {
                let said = piece.content.text().unwrap().decode();
                texts.entry(speaker).or_default().push_str(&said);
            }
        }
    }
    texts
}

#[test]
fn every_text_is_reported_once() {
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let speakers = [Value::Null, json!("p"), json!("q")];
        let mut queues: Vec<Vec<String>> = Vec::new();
        let mut want: BTreeMap<String, String> = BTreeMap::new();
        for (at, parent) in speakers.iter().enumerate() {
            let mut queue = Vec::new();
            for n in 0..=dice.below(3) {
                let (lines, text) = message(&format!("m{at}{n}"), parent, &mut dice);
                queue.extend(lines);
                let name = parent.as_str().unwrap_or_default().to_owned();
                *want.entry(name).or_default() += &text;
            }
            queue.reverse();
            queues.push(queue);
        }
        let mut lines = Vec::new();
        while queues.iter().any(|queue| !queue.is_empty()) {
            let at = dice.below(queues.len());
            lines.extend(queues[at].pop());
        }
        assert_eq!(texts(&lines), want, "seed {seed}: {lines:#?}");
    }
}

#[test]
fn interrupted_text_is_reported_once() {
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let pieces = dice.pieces();
        let all = pieces.concat();
        let mut lines = Vec::new();
        for attempt in 0..=dice.below(3) {
            let id = format!("broken{attempt}");
            lines.push(start(&id));
            for piece in &pieces[..dice.below(pieces.len() + 1)] {
                lines.push(text_delta(&id, 0, piece));
            }
            lines.push(stop(&id, 0));
            lines.push(broken(&id));
        }
        let streamed = dice.below(2) == 0;
        if streamed {
            lines.push(start("last"));
            lines.extend(pieces.iter().map(|piece| text_delta("last", 0, piece)));
        }
        lines.push(whole("last", json!([{"type": "text", "text": all}])));
        let want = BTreeMap::from([(String::new(), all)]);
        assert_eq!(texts(&lines), want, "seed {seed}: {lines:#?}");
    }
}
