//! Recorded sessions that real agents created and loaded again.

use crate::live::{Live, Replayed, SESSION};
use acpipe_protocol::tape::{Direction, TapeRecord, records};
use serde_json::{Value, json};
use std::path::Path;

/// Recordings with turns are also tested as transcripts; the others only load.
const FOLDERS: [&str; 2] = ["tests/transcripts/recordings", "tests/replays/recordings"];

/// Agents, each with the recordings of one session in order.
pub const SCENARIOS: &[(&str, &[&str])] = &[
    (
        "claude-agent-acp",
        &[
            "claude-agent-acp-load-0-make",
            "claude-agent-acp-load-1-replay",
            "claude-agent-acp-load-2-resume",
            "claude-agent-acp-load-4-same-process-twice",
            "claude-agent-acp-load-5-other-cwd",
        ],
    ),
    (
        "opencode",
        &[
            "opencode-lifecycle-1",
            "opencode-lifecycle-2load",
            "opencode-lifecycle-3resume",
        ],
    ),
    ("gemini", &["gemini-lifecycle-1", "gemini-lifecycle-2load"]),
    (
        "zedcodex",
        &[
            "zedcodex-lifecycle-1",
            "zedcodex-lifecycle-2load",
            "zedcodex-lifecycle-3resume",
        ],
    ),
    (
        "testy",
        &[
            "testy-lifecycle-1",
            "testy-lifecycle-2load",
            "testy-lifecycle-3resume",
        ],
    ),
];

/// A load: the messages of the live turns, and the replayed ones.
pub struct Load {
    pub name: String,
    pub live: Vec<Value>,
    pub replayed: Vec<Value>,
}

/// Returns all loads of a session.
pub fn loads(recordings: &[&str]) -> Vec<Load> {
    let mut loads = Vec::new();
    let mut history = Vec::new();
    for name in recordings {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = FOLDERS
            .iter()
            .map(|folder| root.join(folder).join(format!("{name}.ndjson")));
        let file = files.find(|file| file.exists()).unwrap();
        let recording = std::fs::read_to_string(file).unwrap();
        Player::default().play(name, &recording, &mut history, &mut loads);
    }
    loads
}

/// One agent process of a recording.
#[derive(Default)]
struct Player {
    /// The session that is created and loaded; others, such as its forks, are ignored.
    session: Option<Value>,
    /// Id of the request that creates the session, until its response.
    opening: Option<Value>,
    /// The running turn, and the id of its prompt.
    turn: Option<(Live, Value)>,
    /// Replay since the load request: some agents replay after their response.
    load: Option<Replayed>,
    load_id: Value,
}

impl Player {
    fn play(
        mut self,
        name: &str,
        recording: &str,
        history: &mut Vec<Value>,
        loads: &mut Vec<Load>,
    ) {
        for record in records(recording) {
            let TapeRecord::Frame(frame) = record.unwrap() else {
                continue;
            };
            let message: Value = serde_json::from_str(frame.body.line()).unwrap_or_default();
            match frame.direction {
                Direction::Out if message.get("method").is_some() => {
                    loads.extend(self.loaded(name, history, loads.len()));
                    self.call(&message);
                }
                Direction::Out => {}
                Direction::In => self.agent(&message, history),
            }
        }
        loads.extend(self.loaded(name, history, loads.len()));
        assert!(self.turn.is_none(), "{name} ends in a turn");
    }

    fn call(&mut self, frame: &Value) {
        let params = &frame["params"];
        match frame["method"].as_str().unwrap() {
            "session/new" => self.opening = Some(frame["id"].clone()),
            "session/resume" => self.session = Some(params["sessionId"].clone()),
            "session/load" => {
                self.session = Some(params["sessionId"].clone());
                self.load = Some(Replayed::new());
                self.load_id = frame["id"].clone();
            }
            "session/prompt" if self.is_ours(params) => {
                let mut live = Live::new();
                let blocks = params["prompt"].as_array().unwrap();
                live.prompt(&blocks.iter().map(part).collect::<Vec<_>>());
                self.turn = Some((live, frame["id"].clone()));
            }
            _ => {}
        }
    }

    fn is_ours(&self, params: &Value) -> bool {
        self.session.as_ref() == Some(&params["sessionId"])
    }

    fn agent(&mut self, frame: &Value, history: &mut Vec<Value>) {
        if frame.get("method").is_none() {
            self.answer(frame, history);
        } else if self.is_ours(&frame["params"]) {
            let mut frame = frame.clone();
            frame["params"]["sessionId"] = SESSION.into();
            let line = frame.to_string();
            if let Some((live, _)) = &mut self.turn {
                live.line(&line);
            }
            if let Some(load) = &mut self.load {
                load.line(&line);
            }
        }
    }

    fn answer(&mut self, frame: &Value, history: &mut Vec<Value>) {
        if self.opening.as_ref() == Some(&frame["id"]) {
            self.session = Some(frame["result"]["sessionId"].clone());
        }
        if self.load_id == frame["id"] && frame.get("error").is_some() {
            self.load = None;
        }
        if let Some((live, id)) = &mut self.turn
            && *id == frame["id"]
        {
            live.end(frame);
            // A refused prompt is not part of the session.
            if frame.get("result").is_some() {
                history.append(&mut live.messages);
            }
            self.turn = None;
        }
    }

    /// Returns the messages of the last load.
    fn loaded(&mut self, name: &str, history: &[Value], before: usize) -> Option<Load> {
        Some(Load {
            name: format!("{name}, load {}", before + 1),
            live: history.to_vec(),
            replayed: self.load.take()?.finish(),
        })
    }
}

/// Converts a recorded block back to the part of the user's message.
fn part(block: &Value) -> Value {
    assert_eq!(block["type"], "text", "the recorded prompts are text");
    json!({ "type": "text", "text": block["text"] })
}
