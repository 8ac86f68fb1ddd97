//! Test fixture: a client and an agent in virtual time, call by call.

use crate::client::{Command, History, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx, Settings};
use crate::store::{MemoryStore, Store};
use crate::testing::SettingsBuilder;
use acpipe_json::frame::Batch;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{FoundBy, Program};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

/// Returns the settings of a hub whose agent is given on the command line.
pub(super) fn settings(now: Instant) -> Settings {
    SettingsBuilder::new(now).build()
}

/// Returns a program that was found without a search.
pub(super) fn program() -> Program {
    Program {
        file: "/agent".into(),
        real_file: "/agent".into(),
        found_by: FoundBy::GivenPath,
        passed_over: Vec::new(),
        added_path: Vec::new(),
    }
}

/// A client that records its answers, the sessions of its chunks, and its ACP updates.
#[derive(Default)]
pub(super) struct HubClient {
    pub answers: HashMap<u64, Result<Value, Error>>,
    pub chunks: Vec<String>,
    /// All ACP updates, with the session id `own`.
    pub updates: Vec<String>,
    /// All ACP updates, one a line, with the ids of their sessions.
    pub update_lines: String,
    /// Number of runs of ACP updates.
    pub runs: usize,
    /// Warnings for clients that speak ACP.
    pub warnings: Vec<String>,
    /// Whether agents must wait until the client reads.
    pub full: bool,
}

impl ClientSink for HubClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        let twice = self.answers.insert(token.call, answer);
        assert!(twice.is_none(), "{token:?} is answered twice");
    }
    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {
        self.chunks.push(place.session.to_owned());
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn update(&mut self, session: &str, _: u64, update: AcpNotification<'_>) {
        let written = |session: &str| {
            let mut text = Vec::new();
            update.write(&format!("{session:?}"), &mut text);
            String::from_utf8(text).unwrap()
        };
        self.updates.push(written("own"));
        self.update_lines += &written(session);
        self.update_lines.push('\n');
    }
    fn update_run(&mut self, session: &str, _: u64, run: &UpdateRun<'_>) {
        let written = |session: &str| {
            let mut lines = Vec::new();
            run.write(&format!("{session:?}"), &mut lines);
            String::from_utf8(lines).unwrap()
        };
        let own = written("own");
        self.updates.extend(own.lines().map(str::to_owned));
        self.update_lines += &written(session);
        self.runs += 1;
    }
    fn is_full(&self) -> bool {
        self.full
    }
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: &Notice) {
        if let Notice::PolicyWarning(_, text) = notice {
            self.warnings.push(text.clone());
        }
    }
}

pub(super) struct Play {
    pub hub: Hub,
    pub client: HubClient,
    pub now: Instant,
    pub tokens: u64,
    pub agent: AgentId,
}

pub(super) fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

impl Play {
    pub fn new() -> Self {
        Self::with(Box::new(MemoryStore))
    }

    pub fn with(store: Box<dyn Store>) -> Self {
        Self::of(settings(Instant::now()), store)
    }

    pub fn of(settings: Settings, store: Box<dyn Store>) -> Self {
        let mut play = Self {
            hub: Hub::new(settings, store),
            client: HubClient::default(),
            now: Instant::now(),
            tokens: 0,
            agent: AgentId(0),
        };
        play.ask(Command::Initialize(params(json!({"protocolVersion": 1}))));
        play
    }

    pub fn ask(&mut self, command: Command) -> u64 {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
        self.tokens
    }

    pub fn ensure(&mut self, wish: Value) -> u64 {
        self.ask(Command::Ensure(params(wish)))
    }

    pub fn history(&mut self, asked: History) -> u64 {
        self.ask(Command::History(asked))
    }

    /// Returns the last message that was sent to the agent.
    pub fn sent(&mut self) -> Value {
        self.hub.commit(&mut HubCx::new(self.now, &mut self.client));
        let mut last = Value::Null;
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agent = id,
                Effect::Send(_, lines) => {
                    let line = lines.split(|b| *b == b'\n').rfind(|line| !line.is_empty());
                    last = serde_json::from_slice(line.unwrap()).unwrap();
                }
                _ => {}
            }
        }
        last
    }

    pub fn hear(&mut self, input: AgentInput) -> Value {
        let rest = self.hub.agent(
            self.agent,
            input,
            &mut HubCx::new(self.now, &mut self.client),
        );
        assert!(rest.is_none());
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.client));
        self.sent()
    }

    pub fn say(&mut self, message: &Value) -> Value {
        let lines = format!("{message}\n").into();
        self.hear(AgentInput::Batch(Batch::Lines(lines)))
    }

    /// Answers a call; returns the next.
    pub fn answer(&mut self, call: &Value, result: &Value) -> Value {
        assert!(call["id"].is_number(), "no call: {call}");
        self.say(&json!({"jsonrpc": "2.0", "id": call["id"], "result": result}))
    }

    pub fn update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Answers the handshake; returns the next call.
    pub fn ready(&mut self) -> Value {
        self.ready_with(&json!({"resume": {}, "list": {}}))
    }

    /// Like `ready`, with these session capabilities in addition to load.
    pub fn ready_with(&mut self, offers: &Value) -> Value {
        let hello = self.sent();
        assert_eq!(hello["method"], "initialize");
        let can = json!({"loadSession": true, "sessionCapabilities": offers});
        self.answer(
            &hello,
            &json!({"protocolVersion": 1, "agentCapabilities": can}),
        )
    }

    pub fn crash(&mut self) {
        self.hear(AgentInput::Exited(Exit::default()));
    }

    /// Advances the time to the next deadline and expires its timers.
    pub fn wait(&mut self) {
        (self.now, _) = self.hub.deadline().unwrap();
        self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
    }

    pub fn failed(&self, token: u64) -> Option<ErrorKind> {
        let answer = self.client.answers.get(&token)?;
        answer.as_ref().err().map(|error| error.kind)
    }

    pub fn error(&self, token: u64) -> &str {
        &self.client.answers[&token].as_ref().unwrap_err().message
    }

    pub fn result(&self, token: u64) -> &Value {
        self.client.answers[&token].as_ref().unwrap()
    }
}
