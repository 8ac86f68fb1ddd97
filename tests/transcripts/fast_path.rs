//! Fast path against full parser: a stream of lines has the same result, whether acpipe recognizes the shapes of lines
//! or parses each line.
//!
//! One hub gets the lines in batches. The other gets the same lines with white space that differs from line to line, so
//! that no line has the shape of an earlier one. The lines are those of the recordings, generated ones, and mutations
//! of both. `LINES=1000000 cargo test --release --test transcripts fast_path` compares a million lines.

use crate::names;
use acpipe::testing::SettingsBuilder;
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use acpipe_core::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use serde_json::{Value, json};
use std::time::Instant;

/// Lines that are compared without `LINES`.
const USUAL_LINES: usize = 6_000;

/// Lines of one turn.
const TURN: usize = 500;

const SESSION: &str = "sess-1";

/// Pseudorandom numbers, the same in each run (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Client that keeps all chunks and the result of its turn.
#[derive(Default)]
struct Received {
    chunks: Vec<(u64, String)>,
    summary: Option<Value>,
}

impl ClientSink for Received {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        if let Reply::Turn(summary) = answer.unwrap() {
            let mut summary = serde_json::to_value(summary).unwrap();
            for varying in ["durationMs", "overheadMs"] {
                summary.as_object_mut().unwrap().remove(varying).unwrap();
            }
            self.summary = Some(summary);
        }
    }

    fn chunk(&mut self, address: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.json_chunk(address, json);
    }

    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        let json = String::from_utf8(json.to_vec()).unwrap();
        self.chunks.push((address.seq, json));
    }

    fn retract(&mut self, _: &str, _: u64) {
        unreachable!("memory is never full");
    }

    fn notify(&mut self, _: &Notice) {}
}

/// A hub with one turn.
struct Turn {
    hub: Hub,
    agent: AgentId,
    received: Received,
}

impl Turn {
    fn begin() -> Self {
        let settings = SettingsBuilder::new(Instant::now()).build();
        let mut turn = Self {
            hub: Hub::new(settings, Box::new(MemoryStore)),
            agent: AgentId(0),
            received: Received::default(),
        };
        let prompt =
            json!({ "message": { "role": "user", "parts": [{ "type": "text", "text": "go" }] } });
        let commands = [
            Command::Initialize(wire::InitializeParams::of(
                wire::ClientCapabilities::default(),
            )),
            Command::Connect(wire::ConnectParams::default()),
            Command::Ensure(wire::EnsureParams::default()),
            Command::Prompt(serde_json::from_value(prompt).unwrap()),
        ];
        let answers = [
            json!({ "protocolVersion": 1 }),
            json!({ "sessionId": SESSION }),
        ];
        for (n, command) in commands.into_iter().enumerate() {
            let token = Token::first(n as u64);
            turn.hub.command(
                token,
                command,
                &mut HubCx::new(Instant::now(), &mut turn.received),
            );
            turn.take_effects();
            if let Some(result) = n.checked_sub(1).and_then(|n| answers.get(n)) {
                turn.answer(n, result);
            }
        }
        turn
    }

    fn take_effects(&mut self) {
        for effect in self.hub.effects(Instant::now()) {
            if let Effect::Open(id, _) = effect {
                self.agent = id;
            }
        }
    }

    fn answer(&mut self, id: usize, result: &Value) {
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        self.read(format!("{answer}\n").into_bytes());
    }

    fn read(&mut self, lines: Vec<u8>) {
        let input = AgentInput::Batch(Batch::Lines(lines.into()));
        let now = Instant::now();
        let rest = self
            .hub
            .agent(self.agent, input, &mut HubCx::new(now, &mut self.received));
        assert!(rest.is_none());
        self.hub
            .drained(true, &mut HubCx::new(now, &mut self.received));
        self.hub.commit(&mut HubCx::new(now, &mut self.received));
        self.take_effects();
    }

    fn end(mut self) -> Received {
        self.answer(3, &json!({ "stopReason": "end_turn" }));
        self.received
    }
}

/// Returns the updates of all recordings of ACP agents, in one session.
fn recorded() -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for name in names("recordings") {
        let path = crate::folder()
            .join("recordings")
            .join(format!("{name}.ndjson"));
        for record in std::fs::read_to_string(path).unwrap().lines() {
            let record: Value = serde_json::from_str(record).unwrap();
            let mut frame = record["frame"].clone();
            if frame["method"] == "session/update" {
                frame["params"]["sessionId"] = SESSION.into();
                lines.push(frame.to_string().into_bytes());
            }
        }
    }
    assert!(lines.len() > 1_000, "recordings are missing");
    lines
}

