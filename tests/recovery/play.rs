//! Plays a client and its agent to a bridge, in a time that nobody has to wait for.

use super::agent::Agent;
use super::store::Shared;
use acpipe::core::bridge::{AgentId, AgentInput, AgentSpec, Bridge, Effect, OnLost, Settings};
use acpipe::core::client::{Command, History, Notice, Outlet, Place, Reply, Token};
use acpipe::core::error::Error;
use acpipe::core::limits::Limits;
use acpipe::core::policy::Policy;
use acpipe::core::profile::Profile;
use acpipe::proto::chunk::Chunk;
use acpipe::proto::frame::Batch;
use acpipe::proto::wire::{AgentSource, Protocol, SessionOptions, Variables};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// An error as the client gets it.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub data: Value,
}

/// What the client got.
#[derive(Debug, Default)]
pub struct Heard {
    answers: HashMap<Token, Result<Value, Failure>>,
    pub chunks: Vec<Value>,
    /// The number of the last chunk.
    pub seq: u64,
}

impl Outlet for Heard {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        let answer = answer.map_err(|error| Failure {
            data: error.data(),
            message: error.message,
        });
        assert!(
            self.answers.insert(token, answer).is_none(),
            "answered twice"
        );
    }

    fn chunk(&mut self, place: Place<'_>, _: &Chunk<'_>, json: &[u8]) {
        assert!(place.turn.is_some(), "part of no turn");
        assert_eq!(place.seq, self.seq + 1, "numbers rise by one");
        self.seq = place.seq;
        self.chunks.push(serde_json::from_slice(json).unwrap());
    }

    fn stored_chunk(&mut self, _: Place<'_>, chunk: &Value) {
        panic!("nobody asked for {chunk}");
    }
    fn retract(&mut self, _: &str, _: u64) {
        panic!("the store takes everything");
    }
    fn notify(&mut self, _: Notice) {}
}

pub struct Play {
    bridge: Bridge,
    pub heard: Heard,
    pub agent: Agent,
    process: AgentId,
    tokens: u64,
    now: Instant,
}

impl Play {
    /// A bridge on this store, connected to this agent; `seq` is the number of the last chunk before.
    pub fn new(store: Shared, agent: Agent, seq: u64, clear: bool) -> Self {
        let now = Instant::now();
        let settings = Settings {
            default_agent: AgentSpec {
                command: "agent".into(),
                args: Vec::new(),
                cwd: "/".into(),
                env: Variables::default(),
                source: AgentSource::CommandLine,
                protocol: Protocol::default(),
                child_per_session: false,
                options: SessionOptions::default(),
            },
            policy: Policy::default(),
            profile: Profile::V7,
            cwd: "/".into(),
            id_prefix: format!("t{seq}"),
            clock: (now, 0),
            idle_after: None,
            max_sessions: None,
            inherited: Variables::default(),
            limits: Limits::default(),
            mcp_servers: Vec::new(),
            on_lost: OnLost {
                clear,
                reinject: 1000,
            },
        };
        let mut play = Self {
            bridge: Bridge::new(settings, Box::new(store)),
            heard: Heard {
                seq,
                ..Heard::default()
            },
            agent,
            process: AgentId(0),
            tokens: 0,
            now,
        };
        play.ask(Command::Initialize(params(json!({ "protocolVersion": 1 }))))
            .unwrap();
        play.ask(Command::Connect(params(json!({})))).unwrap();
        play
    }

    pub fn ensure(&mut self, wish: &Value) -> Result<Value, Failure> {
        self.ask(Command::Ensure(params(wish.clone())))
    }

    /// The summary of a turn.
    pub fn prompt(&mut self, text: &str) -> Value {
        let prompt = Command::Prompt(params(json!({ "message": text })));
        self.ask(prompt).unwrap()
    }

    /// The texts of the stored messages.
    pub fn messages(&mut self) -> Vec<String> {
        let list = Command::History(History::ListMessages(params(json!({}))));
        let list = self.ask(list).unwrap();
        let messages = list["messages"].as_array().unwrap();
        let text = |message: &Value| {
            let parts = message["parts"].as_array().unwrap();
            parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect()
        };
        messages.iter().map(text).collect()
    }

    /// The agent answers what it did not answer before.
    pub fn answer_late(&mut self) {
        for id in std::mem::take(&mut self.agent.hung) {
            self.say(&[json!({ "id": id, "result": {} })]);
        }
        self.settle();
    }

    /// Asks, and waits for the answer as long as the bridge waits for something.
    fn ask(&mut self, command: Command) -> Result<Value, Failure> {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.bridge
            .command(token, command, self.now, &mut self.heard);
        loop {
            self.settle();
            if let Some(answer) = self.heard.answers.remove(&token) {
                return answer;
            }
            if self.agent.late.is_empty() {
                let (at, _) = self.bridge.deadline().expect("it waits for something");
                self.now = at;
                self.bridge.tick(at, &mut self.heard);
            } else {
                self.now += Duration::from_millis(100);
                let piece = self.agent.late.remove(0);
                self.say(&[piece]);
            }
        }
    }

    /// Lets bridge and agent talk until they have nothing more to say.
    fn settle(&mut self) {
        loop {
            self.bridge.drained(true, self.now, &mut self.heard);
            self.bridge.commit(self.now, &mut self.heard);
            let effects = self.bridge.effects(self.now);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Spawn(id, _) => self.process = id,
                    Effect::Send(_, lines) => {
                        for line in String::from_utf8(lines).unwrap().lines() {
                            let answer = self.agent.hear(&serde_json::from_str(line).unwrap());
                            self.say(&answer);
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn say(&mut self, lines: &[Value]) {
        let line = |line: &Value| {
            let mut line = line.clone();
            line["jsonrpc"] = "2.0".into();
            format!("{line}\n")
        };
        let batch: String = lines.iter().map(line).collect();
        let batch = AgentInput::Batch(Batch::Lines(batch.into()));
        let rest = self
            .bridge
            .agent(self.process, batch, self.now, &mut self.heard);
        assert!(rest.is_none(), "the outlet is never full");
    }
}

fn params<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).expect("parameters as the wire has them")
}
