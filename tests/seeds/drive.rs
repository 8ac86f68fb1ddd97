//! Plays one turn of an agent to a bridge.

use acpipe::core::bridge::{AgentId, AgentInput, AgentSpec, Bridge, Effect, OnLost, Settings};
use acpipe::core::client::{Command, Notice, Outlet, Place, Reply, Token};
use acpipe::core::error::Error;
use acpipe::core::limits::Limits;
use acpipe::core::policy::Policy;
use acpipe::core::profile::Profile;
use acpipe::core::store::Volatile;
use acpipe::proto::chunk::Chunk;
use acpipe::proto::frame::Batch;
use acpipe::proto::wire::{AgentSource, Protocol, SessionOptions, Variables};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What came of a turn.
#[derive(Default)]
pub struct Played {
    /// The chunks the client got in the turn.
    pub chunks: Vec<Value>,
    /// The content blocks the agent was sent.
    pub prompt: Value,
    /// The turn's summary.
    pub summary: Value,
}

impl Outlet for Played {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        match answer {
            Ok(Reply::Turn(summary)) => self.summary = serde_json::to_value(*summary).unwrap(),
            Ok(_) => {}
            Err(error) => panic!("call {token:?} failed: {error:?}"),
        }
    }

    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>, _: &[u8]) {
        if place.turn.is_some() {
            let mut json = Vec::new();
            chunk.write(&mut json);
            let chunk = serde_json::from_slice(&json).expect("a chunk is JSON");
            self.chunks.push(chunk);
        }
    }

    fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: Notice) {}
}

/// One turn: the user's message, the agent's updates, and its answer (`result` or `error`).
pub fn play(message: &Value, updates: &[Value], answer: &Value) -> Played {
    let mut driver = Driver::new(Protocol::Acp);
    driver.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
    let call = driver.command(Command::Connect(params(json!({}))));
    driver.answer(&call, &json!({ "result": { "protocolVersion": 1 } }));
    let call = driver.command(Command::Ensure(params(json!({}))));
    driver.answer(&call, &json!({ "result": { "sessionId": "S" } }));
    let call = driver.command(Command::Prompt(params(json!({ "message": message }))));
    driver.played.prompt = call["params"]["prompt"].clone();
    for update in updates {
        driver.line(&json!({
            "method": "session/update",
            "params": { "sessionId": "S", "update": update },
        }));
    }
    driver.answer(&call, answer);
    driver.played
}

pub fn params<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("parameters as the wire has them")
}

/// A bridge, its client and its agent.
pub struct Driver {
    bridge: Bridge,
    pub played: Played,
    /// The process that was started last.
    agent: AgentId,
    tokens: u64,
    now: Instant,
}

impl Driver {
    pub fn new(protocol: Protocol) -> Self {
        let settings = Settings {
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
            policy: Policy::default(),
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
        };
        Self {
            bridge: Bridge::new(settings, Box::new(Volatile)),
            played: Played::default(),
            agent: AgentId(1),
            tokens: 0,
            now: Instant::now(),
        }
    }

    /// Gives a command and returns the call it made to the agent.
    pub fn command(&mut self, command: Command) -> Value {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.bridge
            .command(token, command, self.now, &mut self.played);
        self.sent()
    }

    /// Lets time pass and returns the call that was made then.
    pub fn wait(&mut self, time: Duration) -> Value {
        self.now += time;
        self.bridge.tick(self.now, &mut self.played);
        self.sent()
    }

    /// The last call to the agent.
    pub fn sent(&mut self) -> Value {
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

    fn answer(&mut self, call: &Value, answer: &Value) {
        assert!(!call["id"].is_null(), "no call was made");
        let mut line = answer.clone();
        line["id"] = call["id"].clone();
        self.line(&line);
    }

    fn line(&mut self, line: &Value) {
        let mut line = line.clone();
        line["jsonrpc"] = "2.0".into();
        self.says(&line.to_string());
    }

    /// The agent says a line.
    pub fn says(&mut self, line: &str) {
        self.hear(AgentInput::Batch(Batch::Lines(format!("{line}\n").into())));
    }

    pub fn hear(&mut self, input: AgentInput) {
        let rest = self
            .bridge
            .agent(self.agent, input, self.now, &mut self.played);
        assert!(rest.is_none(), "the outlet is never full");
        self.bridge.drained(true, self.now, &mut self.played);
    }
}