const TEXTS: [&str; 16] = [
    r#""plain text of some length""#,
    r#""x""#,
    r#""""#,
    r#"" ""#,
    r#""é ü 😀""#,
    r#""line\nline\t\"quoted\" \\ \/""#,
    r#""\u00e9 \ud83d\ude00""#,
    r#""half \ud83d""#,
    r#""\ude00 other half""#,
    "\"raw \u{1} control\"",
    r#""bad \x escape""#,
    r#""a","text":"b""#,
    r#""a"},"x":{"y":"b""#,
    "7",
    "null",
    r#"{"a":["b"]}"#,
];

/// Returns a line of an agent, most often one of a stream.
fn generated(random: &mut Random) -> Vec<u8> {
    let text = if random.below(4) == 0 {
        *random.one_of(&TEXTS)
    } else {
        TEXTS[0]
    };
    let kind = *random.one_of(&[
        "agent_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
    ]);
    let id = *random.one_of(&["", "", r#""messageId":"m1","#, r#""messageId":"m2","#]);
    let call = random.below(50);
    let update = match random.below(24) {
        0 => format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"c{call}","title":{text},"kind":"read","rawInput":{{"a":{text}}}}}"#
        ),
        1 => format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"c{call}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":{text}}}}}]}}"#
        ),
        2 => format!(
            r#"{{"sessionUpdate":"plan","entries":[{{"content":{text},"priority":"low","status":"pending"}}]}}"#
        ),
        3 => format!(
            r#"{{"sessionUpdate":"{kind}","_meta":{{"a":{text}}},"content":{{"type":"text","text":{text}}}}}"#
        ),
        4 => format!(r#"{{"sessionUpdate":"{kind}","content":{{"text":{text},"type":"text"}}}}"#),
        _ => {
            format!(r#"{{"sessionUpdate":"{kind}",{id}"content":{{"type":"text","text":{text}}}}}"#)
        }
    };
    let session = if random.below(40) == 0 {
        "other"
    } else {
        SESSION
    };
    format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{update}}}}}"#)
        .into_bytes()
}

/// Changes some bytes of a line.
fn mutate(line: &mut Vec<u8>, random: &mut Random) {
    const BYTES: &[u8] = b"\"\\{}[]:, \r\t\x00\x7f\xc3\xa9\xff0an_u";
    for _ in 0..=random.below(2) {
        let at = random.below(line.len().max(1));
        match random.below(4) {
            0 => line.truncate(at),
            1 => line.insert(at, *random.one_of(BYTES)),
            2 if at < line.len() => line[at] = *random.one_of(BYTES),
            _ if at < line.len() => {
                line.remove(at);
            }
            _ => {}
        }
    }
}

/// Returns the line with white space that makes its shape another one than that of the lines before.
fn reshaped(line: &[u8], n: usize) -> Vec<u8> {
    match line {
        [b'{', rest @ ..] => [b"{", " ".repeat(1 + n % 7).as_bytes(), rest].concat(),
        _ => line.to_vec(),
    }
}

#[test]
fn known_shapes_of_lines_have_the_same_result_as_the_full_parser() {
    let wanted = std::env::var("LINES").map_or(USUAL_LINES, |lines| lines.parse().unwrap());
    let mut random = Random(0x5EED_CAFE_F00D);
    let recorded = recorded();
    let mut next = 0;
    let mut compared = 0;
    while compared < wanted {
        let (mut fast, mut slow) = (Turn::begin(), Turn::begin());
        let mut batch = Vec::new();
        for n in 0..TURN {
            let mut line = match random.below(4) {
                0 => {
                    next += 1;
                    recorded[next % recorded.len()].clone()
                }
                _ => generated(&mut random),
            };
            if random.below(8) == 0 {
                mutate(&mut line, &mut random);
            }
            slow.read([&reshaped(&line, n), b"\n".as_slice()].concat());
            batch.extend_from_slice(&line);
            batch.push(b'\n');
            if random.below(12) == 0 {
                fast.read(std::mem::take(&mut batch));
            }
        }
        fast.read(batch);
        let (fast, slow) = (fast.end(), slow.end());
        let first = fast
            .chunks
            .iter()
            .zip(&slow.chunks)
            .find(|(fast, slow)| fast != slow);
        assert_eq!(
            first, None,
            "after {compared} lines: left by shape, right parsed"
        );
        assert_eq!(
            fast.chunks.len(),
            slow.chunks.len(),
            "after {compared} lines"
        );
        assert_eq!(fast.summary, slow.summary, "after {compared} lines");
        assert!(fast.chunks.len() > TURN / 3, "the lines become chunks");
        compared += TURN;
    }
}
