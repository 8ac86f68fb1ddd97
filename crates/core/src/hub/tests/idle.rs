//! Tests of the idle timeout: which sessions and agents are released, in virtual time.

use super::play::settings;
use crate::client::{Command, History, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use crate::store::{Card, CardQuery, LogFile, Store};
use crate::testing::SharedCell;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{AgentState, SessionOptions};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(1800);

/// A disk that may be full, with the bytes of each log.
#[derive(Debug, Clone, Default)]
pub(super) struct Disk(SharedCell<Logs>);

#[derive(Debug, Default)]
struct Logs {
    bytes: BTreeMap<String, Vec<u8>>,
    is_full: bool,
}

impl Store for Disk {
    fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(self.0.borrow().bytes.contains_key(id))
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        self.0.borrow_mut().bytes.entry(id.to_owned()).or_default();
        Ok(Box::new(File(self.clone(), id.to_owned())))
    }
    fn list(&mut self, _: u64, _: CardQuery) -> bool {
        false
    }
}

#[derive(Debug)]
struct File(Disk, String);

impl LogFile for File {
    fn end(&self) -> u64 {
        self.0.0.borrow().bytes[&self.1].len() as u64
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let mut logs = self.0.0.borrow_mut();
        if logs.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        logs.bytes.get_mut(&self.1).unwrap().extend(lines);
        Ok(())
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        Ok(self.0.0.borrow().bytes[&self.1][range].to_vec())
    }
    fn cut(&mut self, _: u64) -> io::Result<()> {
        unreachable!("nothing is torn")
    }
    fn sync(&mut self, _: u64) -> bool {
        false
    }
    fn describe(&mut self, _: &Card) {}
    fn replace(&mut self, _: &[u8], _: bool) -> io::Result<()> {
        unreachable!("nothing is cleared")
    }
    fn remove(&mut self, _: bool) -> io::Result<()> {
        self.0.0.borrow_mut().bytes.remove(&self.1);
        Ok(())
    }
}

#[derive(Default)]
struct IdleClient {
    answers: HashMap<u64, Result<Value, Error>>,
    states: Vec<(AgentState, bool)>,
    /// Number of live chunks received.
    chunks: usize,
    /// Types of the replayed chunks.
    replayed: Vec<String>,
    is_full: bool,
}

impl ClientSink for IdleClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        assert!(self.answers.insert(token.call, answer).is_none());
    }
    fn is_full(&self) -> bool {
        self.is_full
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {
        self.chunks += 1;
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, json: &[u8]) {
        let chunk: Value = serde_json::from_slice(json).unwrap();
        self.replayed
            .push(chunk["type"].as_str().unwrap().to_owned());
    }
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: &Notice) {
        if let Notice::AgentState(replayed) = notice {
            self.states
                .push((replayed.state, replayed.reason.is_some()));
        }
    }
}

/// An agent that answers every call but prompts, and a record of the calls and effects.
struct Play {
    hub: Hub,
    client: IdleClient,
    now: Instant,
    tokens: u64,
    disk: Disk,
    agent: AgentId,
    offers: Value,
    /// Methods that were called and steps of the stop.
    done: Vec<String>,
    prompts: Vec<Value>,
}

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

impl Play {
    fn new(offers: Value, max_sessions: Option<usize>) -> Self {
        Self::with_options(offers, max_sessions, SessionOptions::default())
    }

    /// Creates a hub whose agent's definition has these options.
    fn with_options(offers: Value, max_sessions: Option<usize>, options: SessionOptions) -> Self {
        let mut settings = settings(Instant::now());
        settings.idle_after = Some(LIMIT);
        settings.max_sessions = max_sessions;
        settings.default_agent.spec.options = options;
        let disk = Disk::default();
        let mut play = Self {
            hub: Hub::new(settings, Box::new(disk.clone())),
            disk,
            client: IdleClient::default(),
            now: Instant::now(),
            tokens: 0,
            agent: AgentId(0),
            offers,
            done: Vec::new(),
            prompts: Vec::new(),
        };
        play.ask(Command::Initialize(params(json!({"protocolVersion": 1}))));
        play
    }

    fn ask(&mut self, command: Command) -> u64 {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        let (now, client) = (self.now, &mut self.client);
        self.hub
            .command(token, command, &mut HubCx::new(now, client));
        self.work();
        self.tokens
    }

    fn ensure(&mut self, id: &str) -> Result<Value, Error> {
        let token = self.ask(Command::Ensure(params(json!({ "sessionId": id }))));
        self.client.answers.remove(&token).unwrap()
    }

