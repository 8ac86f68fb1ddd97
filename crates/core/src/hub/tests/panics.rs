//! Tests of deliberate panics in the handling of messages: each ends only the turn or process that it belongs
//! to.

mod steps;
mod traps;

use super::play::settings;
use crate::client::{Command, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use crate::store::MemoryStore;
use acpipe_dialects::acp::Acp;
use acpipe_json::frame::Batch;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentServices, AgentText, Child, Dialect,
    DialectFacts, Noted, Outgoing, ProcessSpec, PromptPart, TextMeaning,
};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, Exit, Original, Update};
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::RequestKey;
use acpipe_model::setting::Setting;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{AgentState, LineFaults};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;

/// The ACP dialect with traps: the agent's messages determine where it panics.
struct Trapped(Box<dyn Dialect>, Traps);

/// The places where it panics from now on.
#[derive(Default)]
struct Traps {
    ended: bool,
}

impl Dialect for Trapped {
    fn facts(&self) -> DialectFacts {
        self.0.facts()
    }
    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        match &call {
            AgentCall::Prompt { parts, .. } => {
                assert!(*parts != [PromptPart::Text("trap".into())], "in a prompt");
            }
            AgentCall::Set { setting, .. } if **setting == Setting::Mode("trap".into()) => {
                out.lines(Child::MAIN).extend_from_slice(b"half a li");
                panic!("in a setting");
            }
            _ => {}
        }
        self.0.call(call, out)
    }
    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing) {
        self.0.answer(key, answer, out);
    }
    fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>> {
        self.0.request(key)
    }
    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let AgentLine::Whole(text) = line else {
            return self.0.read(child, line, events, out);
        };
        let text = std::str::from_utf8(text).unwrap();
        self.1.ended |= text == "trap in the reader and at its end";
        assert!(!text.starts_with("trap in the reader"), "in the reader");
        if let Some(session) = text.strip_prefix("trap in ") {
            let original = Original {
                line: text,
                cut: |_| panic!("in the turn"),
                fields: |_| panic!("in the turn"),
            };
            let update = Update::Other;
            let session = session.into();
            events.push(AgentEvent::Update {
                session,
                update,
                original,
            });
            return Ok(());
        }
        self.0.read(child, line, events, out)
    }
    fn note(&mut self, child: Child, noted: Noted<'_>) {
        self.0.note(child, noted);
    }
    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) -> bool {
        assert!(!self.1.ended, "at the end of the process");
        self.0.ended(child, how, events, out)
    }
    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        self.0.meaning(text)
    }
    fn faults(&self) -> LineFaults {
        self.0.faults()
    }
}

/// A client that panics a number of times on a chunk with this text.
#[derive(Default)]
struct PanicClient {
    answers: HashMap<u64, Result<Value, Error>>,
    chunks: Vec<(String, u64, String)>,
    states: Vec<AgentState>,
    trap: Option<(&'static str, u32)>,
}

impl ClientSink for PanicClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        assert!(
            self.answers.insert(token.call, answer).is_none(),
            "{token:?}"
        );
    }
    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        let json = String::from_utf8(json.to_vec()).unwrap();
        if let Some((text, times)) = &mut self.trap
            && json.contains(*text)
            && *times > 0
        {
            *times -= 1;
            panic!("in the outlet");
        }
        self.chunks
            .push((place.session.to_owned(), place.seq, json));
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, session: &str, after: u64) {
        self.chunks
            .retain(|(id, seq, _)| id != session || *seq <= after);
    }
    fn notify(&mut self, notice: &Notice) {
        if let Notice::AgentState(p) = notice {
            self.states.push(p.state);
        }
    }
}

struct Play {
    hub: Hub,
    client: PanicClient,
    now: Instant,
    tokens: u64,
    agent: AgentId,
}

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

fn prompt(session: &str, text: &str) -> Command {
    Command::Prompt(params(json!({"sessionId": session, "message": text})))
}

impl Play {
    /// Creates the sessions `a` and `b`, with the agent session ids `A` and `B`.
    fn new() -> Self {
        let now = Instant::now();
        let mut play = Self {
            hub: Hub::new(settings(now), Box::new(MemoryStore)),
            client: PanicClient::default(),
            now,
            tokens: 0,
            agent: AgentId(0),
        };
        play.ask(Command::Initialize(params(json!({"protocolVersion": 1}))));
        play.connect();
        for (id, agent_id) in [("a", "A"), ("b", "B")] {
            play.ask(Command::Ensure(params(json!({"sessionId": id}))));
            let call = play.sent().pop().unwrap();
            let modes = json!({"currentModeId": "x", "availableModes": [{"id": "x"}, {"id": "y"}, {"id": "trap"}]});
            play.answer(&call, &json!({"sessionId": agent_id, "modes": modes}));
        }
        play
    }

