//! Plays an agent's lines to a hub in a turn, and collects what its client receives.

pub use acpipe::testing::params;
use acpipe::testing::{RecordingClient, SettingsBuilder, messages};
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::fold::Fold;
use acpipe_core::hub::{AgentId, Effect, Hub, HubCx, Settings};
use acpipe_core::store::MemoryStore;
use acpipe_policy::Mode;
use acpipe_protocol::wire::Protocol;
use serde_json::{Value, json};
use std::time::Instant;

/// The agent session id.
pub const SESSION: &str = "S";

/// The agent's messages of one turn.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Whether permission requests are approved.
    pub approve: bool,
    /// The agent's lines before its response.
    pub lines: Vec<Value>,
    /// The agent's response to the prompt.
    pub answer: Value,
    /// Whether the lines come after the response.
    pub late: bool,
}

#[derive(Debug, Default)]
pub struct PlayedScene {
    pub chunks: Vec<Value>,
    /// The chunks of the turn, folded.
    pub message: Value,
}

/// The client's output, in the parts that are searched for sentinels.
#[derive(Default)]
pub struct ClientOutput {
    pub chunks: Vec<Value>,
    pub notices: Vec<Value>,
    pub fold: Fold,
    /// Result of `session/ensure`.
    pub session: Value,
    /// Summary of the turn.
    pub summary: Value,
}

impl ClientOutput {
    /// Takes everything that the client received.
    pub fn of(client: &mut RecordingClient) -> Self {
        let mut seen = Self::default();
        for (token, answer) in client.take_replies() {
            match answer {
                Ok(Reply::Turn(summary)) => {
                    seen.summary = serde_json::to_value(*summary).expect("a summary is JSON");
                }
                Ok(Reply::Session(session)) => {
                    seen.session = serde_json::to_value(*session).expect("an answer is JSON");
                }
                Ok(_) => {}
                Err(error) => panic!("call {token:?} failed: {error:?}"),
            }
        }
        for given in client.take_chunks() {
            assert!(!given.stored, "nobody asked for {}", given.chunk);
            if given.turn.is_some() {
                seen.fold.push(&given.chunk);
            }
            seen.chunks.push(given.chunk);
        }
        for notice in std::mem::take(&mut client.notices) {
            if let Notice::SessionState(state) = notice {
                let state = serde_json::to_value(state).expect("a notice is JSON");
                seen.notices
                    .push(json!({ "type": "session/state", "state": state["state"] }));
            }
        }
        seen
    }
}

/// Plays a scene in a new session.
pub fn play(scene: &Scene) -> PlayedScene {
    let mut feeder = Feeder::new(scene.approve);
    feeder.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
    let call = feeder.command(Command::Connect(params(json!({}))));
    feeder.answer(&call, &json!({ "protocolVersion": 1 }));
    let call = feeder.command(Command::Ensure(params(json!({}))));
    feeder.answer(&call, &json!({ "sessionId": SESSION }));
    let call = feeder.command(Command::Prompt(params(json!({ "message": "go" }))));
    if scene.late {
        feeder.answer(&call, &scene.answer);
        ClientOutput::of(&mut feeder.client);
    }
    for line in &scene.lines {
        feeder.line(line.clone());
    }
    if !scene.late {
        feeder.answer(&call, &scene.answer);
    }
    let mut seen = ClientOutput::of(&mut feeder.client);
    if scene.late {
        // Outside of turns only a notice reports the session's state.
        seen.chunks.append(&mut seen.notices);
    }
    PlayedScene {
        chunks: seen.chunks,
        message: seen.fold.message(),
    }
}

/// Settings of the hub for a scene.
pub fn settings(approve: bool, protocol: Protocol) -> Settings {
    let mode = if approve { Mode::Approve } else { Mode::Deny };
    SettingsBuilder::new(Instant::now())
        .cwd("/project")
        .protocol(protocol)
        .policy(mode)
        .build()
}

struct Feeder {
    hub: Hub,
    client: RecordingClient,
    agent: AgentId,
    tokens: u64,
    now: Instant,
}

impl Feeder {
    fn new(approve: bool) -> Self {
        Self {
            hub: Hub::new(settings(approve, Protocol::Acp), Box::new(MemoryStore)),
            client: RecordingClient::default(),
            agent: AgentId(1),
            tokens: 0,
            now: Instant::now(),
        }
    }

    /// Runs a command and returns the request that it sent to the agent.
    fn command(&mut self, command: Command) -> Value {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
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

    fn answer(&mut self, call: &Value, result: &Value) {
        assert!(!call["id"].is_null(), "no call was made");
        self.line(json!({ "id": call["id"], "result": result }));
    }

    fn line(&mut self, line: Value) {
        let client = &mut self.client;
        let input = messages(&[line]);
        let rest = self
            .hub
            .agent(self.agent, input, &mut HubCx::new(self.now, client));
        assert!(rest.is_none(), "the client is never full");
        self.hub.drained(true, &mut HubCx::new(self.now, client));
    }
}