    fn prompt(&mut self, id: &str) -> u64 {
        self.prompt_as(id, &format!("t{}", self.tokens))
    }

    fn prompt_as(&mut self, id: &str, turn: &str) -> u64 {
        let prompt = json!({"sessionId": id, "turnId": turn, "message": "x"});
        self.ask(Command::Prompt(params(prompt)))
    }

    /// Answers the oldest prompt.
    fn end_turn(&mut self) {
        let id = self.prompts.remove(0);
        self.says(&json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}}));
        self.work();
    }

    fn says(&mut self, line: &Value) {
        let batch = AgentInput::Batch(Batch::Lines(format!("{line}\n").into()));
        self.world(batch);
    }

    fn world(&mut self, input: AgentInput) {
        let (now, client) = (self.now, &mut self.client);
        assert!(
            self.hub
                .agent(self.agent, input, &mut HubCx::new(now, client))
                .is_none()
        );
        self.hub.drained(true, &mut HubCx::new(now, client));
        self.hub.commit(&mut HubCx::new(now, client));
    }

    fn work(&mut self) {
        loop {
            let effects = self.hub.effects(self.now);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Open(id, _) => self.agent = id,
                    Effect::Send(_, lines) => self.answer(&lines),
                    other => self.done.push(format!("{other:?}")),
                }
            }
        }
    }

    fn answer(&mut self, lines: &[u8]) {
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let call: Value = serde_json::from_slice(line).unwrap();
            let (id, method) = (call["id"].clone(), call["method"].as_str().unwrap());
            self.done.push(method.to_owned());
            let result = match method {
                "initialize" => json!({"protocolVersion": 1, "agentCapabilities":
                    {"sessionCapabilities": self.offers}}),
                "session/new" => json!({"sessionId": format!("agent-{id}")}),
                "session/prompt" => {
                    self.prompts.push(id);
                    continue;
                }
                _ => json!({}),
            };
            self.says(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        }
    }

    /// Lets time pass and expires every timer that becomes due.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, what)) = self.hub.deadline().filter(|(at, _)| *at <= until) {
            assert!(at > self.now, "{what} is due again and again");
            self.now = at;
            self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
            self.work();
        }
        self.now = until;
    }

    fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }
}

fn all() -> Value {
    json!({"resume": {}, "close": {}})
}

const ALMOST: Duration = Duration::from_secs(1799);

#[test]
fn idle_session_then_agent_are_unloaded_and_restored() {
    let mut p = Play::new(all(), None);
    p.ensure("a").unwrap();
    let turn = p.prompt("a");
    p.wait(2 * LIMIT);
    p.end_turn();
    assert!(p.client.answers[&turn].is_ok());
    p.done();
    p.wait(ALMOST);
    assert_eq!(p.done(), [""; 0]);
    p.client.states.clear();
    p.wait(LIMIT);
    assert_eq!(p.done(), ["session/close"]);
    p.wait(LIMIT);
    assert_eq!(p.done()[0], "CloseInput(AgentId(1))");
    p.world(AgentInput::Exited(Exit::default()));
    let stopped = [
        (AgentState::Stopping, true),
        (AgentState::Disconnected, true),
    ];
    assert_eq!(p.client.states, stopped);
    let reason = p.hub.status(p.now).reason.unwrap();
    assert!(reason.contains("idle timeout"), "{reason}");
    let again = p.prompt("a");
    assert_eq!(p.done(), ["initialize", "session/resume", "session/prompt"]);
    p.end_turn();
    assert!(p.client.answers[&again].is_ok());
}

#[test]
fn call_during_an_idle_stop_waits_for_the_agent() {
    for set in [false, true] {
        let mut p = Play::new(all(), None);
        p.ensure("a").unwrap();
        while p.client.states.last().unwrap().0 != AgentState::Stopping {
            p.wait(LIMIT);
        }
        p.done();
        let token = if set {
            let mode = json!({"sessionId": "a", "mode": "m"});
            p.ask(Command::SetMode(params(mode)))
        } else {
            p.prompt("a")
        };
        assert!(!p.client.answers.contains_key(&token));
        p.world(AgentInput::Exited(Exit::default()));
        p.work();
        assert_eq!(p.done()[..2], ["initialize", "session/resume"]);
        if !set {
            p.end_turn();
        }
        assert_eq!(p.client.answers[&token].is_ok(), !set);
    }
}