    fn connect(&mut self) {
        self.ask(Command::Connect(params(json!({}))));
        let agent = self.hub.connection();
        let none = Box::new(Acp::new(ProcessSpec::default(), AgentServices::default()));
        let acp = std::mem::replace(agent.dialect_mut(), none);
        *agent.dialect_mut() = Box::new(Trapped(acp, Traps::default()));
        let hello = self.sent().pop().unwrap();
        self.answer(&hello, &json!({"protocolVersion": 1}));
    }

    fn ask(&mut self, command: Command) -> u64 {
        self.tokens += 1;
        let (token, now) = (Token::first(self.tokens), self.now);
        self.hub
            .command(token, command, &mut HubCx::new(now, &mut self.client));
        self.tokens
    }

    /// Returns the messages that were sent to the agent.
    fn sent(&mut self) -> Vec<Value> {
        self.hub.commit(&mut HubCx::new(self.now, &mut self.client));
        let mut sent = Vec::new();
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agent = id,
                Effect::Send(_, lines) => {
                    let lines = lines.split_inclusive(|byte| *byte == b'\n');
                    sent.extend(lines.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
                }
                _ => {}
            }
        }
        sent
    }

    fn say(&mut self, line: &str) {
        let lines = AgentInput::Batch(Batch::Lines(format!("{line}\n").into()));
        let (now, client) = (self.now, &mut self.client);
        assert!(
            self.hub
                .agent(self.agent, lines, &mut HubCx::new(now, client))
                .is_none()
        );
        self.hub.drained(true, &mut HubCx::new(now, client));
    }

    fn answer(&mut self, call: &Value, result: &Value) {
        assert!(call["id"].is_number(), "no call: {call}");
        let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
        self.say(&answer.to_string());
    }

    /// Returns a chunk of an agent message.
    fn text(session: &str, text: &str) -> String {
        let content = json!({"type": "text", "text": text});
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        let params = json!({"sessionId": session, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    }

    /// Sends a prompt in each session.
    fn both(&mut self) -> [(u64, Value); 2] {
        ["a", "b"].map(|id| {
            let token = self.ask(prompt(id, "go"));
            (token, self.sent().pop().unwrap())
        })
    }

    fn result(&self, token: u64) -> &Value {
        self.client.answers[&token].as_ref().unwrap()
    }

    fn internal(&self, token: u64) {
        let error = match &self.client.answers[&token] {
            Ok(summary) => summary["errors"][0].clone(),
            Err(error) => json!({"kind": error.kind.name(), "message": error.message}),
        };
        assert_eq!(error["kind"], "internal", "{error}");
        assert!(error["message"].as_str().unwrap().contains("report it"));
    }

    fn types(&self, session: &str) -> Vec<String> {
        let own = self.client.chunks.iter().filter(|(id, _, _)| id == session);
        let kind = |json: &str| serde_json::from_str::<Value>(json).unwrap()["type"].clone();
        own.map(|(_, _, json)| kind(json).as_str().unwrap().to_owned())
            .collect()
    }

    /// Checks that the other session's turn ends normally and that both sessions take the next prompt.
    fn lives(&mut self, first: &Value, second: (u64, &Value)) {
        self.say(&Self::text("B", "whole"));
        let (token, call) = second;
        self.answer(call, &json!({"stopReason": "end_turn"}));
        assert_eq!(self.result(token)["text"], "whole");
        assert_eq!(self.result(token)["isError"], false);
        // The agent responds to the cancel.
        self.answer(first, &json!({"stopReason": "cancelled"}));
        for (id, agent_id) in [("a", "A"), ("b", "B")] {
            self.turn(id, agent_id);
        }
    }

    fn turn(&mut self, id: &str, agent_id: &str) {
        let token = self.ask(prompt(id, "again"));
        let call = self.sent().pop().unwrap();
        assert_eq!(call["params"]["sessionId"], agent_id);
        self.say(&Self::text(agent_id, "back"));
        self.answer(&call, &json!({"stopReason": "end_turn"}));
        assert_eq!(self.result(token)["text"], "back");
        // The numbers of the chunks have no gap.
        let own = self
            .client
            .chunks
            .iter()
            .filter(|(session, _, _)| session == id);
        let numbers: Vec<u64> = own.map(|(_, seq, _)| *seq).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        let log = self.hub.router.sessions().get(id).unwrap().output.log();
        assert_eq!((log.corrupt(), log.open_turns().len()), (0, 0));
    }
}

#[test]
fn panic_in_a_turn_ends_only_that_turn() {
    let mut play = Play::new();
    let [(a, first), (b, second)] = play.both();
    play.say(&Play::text("A", "kept"));
    play.say(&format!("trap in A\n{}", Play::text("B", "")));
    play.internal(a);
    assert_eq!(play.result(a)["text"], "kept");
    let cancel = play.sent().pop().unwrap();
    assert_eq!(cancel["method"], "session/cancel");
    assert_eq!(cancel["params"]["sessionId"], "A");
    let types = play.types("a");
    let want = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-end",
        "finish-step",
        "message-metadata",
        "error",
    ];
    assert_eq!(types, want);
    play.lives(&first, (b, &second));
}

