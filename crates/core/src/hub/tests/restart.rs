//! Tests of restarts after crashes, with increasing delays.

use super::play::settings;
use crate::client::{Command, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_model::transport::Transport;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{AgentParams, AgentState, CancelParams, ConnectParams, EnsureParams};
use std::time::{Duration, Instant};

/// A client that records errors and agent states.
#[derive(Default)]
struct RestartClient {
    errors: Vec<(u64, &'static str)>,
    states: Vec<AgentState>,
}

impl ClientSink for RestartClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        if let Err(error) = answer {
            self.errors.push((token.call, error.kind.name()));
        }
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: &Notice) {
        if let Notice::AgentState(params) = notice {
            self.states.push(params.state);
        }
    }
}

struct Test {
    hub: Hub,
    client: RestartClient,
    now: Instant,
    token: u64,
    started: u64,
}

impl Test {
    fn new() -> Self {
        let hub = Hub::new(
            settings(Instant::now()),
            Box::new(crate::store::MemoryStore),
        );
        let mut test = Self {
            hub,
            client: RestartClient::default(),
            now: Instant::now(),
            token: 0,
            started: 0,
        };
        let hello = serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap();
        test.ask(Command::Initialize(hello));
        test
    }

    fn ask(&mut self, command: Command) -> u64 {
        self.token += 1;
        let token = Token::first(self.token);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
        self.token
    }

    fn ensure(&mut self) -> u64 {
        self.ask(Command::Ensure(EnsureParams::default()))
    }

    /// Returns `true` if an agent was started since the last call.
    fn starts(&mut self) -> bool {
        let before = self.started;
        for effect in self.hub.effects(self.now) {
            if let Effect::Open(AgentId(id), _) = effect {
                self.started = id;
            }
        }
        self.started > before
    }

    fn hear(&mut self, input: AgentInput) {
        let id = AgentId(self.started);
        let rest = self
            .hub
            .agent(id, input, &mut HubCx::new(self.now, &mut self.client));
        assert!(rest.is_none());
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.client));
    }

    /// Lets the agent become ready, then exit.
    fn crash(&mut self) {
        let ready = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1}}\n";
        self.hear(AgentInput::Batch(Batch::Lines(ready.into())));
        self.hear(AgentInput::Exited(Exit::default()));
    }

    fn restart(&self) -> Option<Duration> {
        let (at, what) = self.hub.deadline()?;
        assert_eq!(what, "restart");
        Some(at - self.now)
    }
}

/// Returns an agent that crashed twice in a row, and a session that waits for it.
fn in_a_pause() -> (Test, u64) {
    let mut t = Test::new();
    for _ in 0..2 {
        t.ensure();
        assert!(t.starts());
        t.crash();
    }
    t.client = RestartClient::default();
    let waits = t.ensure();
    assert!(!t.starts());
    (t, waits)
}

#[test]
fn crashing_agent_restarts_with_backoff_up_to_a_limit() {
    let mut t = Test::new();
    t.ensure();
    assert!(t.starts());
    t.crash();
    // The delay begins with the crash, not with the call that needs the agent.
    for (late, rest) in [(0, 0), (300, 700), (400, 1600)].map(|(late, rest)| {
        let time = Duration::from_millis;
        (time(late), time(rest))
    }) {
        t.now += late;
        t.client = RestartClient::default();
        let waits = t.ensure();
        if !rest.is_zero() {
            assert_eq!(t.hub.status(t.now).state, AgentState::Starting);
            assert_eq!(t.restart(), Some(rest));
            assert!(!t.starts());
            t.now += rest;
            t.hub.tick(&mut HubCx::new(t.now, &mut t.client));
        }
        assert!(t.starts(), "{late:?} {rest:?}");
        t.crash();
        assert_eq!(t.client.errors, [(waits, "agentExited")]);
        let states = [
            AgentState::Starting,
            AgentState::Ready,
            AgentState::Disconnected,
        ];
        assert_eq!(t.client.states, states);
    }
    let refused = t.ensure();
    assert!(!t.starts());
    assert_eq!(t.client.errors.last(), Some(&(refused, "agentExited")));
    assert_eq!(t.hub.deadline(), None);
}

#[test]
fn failed_restart_counts_and_is_retried() {
    let mut t = Test::new();
    t.ensure();
    assert!(t.starts());
    t.crash();
    t.ensure();
    assert!(t.starts());
    t.hear(AgentInput::Exited(Exit::default()));
    t.ensure();
    assert_eq!(t.restart(), Some(Duration::from_secs(1)));
}

#[test]
fn a_pause_can_be_cut_short() {
    let (mut t, waits) = in_a_pause();
    let message = serde_json::from_str(r#"{"message":"x"}"#).unwrap();
    let prompt = t.ask(Command::Prompt(message));
    t.ask(Command::Cancel(CancelParams::default()));
    assert_eq!(t.client.errors, [(prompt, "cancelled")]);
    t.ask(Command::Disconnect(AgentParams::default()));
    assert_eq!(t.client.errors[1..], [(waits, "cancelled")]);
    assert_eq!(t.hub.deadline(), None);
    let states = [AgentState::Starting, AgentState::Disconnected];
    assert_eq!(t.client.states, states);

    let (mut t, waits) = in_a_pause();
    t.ask(Command::Shutdown);
    assert_eq!(t.client.errors, [(waits, "cancelled")]);
    assert_eq!(t.hub.effects(t.now), [Effect::Finished]);

    // `agent/connect` starts the agent at once.
    let (mut t, _) = in_a_pause();
    t.ask(Command::Connect(ConnectParams::default()));
    assert!(t.starts());
    assert_eq!(t.client.states, [AgentState::Starting]);
    assert_eq!(t.client.errors, []);
}

#[test]
fn environment_changed_during_backoff_applies_to_the_restart() {
    let (mut t, _) = in_a_pause();
    let update = serde_json::from_str(r#"{"set":{"A":"b"},"whenBusy":"reject"}"#).unwrap();
    t.ask(Command::UpdateEnvironment(update));
    assert_eq!(t.client.errors, []);
    t.now += Duration::from_secs(1);
    t.hub.tick(&mut HubCx::new(t.now, &mut t.client));
    let effects = t.hub.effects(t.now);
    let Some(Effect::Open(_, Transport::Process(spec))) = effects.first() else {
        panic!("{effects:?}");
    };
    assert_eq!(spec.env.0["A"].as_deref(), Some("b"));
    assert!(!format!("{effects:?}").contains("\"b\""), "{effects:?}");
}
