//! What is let go and what stays, in virtual time.

use super::tests_settings::settings;
use super::{AgentId, AgentInput, Bridge, Effect, Exit};
use crate::core::client::{Command, Notice, Outlet, Place, Reply, Token};
use crate::core::error::Error;
use crate::core::store::Volatile;
use crate::proto::chunk::Chunk;
use crate::proto::frame::Batch;
use crate::proto::wire::AgentState;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(1800);

#[derive(Default)]
struct Heard {
    answers: HashMap<u64, Result<Value, Error>>,
    states: Vec<(AgentState, bool)>,
}

impl Outlet for Heard {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        assert!(self.answers.insert(token.0, answer).is_none());
    }
    fn chunk(&mut self, _: Place<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn stored_chunk(&mut self, _: Place<'_>, _: &Value) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: Notice) {
        if let Notice::AgentState(told) = notice {
            self.states.push((told.state, told.reason.is_some()));
        }
    }
}

/// An agent that answers every call but prompts, and what was done to it.
struct Play {
    bridge: Bridge,
    heard: Heard,
    now: Instant,
    tokens: u64,
    agent: AgentId,
    offers: Value,
    /// The methods it was called, and the steps of its end.
    done: Vec<String>,
    prompts: Vec<Value>,
}

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

impl Play {
    fn new(offers: Value, max_sessions: Option<usize>) -> Self {
        let mut settings = settings(Instant::now());
        settings.idle_after = Some(LIMIT);
        settings.max_sessions = max_sessions;
        let mut play = Self {
            bridge: Bridge::new(settings, Box::new(Volatile)),
            heard: Heard::default(),
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
        let token = Token(self.tokens);
        let (now, heard) = (self.now, &mut self.heard);
        self.bridge.command(token, command, now, heard);
        self.work();
        self.tokens
    }

    fn ensure(&mut self, id: &str) -> Result<Value, Error> {
        let token = self.ask(Command::Ensure(params(json!({ "sessionId": id }))));
        self.heard.answers.remove(&token).unwrap()
    }

    fn prompt(&mut self, id: &str) -> u64 {
        let prompt = json!({"sessionId": id, "message": "x"});
        self.ask(Command::Prompt(params(prompt)))
    }

    /// Ends the prompt that the agent got first.
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
        let (now, heard) = (self.now, &mut self.heard);
        assert!(self.bridge.agent(self.agent, input, now, heard).is_none());
        self.bridge.drained(true, now, heard);
    }

    fn work(&mut self) {
        loop {
            let effects = self.bridge.effects(self.now);
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Spawn(id, _) => self.agent = id,
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

    /// Lets time pass, with everything that is due in it.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some((at, what)) = self.bridge.deadline().filter(|(at, _)| *at <= until) {
            assert!(at > self.now, "{what} is due again and again");
            self.now = at;
            self.bridge.tick(self.now, &mut self.heard);
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
fn an_idle_session_is_let_go_and_then_the_agent_and_both_come_back() {
    let mut p = Play::new(all(), None);
    p.ensure("a").unwrap();
    let turn = p.prompt("a");
    p.wait(2 * LIMIT);
    p.end_turn();
    assert!(p.heard.answers[&turn].is_ok());
    p.done();
    p.wait(ALMOST);
    assert_eq!(p.done(), [""; 0]);
    p.heard.states.clear();
    p.wait(LIMIT);
    assert_eq!(p.done(), ["session/close"]);
    p.wait(LIMIT);
    assert_eq!(p.done()[0], "CloseInput(AgentId(1))");
    p.world(AgentInput::Exited(Exit::default()));
    let stopped = [
        (AgentState::Stopping, true),
        (AgentState::Disconnected, true),
    ];
    assert_eq!(p.heard.states, stopped);
    assert!(p.bridge.status(p.now).reason.is_some());
    let again = p.prompt("a");
    assert_eq!(p.done(), ["initialize", "session/resume", "session/prompt"]);
    p.end_turn();
    assert!(p.heard.answers[&again].is_ok());
}

#[test]
fn who_needs_an_agent_that_is_just_let_go_waits_for_its_return() {
    for set in [false, true] {
        let mut p = Play::new(all(), None);
        p.ensure("a").unwrap();
        while p.heard.states.last().unwrap().0 != AgentState::Stopping {
            p.wait(LIMIT);
        }
        p.done();
        let token = if set {
            let mode = json!({"sessionId": "a", "mode": "m"});
            p.ask(Command::SetMode(params(mode)))
        } else {
            p.prompt("a")
        };
        assert!(!p.heard.answers.contains_key(&token));
        p.world(AgentInput::Exited(Exit::default()));
        p.work();
        assert_eq!(p.done()[..2], ["initialize", "session/resume"]);
        if !set {
            p.end_turn();
        }
        assert_eq!(p.heard.answers[&token].is_ok(), !set);
    }
}

#[test]
fn what_could_not_come_back_stays() {
    let mut p = Play::new(json!({"close": {}}), Some(1));
    p.ensure("a").unwrap();
    p.done();
    p.wait(10 * LIMIT);
    assert_eq!(p.done(), [""; 0]);
    assert_eq!(p.ensure("a").unwrap()["recovery"]["rung"], "live");
    assert_eq!(p.ensure("b").unwrap_err().kind.name(), "overloaded");
}

#[test]
fn the_idlest_makes_room_and_none_that_is_at_work() {
    let mut p = Play::new(all(), Some(2));
    for id in ["a", "b"] {
        p.ensure(id).unwrap();
        p.wait(Duration::from_secs(1));
    }
    // Its turn makes it the last that was used.
    p.prompt("a");
    p.end_turn();
    p.done();
    p.ensure("c").unwrap();
    assert_eq!(p.done(), ["session/close", "session/new"]);
    p.prompt("a");
    p.prompt("c");
    let error = p.ensure("d").unwrap_err();
    assert_eq!(error.kind.name(), "overloaded");
    // A prompt to the one that was let go has no room either, and has it later.
    let early = p.prompt("b");
    let refused = p.heard.answers.remove(&early).unwrap();
    assert_eq!(refused.unwrap_err().kind.name(), "overloaded");
    p.end_turn();
    p.done();
    p.prompt("b");
    assert_eq!(
        p.done(),
        ["session/close", "session/resume", "session/prompt"]
    );
    // One that is live needs no room.
    p.ensure("c").unwrap();
}