#[test]
fn panic_in_a_background_turn_ends_only_that_turn() {
    let mut play = Play::new();
    play.say(&Play::text("A", "unasked"));
    play.say("trap in A");
    assert_eq!(play.types("a").last().unwrap(), "error");
    play.turn("a", "A");
    play.turn("b", "B");
    assert_eq!(play.sent(), [Value::Null; 0]);
}

#[test]
fn panic_at_the_end_of_a_turn_is_an_error_of_that_turn() {
    let mut play = Play::new();
    play.client.trap = Some((r#""type":"finish""#, 1));
    let [(a, first), (b, second)] = play.both();
    play.say(&Play::text("A", "kept"));
    play.answer(&first, &json!({"stopReason": "end_turn"}));
    play.internal(a);
    assert_eq!(
        play.sent(),
        [Value::Null; 0],
        "it has ended: nothing to cancel"
    );
    play.say(&Play::text("B", "whole"));
    play.answer(&second, &json!({"stopReason": "end_turn"}));
    assert_eq!(play.result(b)["text"], "whole");
    play.turn("a", "A");
}

#[test]
fn second_panic_during_the_repair_still_ends_the_turn() {
    let mut play = Play::new();
    let [(a, first), (b, second)] = play.both();
    play.say(&Play::text("A", "kept"));
    play.client.trap = Some(("text-end", 1));
    play.say("trap in A");
    play.internal(a);
    assert_eq!(play.types("a").last().unwrap(), "error");
    play.lives(&first, (b, &second));
}

#[test]
fn panic_in_the_reader_stops_the_process() {
    reader_panics("trap in the reader");
}

#[test]
fn second_panic_while_stopping_ends_the_agent() {
    reader_panics("trap in the reader and at its end");
}

/// Lets the reader panic at this line; the process is ended and replaced.
fn reader_panics(line: &str) {
    let mut play = Play::new();
    let [(a, _), (b, _)] = play.both();
    play.say(&Play::text("A", "kept"));
    play.say(&format!("{line}\n{line}"));
    play.internal(a);
    play.internal(b);
    assert_eq!(play.result(a)["text"], "kept");
    assert_eq!(play.client.states.last(), Some(&AgentState::Stopping));
    // The process ends like any other and is replaced.
    play.sent();
    let (now, client) = (play.now, &mut play.client);
    let ended = AgentInput::Exited(Exit::default());
    assert!(
        play.hub
            .agent(play.agent, ended, &mut HubCx::new(now, client))
            .is_none()
    );
    play.connect();
    play.ask(Command::Ensure(params(json!({"sessionId": "a"}))));
    let call = play.sent().pop().unwrap();
    play.answer(&call, &json!({"sessionId": "A2"}));
    play.turn("a", "A2");
}

#[test]
fn panic_in_a_command_is_answered() {
    let mut play = Play::new();
    let [(_, first), (b, second)] = play.both();
    let queued = play.ask(prompt("a", "trap"));
    let mode = |mode: &str| Command::SetMode(params(json!({"sessionId": "b", "mode": mode})));
    let set = play.ask(mode("trap"));
    play.internal(set);
    assert_eq!(play.sent(), [Value::Null; 0], "no half line");
    let set = play.ask(mode("y"));
    let call = play.sent().pop().unwrap();
    play.answer(&call, &json!({}));
    play.result(set);
    play.answer(&first, &json!({"stopReason": "end_turn"}));
    play.internal(queued);
    let direct = play.ask(prompt("a", "trap"));
    play.internal(direct);
    play.say(&Play::text("B", "whole"));
    play.answer(&second, &json!({"stopReason": "end_turn"}));
    assert_eq!(play.result(b)["text"], "whole");
    play.turn("a", "A");
}
