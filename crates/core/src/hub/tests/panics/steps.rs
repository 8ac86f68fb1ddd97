//! Test that plays a conversation many times, each time with a panic at another call of the dialect, the
//! client or the log.

use super::traps::{Trap, TrappedClient, TrappedDialect, TrappedStore};
use crate::client::{ClientId, Command, Reply, Token};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use crate::testing::{SettingsBuilder, messages, params};
use acpipe_dialects::acp::Acp;
use acpipe_json::frame::{Batch, Overlong};
use acpipe_json::to_raw;
use acpipe_model::dialect::{AgentServices, ProcessSpec};
use acpipe_model::error::ErrorKind;
use acpipe_policy::Mode;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

/// Cost of a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cost {
    /// No call fails: the panic is not noticed.
    Nothing,
    /// A call fails, or its turn ends, with an internal error.
    Call,
    /// The process that wrote the output is ended, with all its turns.
    Process,
    /// acpipe ends: the panic belongs to no session, process or command.
    Acpipe,
}

/// A client, two agents and their sessions: `a` and `b` at the first, `c` at the second.
struct Conversation {
    hub: Hub,
    client: TrappedClient,
    trap: Trap,
    now: Instant,
    calls: u64,
    /// Process of the first agent.
    first: AgentId,
    running: Vec<AgentId>,
    /// Prompts that the agents have not answered.
    prompts: Vec<(AgentId, Value)>,
    /// Text of each prompt that an agent received.
    received: BTreeSet<String>,
    /// Number of responses to the agent's request.
    decided: usize,
    answers_at_once: bool,
    is_over: bool,
}

impl Conversation {
    fn new() -> Self {
        let settings = SettingsBuilder::new(Instant::now()).policy(Mode::Ask);
        let settings = settings.build();
        let (now, _) = settings.clock;
        let trap = Trap::default();
        let mut t = Self {
            hub: Hub::new(settings, Box::new(TrappedStore(trap.clone()))),
            client: TrappedClient {
                trap: trap.clone(),
                ..TrappedClient::default()
            },
            trap,
            now,
            calls: 0,
            first: AgentId(0),
            running: Vec::new(),
            prompts: Vec::new(),
            received: BTreeSet::new(),
            decided: 0,
            answers_at_once: false,
            is_over: false,
        };
        let hello = json!({"protocolVersion": 1, "capabilities": {"permissions": true}});
        t.call(Command::Initialize(params(hello)));
        let connect = Command::Connect(params(json!({})));
        t.start(connect);
        let connection = t.hub.connection();
        let none = Box::new(Acp::new(ProcessSpec::default(), AgentServices::default()));
        let acp = std::mem::replace(connection.dialect_mut(), none);
        *connection.dialect_mut() = Box::new(TrappedDialect(acp, t.trap.clone()));
        t.settle();
        t.first = t.running[0];
        t.call(Command::Connect(params(
            json!({"agent": "other", "command": "x"}),
        )));
        for id in ["a", "b"] {
            t.call(Command::Ensure(params(json!({"sessionId": id}))));
        }
        t.call(Command::Ensure(params(
            json!({"sessionId": "c", "agent": "other"}),
        )));
        assert_eq!(t.client.answers.len(), 6, "{:?}", t.client.answers);
        t
    }