#[test]
fn session_that_cannot_be_restored_is_not_unloaded() {
    let mut p = Play::new(json!({"close": {}}), Some(1));
    p.ensure("a").unwrap();
    p.done();
    p.wait(10 * LIMIT);
    assert_eq!(p.done(), [""; 0]);
    assert_eq!(p.ensure("a").unwrap()["recovery"]["rung"], "live");
    assert_eq!(p.ensure("b").unwrap_err().kind.name(), "overloaded");
}

#[test]
fn longest_idle_session_is_unloaded_first() {
    let mut p = Play::new(all(), Some(2));
    for id in ["a", "b"] {
        p.ensure(id).unwrap();
        p.wait(Duration::from_secs(1));
    }
    // The turn makes it the session used last.
    p.prompt("a");
    p.end_turn();
    p.done();
    p.ensure("c").unwrap();
    assert_eq!(p.done(), ["session/close", "session/new"]);
    p.prompt("a");
    p.prompt("c");
    let error = p.ensure("d").unwrap_err();
    assert_eq!(error.kind.name(), "overloaded");
    // A prompt in the released session finds no room either, but does later.
    let early = p.prompt("b");
    let refused = p.client.answers.remove(&early).unwrap();
    assert_eq!(refused.unwrap_err().kind.name(), "overloaded");
    p.end_turn();
    p.done();
    p.prompt("b");
    assert_eq!(
        p.done(),
        ["session/close", "session/resume", "session/prompt"]
    );
    // A session that is already live needs no room.
    p.ensure("c").unwrap();
}

#[test]
fn unwritten_session_stays_in_memory() {
    let mut p = Play::new(all(), None);
    let opened = p.ensure("a").unwrap();
    let turn = p.prompt_as("a", "t");
    p.disk.0.borrow_mut().is_full = true;
    p.says(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": opened["agentSessionId"], "update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x"}}}}),
    );
    // The turn was cut off, and the client has received more than the disk.
    p.end_turn();
    assert_eq!(
        p.client.answers[&turn].as_ref().unwrap()["stopReason"],
        "error"
    );
    p.done();
    p.wait(3 * LIMIT);
    assert_eq!(p.done()[0], "session/close");
    p.disk.0.borrow_mut().is_full = false;
    let again = p.prompt_as("a", "t");
    let answers = [turn, again].map(|token| p.client.answers[&token].as_ref().unwrap());
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn replayed_turn_is_sent_completely() {
    let mut p = Play::new(all(), Some(1));
    let opened = p.ensure("a").unwrap();
    p.prompt_as("a", "t");
    p.says(
        &json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": opened["agentSessionId"], "update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "x"}}}}),
    );
    p.end_turn();
    p.client.is_full = true;
    let again = p.prompt_as("a", "t");
    let ensure = Command::Ensure(params(json!({"sessionId": "b"})));
    p.hub.command(
        Token::first(0),
        ensure,
        &mut HubCx::new(p.now, &mut p.client),
    );
    p.client.is_full = false;
    p.hub.replay_turns(&mut p.client);
    assert!(p.client.answers[&again].is_ok());
    assert_eq!(p.client.replayed.last().unwrap(), "finish");
}

#[test]
fn subscription_of_an_unloaded_session_can_be_changed() {
    let mut p = Play::new(all(), None);
    p.ensure("a").unwrap();
    p.wait(2 * LIMIT);
    let hide = params(json!({"sessionId": "a", "chunks": false}));
    let hide = p.ask(Command::Subscribe(hide));
    assert!(p.client.answers[&hide].is_ok());
    p.wait(2 * LIMIT);
    p.world(AgentInput::Exited(Exit::default()));
    p.prompt("a");
    p.end_turn();
    assert_eq!(p.client.chunks, 0);
}

#[test]
fn options_of_a_session_stay_when_it_was_unloaded() {
    let defined = params(json!({"mode": "plan"}));
    let mut p = Play::with_options(all(), None, defined);
    let mode = |p: &Play| {
        let session = p.hub.router.sessions().get("a");
        session.map(|session| session.talk.settings.options().mode.clone())
    };
    p.ensure("a").unwrap();
    assert_eq!(mode(&p), Some(Some("plan".to_owned())));
    let close = json!({"sessionId": "a"});
    p.ask(Command::History(History::CloseSession(params(close))));
    let own = json!({"sessionId": "a", "options": {"mode": "code"}});
    p.ask(Command::Ensure(params(own)));
    p.wait(3 * LIMIT);
    assert_eq!(mode(&p), None);
    p.world(AgentInput::Exited(Exit::default()));
    p.prompt("a");
    assert_eq!(mode(&p), Some(Some("code".to_owned())));
}
