//! Plays one turn of an agent to a hub.

pub use acpipe::testing::params;
use acpipe::testing::{self, RecordingClient, SettingsBuilder};
use acpipe_core::client::{Command, Reply, Token};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use acpipe_core::store::MemoryStore;
use acpipe_protocol::wire::Protocol;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Result of a turn.
#[derive(Default)]
pub struct Played {
    /// Chunks that the client received in the turn.
    pub chunks: Vec<Value>,
    /// Content blocks that the agent received.
    pub prompt: Value,
    pub summary: Value,
}

impl Played {
    fn collect(&mut self, client: &mut RecordingClient) {
        for (token, answer) in client.take_replies() {
            match answer {
                Ok(Reply::Turn(summary)) => self.summary = serde_json::to_value(*summary).unwrap(),
                Ok(_) => {}
                Err(error) => panic!("call {token:?} failed: {error:?}"),
            }
        }
        let chunks = client.take_chunks().into_iter();
        let of_turns = chunks.filter(|given| given.turn.is_some() && !given.stored);
        self.chunks.extend(of_turns.map(|given| given.chunk));
    }
}

/// Plays one turn: the user's message, the agent's updates, and its response (`result` or `error`).
pub fn play(message: &Value, updates: &[Value], answer: &Value) -> Played {
    play_in(&json!(7), message, updates, answer)
}

/// Like [`play`], for a client of this chunk profile.
pub fn play_in(profile: &Value, message: &Value, updates: &[Value], answer: &Value) -> Played {
    let mut driver = Driver::new(Protocol::Acp);
    let hello = json!({ "protocolVersion": 1, "chunkProfile": profile });
    driver.command(Command::Initialize(params(hello)));
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

/// A hub with its client and its agent.
pub struct Driver {
    hub: Hub,
    client: RecordingClient,
    pub played: Played,
    /// The process that was started last.
    agent: AgentId,
    tokens: u64,
    now: Instant,
}

impl Driver {
    pub fn new(protocol: Protocol) -> Self {
        let now = Instant::now();
        let settings = SettingsBuilder::new(now)
            .cwd("/project")
            .protocol(protocol)
            .build();
        Self {
            hub: Hub::new(settings, Box::new(MemoryStore)),
            client: RecordingClient::default(),
            played: Played::default(),
            agent: AgentId(1),
            tokens: 0,
            now,
        }
    }

    /// Runs a command and returns the request that it sent to the agent.
    pub fn command(&mut self, command: Command) -> Value {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
        self.played.collect(&mut self.client);
        self.sent()
    }

    /// Advances the time and returns the request that was sent then.
    pub fn wait(&mut self, time: Duration) -> Value {
        self.now += time;
        self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
        self.played.collect(&mut self.client);
        self.sent()
    }

    /// Returns the last request to the agent.
    pub fn sent(&mut self) -> Value {
        let mut call = Value::Null;
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agent = id,
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
        self.hear(testing::messages(std::slice::from_ref(line)));
    }

    /// Delivers a line of the agent.
    pub fn says(&mut self, line: &str) {
        self.hear(testing::line(line));
    }

    pub fn hear(&mut self, input: AgentInput) {
        let client = &mut self.client;
        let rest = self
            .hub
            .agent(self.agent, input, &mut HubCx::new(self.now, client));
        assert!(rest.is_none(), "the client is never full");
        self.hub.drained(true, &mut HubCx::new(self.now, client));
        self.played.collect(client);
    }
}
