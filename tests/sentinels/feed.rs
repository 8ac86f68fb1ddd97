//! Feeds an agent's lines to a bridge in a turn, and collects what its client gets.

use acpipe::core::bridge::{AgentId, AgentInput, AgentSpec, Bridge, Effect, OnLost, Settings};
use acpipe::core::client::{Command, Notice, Outlet, Place, Reply, Token};
use acpipe::core::error::Error;
use acpipe::core::fold::Fold;
use acpipe::core::limits::Limits;
use acpipe::core::policy::Mode;
use acpipe::core::profile::Profile;
use acpipe::core::store::Volatile;
use acpipe::proto::chunk::Chunk;
use acpipe::proto::frame::Batch;
use acpipe::proto::wire::{AgentSource, Protocol, SessionOptions, Variables};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Instant;

/// The agent's id of the session.
pub const SESSION: &str = "S";

/// What an agent says in a turn.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Whether permission is given.
    pub approve: bool,
    /// The agent's lines before its answer.
    pub lines: Vec<Value>,
    /// Its answer.
    pub answer: Value,
    /// Whether the lines come after the answer.
    pub late: bool,
}

/// What the client got.
#[derive(Debug, Default)]
pub struct Got {
    pub chunks: Vec<Value>,
    /// The chunks of the turn, folded.
    pub message: Value,
}

/// What the client saw.
#[derive(Default)]
pub struct Seen {
    pub chunks: Vec<Value>,
    pub notices: Vec<Value>,
    pub fold: Fold,
    /// The answer to `session/ensure`.
    pub session: Value,
    /// The turn's summary.
    pub summary: Value,
}

impl Outlet for Seen {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        match answer {
            Ok(Reply::Turn(summary)) => {
                self.summary = serde_json::to_value(*summary).expect("a summary is JSON");
            }
            Ok(Reply::Session(session)) => {
                self.session = serde_json::to_value(*session).expect("an answer is JSON");
            }
            Ok(_) => {}
            Err(error) => panic!("call {token:?} failed: {error:?}"),
        }
    }

    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>, _: &[u8]) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        let chunk = serde_json::from_slice(&json).expect("a chunk is JSON");
        if place.turn.is_some() {
            self.fold.push(&chunk);
        }
        self.chunks.push(chunk);
    }

    fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: Notice) {
        if let Notice::SessionState(state) = notice {
            let state = serde_json::to_value(state).expect("a notice is JSON");
            self.notices
                .push(json!({ "type": "session/state", "state": state["state"] }));
        }
    }
}

/// Plays a scene in a new session.
pub fn play(scene: &Scene) -> Got {
    let mut feeder = Feeder::new(scene.approve);
    feeder.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
    let call = feeder.command(Command::Connect(params(json!({}))));
    feeder.answer(&call, &json!({ "protocolVersion": 1 }));
    let call = feeder.command(Command::Ensure(params(json!({}))));
    feeder.answer(&call, &json!({ "sessionId": SESSION }));
    let call = feeder.command(Command::Prompt(params(json!({ "message": "go" }))));
    if scene.late {
        feeder.answer(&call, &scene.answer);
        feeder.seen = Seen::default();
    }
    for line in &scene.lines {
        feeder.line(line.clone());
    }
    if !scene.late {
        feeder.answer(&call, &scene.answer);
    }
    if scene.late {
        // Between turns the session's state is told by a notice alone.
        let notices = std::mem::take(&mut feeder.seen.notices);
        feeder.seen.chunks.extend(notices);
    }
    Got {
        chunks: feeder.seen.chunks,
        message: feeder.seen.fold.message(),
    }
}

/// Parameters of a command.
pub fn params<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("parameters as the wire has them")
}

/// What a bridge is told at its start.
pub fn settings(approve: bool, protocol: Protocol) -> Settings {
    Settings {
        default_agent: AgentSpec {
            command: "agent".into(),
            args: Vec::new(),
            cwd: "/project".into(),
            env: Variables::default(),
            source: AgentSource::CommandLine,
            protocol,
            child_per_session: false,
            options: SessionOptions::default(),
        },
        policy: if approve {
            Mode::Approve.into()
        } else {
            Mode::Deny.into()
        },
        profile: Profile::V7,
        cwd: "/project".into(),
        id_prefix: "t".into(),
        clock: (Instant::now(), 0),
        idle_after: None,
        max_sessions: None,
        inherited: Variables::default(),
        limits: Limits::default(),
        mcp_servers: Vec::new(),
        on_lost: OnLost::default(),
    }
}

struct Feeder {
    bridge: Bridge,
    seen: Seen,
    agent: AgentId,
    tokens: u64,
    now: Instant,
}

impl Feeder {
    fn new(approve: bool) -> Self {
        Self {
            bridge: Bridge::new(settings(approve, Protocol::Acp), Box::new(Volatile)),
            seen: Seen::default(),
            agent: AgentId(1),
            tokens: 0,
            now: Instant::now(),
        }
    }

    /// Gives a command and returns the call it made to the agent.
    fn command(&mut self, command: Command) -> Value {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.bridge
            .command(token, command, self.now, &mut self.seen);
        let mut call = Value::Null;
        for effect in self.bridge.effects(self.now) {
            match effect {
                Effect::Spawn(id, _) => self.agent = id,
                Effect::Send(_, line) => {
                    call = serde_json::from_slice(&line).expect("one line of JSON");
                }
                _ => {}
            }
        }
        call
    }

    fn answer(&mut self, call: &Value, result: &Value) {
        assert!(!call["id"].is_null(), "no call was made");
        self.line(json!({ "id": call["id"], "result": result }));
    }

    fn line(&mut self, mut line: Value) {
        line["jsonrpc"] = "2.0".into();
        let batch = AgentInput::Batch(Batch::Lines(format!("{line}\n").into()));
        let rest = self
            .bridge
            .agent(self.agent, batch, self.now, &mut self.seen);
        assert!(rest.is_none(), "the outlet is never full");
        self.bridge.drained(true, self.now, &mut self.seen);
    }
}
