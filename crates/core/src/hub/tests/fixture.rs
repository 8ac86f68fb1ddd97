//! Test fixture: a hub with several clients, and an agent that requests permissions.

use crate::client::{ClientId, Command, Token};
use crate::client_request::ClientRequestId;
use crate::client_sink::{ClientSink, ClientSinks};
use crate::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use crate::store::{MemoryStore, Store};
use crate::testing::{RecordingClient, SettingsBuilder, messages, params};
use acpipe_json::to_raw;
use acpipe_model::error::ErrorKind;
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

pub(super) const A: ClientId = ClientId(0);
pub(super) const B: ClientId = ClientId(1);
pub(super) const C: ClientId = ClientId(2);

#[derive(Default)]
pub(super) struct Sinks(pub BTreeMap<ClientId, RecordingClient>);

impl ClientSinks for Sinks {
    fn sink(&mut self, client: ClientId) -> Option<&mut dyn ClientSink> {
        Some(self.0.get_mut(&client)?)
    }
}

pub(super) struct Fixture {
    pub hub: Hub,
    pub sinks: Sinks,
    pub now: Instant,
    pub calls: u64,
    /// The processes that were started.
    pub agents: Vec<AgentId>,
    /// Requests that agents received and have not answered.
    pub requests: Vec<Value>,
    /// All messages that agents received.
    pub received: Vec<Value>,
}

impl Fixture {
    /// Creates clients that can all answer requests, and a session `s` that all of them ensured.
    pub fn with(clients: &[ClientId]) -> Self {
        Self::of(SettingsBuilder::new(Instant::now()), clients)
    }

    pub fn of(settings: SettingsBuilder, clients: &[ClientId]) -> Self {
        Self::on(Box::new(MemoryStore), settings, clients)
    }

    pub fn on(store: Box<dyn Store>, settings: SettingsBuilder, clients: &[ClientId]) -> Self {
        Self::under(Mode::Ask, store, settings, clients)
    }

    pub fn under(
        policy: impl Into<Policy>,
        store: Box<dyn Store>,
        settings: SettingsBuilder,
        clients: &[ClientId],
    ) -> Self {
        let settings = settings.policy(policy).build();
        let (now, _) = settings.clock;
        let mut t = Self {
            hub: Hub::new(settings, store),
            sinks: Sinks::default(),
            now,
            calls: 0,
            agents: Vec::new(),
            requests: Vec::new(),
            received: Vec::new(),
        };
        for client in clients {
            t.connect(*client);
        }
        for client in clients {
            t.ensure(*client, "s");
        }
        t
    }

    pub fn connect(&mut self, client: ClientId) {
        let can = json!({"permissions": true, "questions": true, "fs": {"readTextFile": true}});
        self.connect_with(client, &can);
    }

    pub fn connect_with(&mut self, client: ClientId, can: &Value) {
        self.sinks.0.insert(client, RecordingClient::default());
        let hello = json!({"protocolVersion": 1, "capabilities": can});
        let call = self.call(client, Command::Initialize(params(hello)));
        self.result(client, call);
    }

