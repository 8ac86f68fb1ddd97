//! Feeds a recording to a bridge and collects what its client gets.

use acpipe::core::bridge::{AgentId, AgentInput, AgentSpec, Bridge, Effect, Settings};
use acpipe::core::client::{Command, Notice, Outlet, Place, Reply, Token};
use acpipe::core::error::Error;
use acpipe::core::permit::Policy;
use acpipe::core::profile::Profile;
use acpipe::proto::chunk::Chunk;
use acpipe::proto::frame::Batch;
use acpipe::proto::wire::{self, AgentSource};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// One turn as the client saw it.
#[derive(Debug)]
pub struct Turn {
    pub id: String,
    pub chunks: Vec<Value>,
    /// The summary without times, or the error.
    pub end: Value,
}

#[derive(Default)]
struct Seen {
    turns: Vec<Turn>,
    last_seq: HashMap<String, u64>,
}

impl Outlet for Seen {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let end = match answer {
            Ok(Reply::Turn(summary)) => {
                let mut summary = serde_json::to_value(*summary).unwrap();
                for time in ["durationMs", "overheadMs"] {
                    summary.as_object_mut().unwrap().remove(time);
                }
                summary
            }
            Ok(_) => return,
            Err(error) => panic!("call {token:?} failed: {error:?}"),
        };
        let turn = self
            .turns
            .iter_mut()
            .find(|t| end["turnId"] == t.id.as_str());
        turn.expect("a summary without chunks").end = json!({ "summary": end });
    }

    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>) {
        let last = self.last_seq.entry(place.session.to_owned()).or_default();
        assert_eq!(place.seq, *last + 1, "numbers rise by one");
        *last = place.seq;
        let mut json = Vec::new();
        chunk.write(&mut json);
        let chunk = serde_json::from_slice(&json).expect("a chunk is JSON");
        let id = place.turn.unwrap_or("outside of turns");
        match self.turns.iter_mut().find(|t| t.id == id) {
            Some(turn) => turn.chunks.push(chunk),
            None if place.turn.is_none() => {}
            None => self.turns.push(Turn {
                id: id.to_owned(),
                chunks: vec![chunk],
                end: Value::Null,
            }),
        }
    }

    fn notify(&mut self, _: Notice) {}
}

struct Replay {
    bridge: Bridge,
    seen: Seen,
    agent: AgentId,
    tokens: u64,
    /// The recording's ids of calls to the agent → the bridge's.
    ids: HashMap<String, Value>,
    /// The recording's sessions → the client's.
    sessions: HashMap<String, String>,
    opening: HashMap<String, String>,
    now: Instant,
}

/// The turns of a recording, for a client of that profile.
pub fn replay(recording: &str, policy: Policy, profile: Profile) -> Vec<Turn> {
    let now = Instant::now();
    let settings = Settings {
        default_agent: AgentSpec {
            command: "agent".into(),
            args: Vec::new(),
            cwd: "/home/user/project".into(),
            env: BTreeMap::new(),
            source: AgentSource::CommandLine,
        },
        policy,
        profile,
        cwd: "/home/user/project".into(),
        id_prefix: "t".into(),
    };
    let mut replay = Replay {
        bridge: Bridge::new(settings),
        seen: Seen::default(),
        agent: AgentId(1),
        tokens: 0,
        ids: HashMap::new(),
        sessions: HashMap::new(),
        opening: HashMap::new(),
        now,
    };
    replay.command(Command::Initialize(wire::InitializeParams {
        protocol_version: 1,
        client_info: None,
        capabilities: wire::ClientCapabilities::default(),
        chunk_profile: None,
    }));
    for line in recording.lines() {
        let entry: Value = serde_json::from_str(line).expect("a recording is NDJSON");
        match (
            entry["dir"].as_str(),
            entry.get("frame"),
            entry["raw"].as_str(),
        ) {
            (Some("out"), Some(frame), _) => replay.client_sent(frame),
            (Some("in"), Some(frame), _) => replay.agent_sent(frame.clone()),
            (Some("in"), None, Some(raw)) => replay.line(raw.to_owned()),
            _ => {}
        }
    }
    let exit = AgentInput::Exited(acpipe::core::bridge::Exit::default());
    replay.agent_input(exit);
    replay.seen.turns
}

impl Replay {
    /// Gives a command and returns the ids of the calls it made to the agent.
    fn command(&mut self, command: Command) -> Vec<Value> {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.bridge
            .command(token, command, self.now, &mut self.seen);
        self.calls()
    }

    fn calls(&mut self) -> Vec<Value> {
        let mut ids = Vec::new();
        for effect in self.bridge.effects() {
            match effect {
                Effect::Spawn(id, _) => self.agent = id,
                Effect::Send(_, lines) => {
                    for line in String::from_utf8(lines).unwrap().lines() {
                        let frame: Value = serde_json::from_str(line).expect("a line is JSON");
                        if frame.get("method").is_some() && frame.get("id").is_some() {
                            ids.push(frame["id"].clone());
                        }
                    }
                }
                _ => {}
            }
        }
        ids
    }

    fn client_sent(&mut self, frame: &Value) {
        let session = frame["params"]["sessionId"].as_str().unwrap_or_default();
        let known = self.sessions.get(session).cloned();
        let calls = match frame["method"].as_str() {
            Some("initialize") => self.command(Command::Connect(wire::ConnectParams::default())),
            Some("session/new") => {
                let id = format!("s{}", self.opening.len() + 1);
                self.opening.insert(frame["id"].to_string(), id.clone());
                self.command(Command::Ensure(wire::EnsureParams {
                    session_id: Some(id),
                    cwd: None,
                    mcp_servers: Vec::new(),
                }))
            }
            Some("session/prompt") => self.command(Command::Prompt(wire::PromptParams {
                session_id: known,
                message: wire::UserMessage::text("what the recording says"),
                turn_id: None,
                degrade: false,
            })),
            Some("session/cancel") => self.command(Command::Cancel(wire::CancelParams {
                session_id: known,
                turn_id: None,
            })),
            _ => Vec::new(),
        };
        if let Some(id) = calls.first() {
            self.ids.insert(frame["id"].to_string(), id.clone());
        }
    }

    fn agent_sent(&mut self, mut frame: Value) {
        if frame.get("method").is_none() {
            let recorded = frame["id"].to_string();
            if let (Some(client), Some(agent)) = (
                self.opening.get(&recorded),
                frame["result"]["sessionId"].as_str(),
            ) {
                self.sessions.insert(agent.to_owned(), client.clone());
            }
            match self.ids.get(&recorded) {
                Some(ours) => frame["id"] = ours.clone(),
                // An answer to something the bridge does not ask.
                None => return,
            }
        }
        self.line(frame.to_string());
    }

    fn agent_input(&mut self, input: AgentInput) {
        let rest = self
            .bridge
            .agent(self.agent, input, self.now, &mut self.seen);
        assert!(rest.is_none(), "the outlet is never full");
        self.bridge.drained(true, self.now, &mut self.seen);
    }

    fn line(&mut self, mut line: String) {
        line.push('\n');
        let batch = AgentInput::Batch(Batch::Lines(line.into()));
        self.agent_input(batch);
        self.calls();
    }
}
