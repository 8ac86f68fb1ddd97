//! Connects a client and an agent to a hub, with simulated time.

use super::agent::Agent;
use super::store::Shared;
use acpipe::testing::{RecordingClient, SettingsBuilder, messages, params};
use acpipe_core::client::{Command, History, Token};
use acpipe_core::hub::{AgentId, Effect, Hub, HubCx, OnLost};
use acpipe_model::error::Error;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// An error as the client receives it.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    pub data: Value,
}

impl Failure {
    fn of(error: Error) -> Self {
        Self {
            data: error.data(),
            message: error.message,
        }
    }
}

#[derive(Debug, Default)]
pub struct Received {
    pub chunks: Vec<Value>,
    /// Number of the last chunk.
    pub seq: u64,
}

impl Received {
    fn collect(&mut self, client: &mut RecordingClient) {
        let retracted = &client.retracted;
        assert!(retracted.is_empty(), "the store takes everything");
        for given in client.take_chunks() {
            assert!(!given.stored, "nobody asked for {}", given.chunk);
            assert!(given.turn.is_some(), "part of no turn");
            assert_eq!(given.seq, self.seq + 1, "numbers rise by one");
            self.seq = given.seq;
            self.chunks.push(given.chunk);
        }
    }
}

pub struct Play {
    hub: Hub,
    client: RecordingClient,
    pub heard: Received,
    pub agent: Agent,
    process: AgentId,
    tokens: u64,
    now: Instant,
}

impl Play {
    /// Returns a hub on this store that is connected to this agent; `seq` is the number of the last stored
    /// chunk.
    pub fn new(store: Shared, agent: Agent, seq: u64, clear: bool) -> Self {
        let now = Instant::now();
        let on_lost = OnLost {
            clear,
            reinject: 1000,
        };
        let settings = SettingsBuilder::new(now)
            .id_prefix(format!("t{seq}"))
            .on_lost(on_lost)
            .build();
        let mut play = Self {
            hub: Hub::new(settings, Box::new(store)),
            client: RecordingClient::default(),
            heard: Received {
                seq,
                ..Received::default()
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

    /// Prompts the session and returns the turn's summary.
    pub fn prompt(&mut self, text: &str) -> Value {
        let prompt = Command::Prompt(params(json!({ "message": text })));
        self.ask(prompt).unwrap()
    }

    /// Returns the texts of the stored messages.
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

    /// The agent answers the requests that it left open.
    pub fn answer_late(&mut self) {
        for id in std::mem::take(&mut self.agent.hung) {
            self.say(&[json!({ "id": id, "result": {} })]);
        }
        self.settle();
    }

    /// Runs a command and returns its result; the time advances to the hub's timeouts until then.
    fn ask(&mut self, command: Command) -> Result<Value, Failure> {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
        loop {
            self.settle();
            if let Some(answer) = self.client.take_answer(token) {
                return answer.map_err(Failure::of);
            }
            let replies = &self.client.replies;
            assert!(replies.is_empty(), "there is no other call: {replies:?}");
            if self.agent.late.is_empty() {
                let (at, _) = self.hub.deadline().expect("it waits for something");
                self.now = at;
                self.hub.tick(&mut HubCx::new(at, &mut self.client));
            } else {
                self.now += Duration::from_millis(100);
                let piece = self.agent.late.remove(0);
                self.say(&[piece]);
            }
        }
    }

    /// Delivers messages between hub and agent until neither has more.
    fn settle(&mut self) {
        loop {
            self.hub
                .drained(true, &mut HubCx::new(self.now, &mut self.client));
            self.hub.commit(&mut HubCx::new(self.now, &mut self.client));
            self.heard.collect(&mut self.client);
            let effects = self.hub.effects(self.now);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Open(id, _) => self.process = id,
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
        let batch = messages(lines);
        let rest = self.hub.agent(
            self.process,
            batch,
            &mut HubCx::new(self.now, &mut self.client),
        );
        assert!(rest.is_none(), "the client is never full");
    }
}