    /// Calls the hub; a panic that it does not catch ends acpipe.
    fn enter<T: Default>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        if self.is_over {
            return T::default();
        }
        let done = catch_unwind(AssertUnwindSafe(|| act(self)));
        done.unwrap_or_else(|_| {
            assert!(self.trap.disarm().is_some(), "a panic that was not set");
            self.is_over = true;
            T::default()
        })
    }

    fn start(&mut self, command: Command) -> u64 {
        self.calls += 1;
        let token = Token::first(self.calls);
        self.enter(|t| {
            t.hub
                .command(token, command, &mut HubCx::new(t.now, &mut t.client));
        });
        self.calls
    }

    fn call(&mut self, command: Command) -> u64 {
        let call = self.start(command);
        self.settle();
        call
    }

    fn prompt(&mut self, session: &str, text: &str) -> u64 {
        // The second part is left out with a notice.
        let parts = json!([{"type": "text", "text": text}, {"type": "reasoning", "text": "x"}]);
        let message = json!({"role": "user", "parts": parts});
        let prompt = json!({"sessionId": session, "message": message});
        self.call(Command::Prompt(params(prompt)))
    }

    /// Does what the loop does after each event, until nothing follows.
    fn settle(&mut self) {
        loop {
            self.enter(|t| t.hub.drained(true, &mut HubCx::new(t.now, &mut t.client)));
            self.enter(|t| t.hub.commit(&mut HubCx::new(t.now, &mut t.client)));
            let effects = self.enter(|t| t.hub.effects(t.now));
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Open(id, _) => self.running.push(id),
            Effect::Send(id, lines) => {
                for line in lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                    self.receive(id, serde_json::from_slice(line).expect("a whole line"));
                }
            }
            Effect::CloseInput(id) if self.running.contains(&id) => self.end(id),
            _ => {}
        }
    }

    /// Ends a process.
    fn end(&mut self, id: AgentId) {
        self.running.retain(|running| *running != id);
        self.prompts.retain(|(of, _)| *of != id);
        self.input(id, AgentInput::Exited(Exit::default()));
    }

    /// Handles a message as the agent.
    fn receive(&mut self, id: AgentId, message: Value) {
        let result = match message["method"].as_str() {
            Some("session/prompt") => return self.receive_prompt(id, message),
            Some("session/cancel") => {
                let session = message["params"]["sessionId"].as_str().unwrap();
                return self.end_turn(session, "cancelled");
            }
            Some("initialize") => {
                let can = json!({"sessionCapabilities": {"resume": {}}});
                json!({"protocolVersion": 1, "agentCapabilities": can})
            }
            Some("session/new") => {
                let modes =
                    json!({"currentModeId": "x", "availableModes": [{"id": "x"}, {"id": "y"}]});
                json!({"sessionId": format!("S{}", self.calls), "modes": modes})
            }
            Some(_) => json!({}),
            None => {
                assert_eq!(message["id"], "q");
                self.decided += 1;
                return;
            }
        };
        self.respond(id, &message, &result);
    }

    fn receive_prompt(&mut self, id: AgentId, message: Value) {
        let text = message["params"]["prompt"][0]["text"].as_str().unwrap();
        assert!(self.received.insert(text.to_owned()), "{text} came twice");
        let session = message["params"]["sessionId"].as_str().unwrap().to_owned();
        let has = |(_, prompt): &(AgentId, Value)| prompt["params"]["sessionId"] == session;
        assert!(!self.prompts.iter().any(has), "two prompts of {session}");
        self.prompts.push((id, message));
        if self.answers_at_once {
            self.finish(&session);
        }
    }

    fn respond(&mut self, id: AgentId, call: &Value, result: &Value) {
        self.say(id, &json!({"id": call["id"], "result": result}));
    }

    fn say(&mut self, id: AgentId, message: &Value) {
        let input = messages(std::slice::from_ref(message));
        self.input(id, input);
    }

    fn input(&mut self, id: AgentId, input: AgentInput) {
        let rest = self.enter(|t| {
            t.hub
                .agent(id, input, &mut HubCx::new(t.now, &mut t.client))
        });
        assert!(rest.is_none(), "the agent has to wait");
        self.settle();
    }

    /// Returns the agent session id of the session that has a prompt with this text.
    fn agent_session(&self, text: &str) -> Option<String> {
        let has = |(_, prompt): &&(AgentId, Value)| prompt["params"]["prompt"][0]["text"] == text;
        let (_, prompt) = self.prompts.iter().find(has)?;
        Some(prompt["params"]["sessionId"].as_str()?.to_owned())
    }

    fn end_turn(&mut self, session: &str, stop_reason: &str) {
        let of = |(_, prompt): &(AgentId, Value)| prompt["params"]["sessionId"] == session;
        if let Some(at) = self.prompts.iter().position(of) {
            let (id, prompt) = self.prompts.remove(at);
            self.respond(id, &prompt, &json!({"stopReason": stop_reason}));
        }
    }

    /// Completes the prompt of a session as the agent.
    fn finish(&mut self, session: &str) {
        let of = |(_, prompt): &&(AgentId, Value)| prompt["params"]["sessionId"] == session;
        if let Some(id) = self.prompts.iter().find(of).map(|(id, _)| *id) {
            let content = json!({"type": "text", "text": "whole"});
            let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
            let params = json!({"sessionId": session, "update": update});
            self.say(id, &json!({"method": "session/update", "params": params}));
            self.end_turn(session, "end_turn");
        }
    }

    /// Plays the part of the conversation in which the panic may happen.
    fn go_on(&mut self) -> Vec<u64> {
        let mut calls = vec![self.prompt("a", "one"), self.prompt("a", "two")];
        if let Some(session) = self.agent_session("one") {
            self.ask_permission(&session);
            if let Some(ask) = self.client.open_requests.pop() {
                let yes = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
                self.enter(|t| {
                    let answer = Ok(to_raw(&yes));
                    t.hub.client_answered(
                        ClientId::FIRST,
                        ask,
                        &answer,
                        &mut HubCx::new(t.now, &mut t.client),
                    );
                });
                self.settle();
            }
            let mode = json!({"sessionId": "a", "mode": "y"});
            calls.push(self.call(Command::SetMode(params(mode))));
            let line = Overlong {
                len: 1 << 30,
                head: "{".into(),
                tail: "}".into(),
            };
            self.input(self.first, AgentInput::Batch(Batch::TooLong(line)));
            self.finish(&session);
        }
        calls.push(self.call(Command::Cancel(params(json!({"sessionId": "a"})))));
        if let Some(session) = self.agent_session("two") {
            self.finish(&session);
        }
        calls.push(self.prompt("a", "three"));
        if let Some(session) = self.agent_session("three") {
            self.finish(&session);
        }
        calls.push(self.prompt("a", "four"));
        calls.push(self.prompt("a", "five"));
        if !self.trap.has_panicked() {
            self.end(self.first);
        }
        calls
    }

    fn ask_permission(&mut self, session: &str) {
        let option = json!({"optionId": "y", "name": "Yes", "kind": "allow_once"});
        let tool = json!({"toolCallId": "t", "title": "Edit", "kind": "edit"});
        let params = json!({"sessionId": session, "toolCall": tool, "options": [option]});
        let method = "session/request_permission";
        self.say(
            self.first,
            &json!({"id": "q", "method": method, "params": params}),
        );
    }

    /// Plays the rest of the conversation without a panic, until everything open has ended.
    fn come_to_an_end(&mut self) {
        self.answers_at_once = true;
        for (_, prompt) in self.prompts.clone() {
            self.finish(prompt["params"]["sessionId"].as_str().unwrap());
        }
        for _ in 0..20 {
            let Some((at, _)) = self.hub.deadline() else {
                break;
            };
            self.now = at;
            self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
            self.settle();
        }
    }

    fn text(&self, call: u64) -> Option<String> {
        let answer = self.client.answers.get(&call);
        match answer.unwrap_or_else(|| panic!("call {call} is unanswered")) {
            Ok(Reply::Turn(summary)) if !summary.is_error => Some(summary.text.clone()),
            _ => None,
        }
    }

    /// Returns `true` if a call failed, or its turn ended, with an internal error.
    fn is_internal(&self, call: u64) -> bool {
        match &self.client.answers[&call] {
            Ok(Reply::Turn(summary)) => {
                let kinds = summary.errors.iter().map(|error| error.kind.as_str());
                kinds.eq([ErrorKind::Internal.name()])
            }
            Ok(_) => false,
            Err(error) => error.kind == ErrorKind::Internal,
        }
    }
}