    pub fn call(&mut self, client: ClientId, command: Command) -> u64 {
        self.calls += 1;
        let call = self.calls;
        let token = Token { client, call };
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.sinks));
        self.settle();
        call
    }

    pub fn ensure(&mut self, client: ClientId, session: &str) {
        let ensure = Command::Ensure(params(json!({"sessionId": session})));
        let call = self.call(client, ensure);
        self.answer_all();
        self.result(client, call);
    }

    pub fn prompt(&mut self, client: ClientId, session: &str) -> u64 {
        let prompt = json!({"sessionId": session, "message": "go"});
        self.call(client, Command::Prompt(params(prompt)))
    }

    pub fn reply(&mut self, client: ClientId, call: u64) -> Option<Result<Value, ErrorKind>> {
        let sink = self.sinks.0.get_mut(&client)?;
        let answer = sink.take_answer(Token { client, call })?;
        Some(answer.map_err(|error| error.kind))
    }

    pub fn result(&mut self, client: ClientId, call: u64) -> Value {
        let reply = self.reply(client, call);
        reply.expect("a reply").expect("a result")
    }

    /// Does what the loop does after each event.
    pub fn settle(&mut self) {
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.sinks));
        self.hub.commit(&mut HubCx::new(self.now, &mut self.sinks));
        self.hub
            .catch_up(&mut HubCx::new(self.now, &mut self.sinks));
        let mut looped = Vec::new();
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agents.push(id),
                // The loopback of a backend returns its lines.
                Effect::Send(id, lines) if !lines.starts_with(b"{") => looped.push((id, lines)),
                Effect::Send(_, lines) => {
                    for line in lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                        let message: Value = serde_json::from_slice(line).unwrap();
                        if message["method"].is_string() && message["id"].is_number() {
                            self.requests.push(message.clone());
                        }
                        self.received.push(message);
                    }
                }
                _ => {}
            }
        }
        for (id, lines) in looped {
            let input = AgentInput::Batch(acpipe_json::frame::Batch::Lines(lines.into()));
            let mut cx = HubCx::new(self.now, &mut self.sinks);
            assert!(self.hub.agent(id, input, &mut cx).is_none());
            self.settle();
        }
    }

    /// Answers all requests but prompts, as the agent. The agent session id of each session equals its id.
    pub fn answer_all(&mut self) {
        while let Some(at) = self
            .requests
            .iter()
            .position(|r| r["method"] != "session/prompt")
        {
            let request = self.requests.remove(at);
            let result = match request["method"].as_str().unwrap() {
                "initialize" => json!({"protocolVersion": 1}),
                "session/new" => json!({"sessionId": format!("at-{}", self.calls)}),
                _ => json!({}),
            };
            self.say(&[json!({"id": request["id"], "result": result})]);
        }
    }

    pub fn end_turn(&mut self) {
        let prompts = |r: &Value| r["method"] == "session/prompt";
        let at = self.requests.iter().position(prompts).expect("a prompt");
        let request = self.requests.remove(at);
        self.say(&[json!({"id": request["id"], "result": {"stopReason": "end_turn"}})]);
    }

    /// Returns the agent session id of the session that received the last prompt.
    pub fn prompted(&self) -> String {
        let prompts = |r: &&Value| r["method"] == "session/prompt";
        let last = self.received.iter().rfind(prompts).expect("a prompt");
        last["params"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub fn say(&mut self, lines: &[Value]) {
        assert!(self.offer(lines).is_none(), "the agent has to wait");
    }

    /// Passes output of the agent to the hub; returns the part that the hub does not take.
    pub fn offer(&mut self, lines: &[Value]) -> Option<AgentInput> {
        let agent = *self.agents.last().expect("an agent");
        let rest = self.hub.agent(
            agent,
            messages(lines),
            &mut HubCx::new(self.now, &mut self.sinks),
        );
        self.settle();
        rest
    }

    pub fn words(session: &str, words: &str) -> Value {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": words}});
        let params = json!({"sessionId": session, "update": update});
        json!({"method": "session/update", "params": params})
    }

    /// Sends updates of the prompted session.
    pub fn update(&mut self, session: &str, updates: &[Value]) {
        let messages: Vec<Value> = updates
            .iter()
            .map(|update| {
                let params = json!({"sessionId": session, "update": update});
                json!({"method": "session/update", "params": params})
            })
            .collect();
        self.say(&messages);
    }

    /// Requests permission for a call by request `id`.
    pub fn request_permission(&mut self, id: &str, session: &str, tool: &Value) {
        let options = json!([
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]);
        let params = json!({"sessionId": session, "toolCall": tool, "options": options});
        self.say(&[json!({"id": id, "method": "session/request_permission", "params": params})]);
    }

    /// Returns the option in the response to a permission request.
    pub fn chosen(&self, id: &str) -> String {
        let mut received = self.received.iter();
        let answer = received.find(|message| message["id"] == id && message["result"].is_object());
        let outcome = &answer.expect("a response")["result"]["outcome"];
        outcome["optionId"]
            .as_str()
            .unwrap_or("cancelled")
            .to_owned()
    }

    /// Returns the chunks of these types that a client received, in order.
    pub fn chunks(&self, client: ClientId, kinds: &[&str]) -> Vec<Value> {
        let chunks = self.sinks.0[&client].chunks.iter();
        let chunks = chunks.map(|given| given.chunk.clone());
        chunks
            .filter(|chunk| kinds.contains(&chunk["type"].as_str().unwrap_or_default()))
            .collect()
    }

    pub fn ask_permission(&mut self) {
        let options = json!([
            {"optionId": "y", "name": "Yes", "kind": "allow_once"},
            {"optionId": "n", "name": "No", "kind": "reject_once"},
        ]);
        let session = self.prompted();
        let tool = json!({"toolCallId": "t", "title": "Edit", "kind": "edit"});
        let params = json!({"sessionId": session, "toolCall": tool, "options": options});
        self.say(&[json!({"id": "q", "method": "session/request_permission", "params": params})]);
    }

    pub fn asked(&self, client: ClientId) -> Vec<ClientRequestId> {
        self.sinks.0[&client]
            .open_requests
            .keys()
            .copied()
            .collect()
    }

    pub fn answer(&mut self, client: ClientId, ask: ClientRequestId, answer: &Value) {
        let sink = self.sinks.0.get_mut(&client).unwrap();
        sink.open_requests.remove(&ask);
        let answer = Ok(to_raw(answer));
        self.hub.client_answered(
            client,
            ask,
            &answer,
            &mut HubCx::new(self.now, &mut self.sinks),
        );
        self.settle();
    }

    /// Returns the option in the response to the agent's permission request.
    pub fn decided(&self) -> Option<&str> {
        let answer = self.received.iter().find(|m| m["id"] == "q")?;
        let outcome = &answer["result"]["outcome"];
        Some(outcome["optionId"].as_str().unwrap_or("cancelled"))
    }

    pub fn texts(&self, client: ClientId) -> Vec<&str> {
        let chunks = self.sinks.0[&client].chunks.iter();
        chunks
            .filter_map(|given| given.chunk["delta"].as_str())
            .collect()
    }

    pub fn seqs(&self, client: ClientId) -> Vec<u64> {
        let chunks = self.sinks.0[&client].chunks.iter();
        chunks.map(|given| given.seq).collect()
    }

    pub fn set_full(&mut self, client: ClientId, full: bool) {
        self.sinks.0.get_mut(&client).unwrap().full = full;
        self.settle();
    }

    pub fn leave(&mut self, client: ClientId) {
        self.sinks.0.remove(&client);
        self.hub
            .client_left(client, &mut HubCx::new(self.now, &mut self.sinks));
        self.settle();
    }
}