/// Plays the conversation with a panic after this many calls; `None` if there are fewer calls.
fn play(before: usize) -> Option<(&'static str, Cost)> {
    let mut t = Conversation::new();
    let [b, c] = ["b", "c"].map(|id| t.prompt(id, id));
    t.trap.arm(before);
    let calls = t.go_on();
    let step = t.trap.disarm()?;
    if t.is_over {
        return Some((step, Cost::Acpipe));
    }
    t.come_to_an_end();
    // The other agent is not affected, and all sessions take the next prompt.
    assert_eq!(t.text(c).as_deref(), Some("whole"), "{step}");
    let cost = if t.running.contains(&t.first) {
        assert_eq!(t.text(b).as_deref(), Some("whole"), "{step}");
        match calls.iter().filter(|call| t.is_internal(**call)).count() {
            0 => Cost::Nothing,
            1 => Cost::Call,
            many => panic!("{step}: {many} calls failed"),
        }
    } else {
        Cost::Process
    };
    // A client that panics while it receives an answer has lost it.
    let unanswered = calls
        .iter()
        .chain([&b])
        .filter(|call| !t.client.answers.contains_key(call));
    assert!(unanswered.count() <= usize::from(step == "reply"), "{step}");
    assert!(t.client.open_requests.is_empty(), "{step}");
    assert!(t.decided <= 1, "{step}");
    for id in ["a", "b", "c"] {
        let call = t.prompt(id, &format!("{id} again"));
        t.come_to_an_end();
        assert_eq!(t.text(call).as_deref(), Some("whole"), "{step}: {id}");
    }
    Some((step, cost))
}

#[test]
fn panic_at_each_step_affects_only_its_owner() {
    use Cost::{Acpipe, Call, Process};
    let mut costs: BTreeMap<&str, BTreeSet<Cost>> = BTreeMap::new();
    for before in 0.. {
        let Some((step, cost)) = play(before) else {
            break;
        };
        costs.entry(step).or_default().insert(cost);
    }
    let want: [(&str, &[Cost]); 25] = [
        ("after answer", &[Call]),
        ("after cancel", &[Call]),
        ("after ended", &[Process]),
        ("after prompt", &[Call]),
        ("after read", &[Process]),
        ("after read_lost", &[Process]),
        ("after set", &[Call]),
        // Acpipe: the logs of all sessions are written before the client receives anything.
        ("append", &[Call, Process, Acpipe]),
        ("ask", &[Process]),
        ("before answer", &[Call]),
        ("before cancel", &[Call]),
        ("before ended", &[Process]),
        ("before prompt", &[Call]),
        ("before read", &[Process]),
        ("before read_lost", &[Process]),
        ("before set", &[Call]),
        ("chunk", &[Call, Process]),
        ("chunk data-notice", &[Call, Process]),
        ("chunk error", &[Process]),
        ("chunk finish", &[Call]),
        ("chunk start", &[Call, Process]),
        ("describe", &[Call, Process]),
        // Acpipe: the agent is restarted for queued prompts.
        ("notify", &[Call, Process, Acpipe]),
        ("reply", &[Call, Process]),
        ("sync", &[Call, Process]),
    ];
    let want = want.map(|(step, costs)| (step, costs.iter().copied().collect()));
    assert_eq!(costs, BTreeMap::from(want));
}
