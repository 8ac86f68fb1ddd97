//! Tests of rules for tools that the CLI runs without a permission request.

use super::play::settings;
use crate::client::{ClientId, Command, Notice, Reply, Token};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;

use crate::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_json::to_raw;
use acpipe_policy as policy;
use acpipe_policy::{Policy, Rule};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Protocol;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Instant;

/// A client that records its chunks, and the commands about which it is asked.
#[derive(Default)]
pub(super) struct RequestClient(Vec<Value>, pub Vec<(ClientRequestId, Option<String>)>);

impl ClientSink for RequestClient {
    fn reply(&mut self, _: Token, _: Result<Reply, Error>) {}
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.0.push(serde_json::from_slice(json).unwrap());
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        if let ClientRequest::Permission(asked) = request {
            self.1.push((ask, asked.command.clone()));
        }
    }
    fn withdraw(&mut self, ask: ClientRequestId, _: &DecisionSource) {
        self.1.retain(|(open, _)| *open != ask);
    }
    fn notify(&mut self, _: &Notice) {}
}

pub(super) struct Play {
    hub: Hub,
    pub client: RequestClient,
    now: Instant,
}

const VERSION: AgentId = AgentId(1);
const SESSION: AgentId = AgentId(2);

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

/// A policy that denies reading `.env` and asks about Bash.
fn rules() -> Policy {
    let mut policy = Policy::default();
    let mut secrets = Rule::new("rule \"secrets\"".to_owned(), policy::Effect::Deny);
    secrets.path("**/.env", None).unwrap();
    policy.add(secrets);
    let mut shell = Rule::new("rule \"shell\"".to_owned(), policy::Effect::Ask);
    shell.kind("execute").unwrap();
    policy.add(shell);
    policy
}

impl Play {
    /// Returns a running turn under this policy, and the first message to the CLI.
    pub fn new(policy: Policy) -> (Self, Value) {
        Self::with_options(policy, &json!({}))
    }

    /// Like [`Self::new`] in a session with these options.
    pub fn with_options(policy: Policy, options: &Value) -> (Self, Value) {
        Self::with(policy, options, &json!({}))
    }

    /// Like [`Self::with_options`], with a client that has these capabilities.
    pub fn with(policy: Policy, options: &Value, can: &Value) -> (Self, Value) {
        let now = Instant::now();
        Self::of(Self::hub(policy, now), now, options, can)
    }

    /// Like [`Self::new`] in a daemon.
    pub fn in_daemon(policy: Policy) -> (Self, Value) {
        let now = Instant::now();
        let hub = Self::hub(policy, now).resident();
        Self::of(hub, now, &json!({}), &json!({}))
    }

    fn hub(policy: Policy, now: Instant) -> Hub {
        let mut settings = settings(now);
        settings.default_agent.spec.protocol = Protocol::Claude;
        settings.policy = policy;
        Hub::new(settings, Box::new(MemoryStore))
    }

    fn of(hub: Hub, now: Instant, options: &Value, can: &Value) -> (Self, Value) {
        let mut play = Self {
            hub,
            client: RequestClient::default(),
            now,
        };
        let hello = json!({"protocolVersion": 1, "capabilities": can});
        play.ask(Command::Initialize(params(hello)));
        play.ask(Command::Connect(params(json!({}))));
        play.hear(VERSION, AgentInput::Batch(Batch::Lines("2.1.330\n".into())));
        let exit = Exit {
            code: Some(0),
            ..Exit::default()
        };
        play.hear(VERSION, AgentInput::Exited(exit));
        let hello = play.ask(Command::Ensure(params(json!({"options": options}))));
        play.says(&json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": "1", "response": {}}}));
        play.ask(Command::Prompt(params(json!({"message": "go"}))));
        (play, hello[0]["request"].clone())
    }

    /// Takes the frames that were sent to the CLI.
    fn frames(&mut self) -> Vec<Value> {
        let effects = self.hub.effects(self.now).into_iter();
        let sent = effects.filter_map(|effect| match effect {
            Effect::Send(SESSION, bytes) => Some(bytes),
            _ => None,
        });
        let lines: Vec<u8> = sent.flatten().collect();
        let lines = lines.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        lines.map(|l| serde_json::from_slice(l).unwrap()).collect()
    }

    fn ask(&mut self, command: Command) -> Vec<Value> {
        let client = &mut self.client;
        self.hub
            .command(Token::first(1), command, &mut HubCx::new(self.now, client));
        self.frames()
    }

    fn hear(&mut self, id: AgentId, input: AgentInput) {
        let client = &mut self.client;
        assert!(
            self.hub
                .agent(id, input, &mut HubCx::new(self.now, client))
                .is_none()
        );
    }

    /// Returns the output that answers a request of acpipe to the client.
    pub fn answers(&mut self, ask: ClientRequestId, option: &str) -> Vec<Value> {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let (client, answer) = (Token::first(1).client, Ok(to_raw(&outcome)));
        let sink = &mut self.client;
        self.hub
            .client_answered(client, ask, &answer, &mut HubCx::new(self.now, sink));
        self.frames()
    }

    pub fn says(&mut self, frame: &Value) -> Vec<Value> {
        self.prints(&frame.to_string())
    }

    /// Sends lines as the CLI; returns the frames that acpipe sends.
    pub fn prints(&mut self, lines: &str) -> Vec<Value> {
        let lines = Batch::Lines(format!("{lines}\n").into());
        self.hear(SESSION, AgentInput::Batch(lines));
        self.frames()
    }

    /// Reports a tool call as the CLI, in a message of this id.
    fn begins(&mut self, message: &str, call: &str, parent: Option<&str>, command: &str) {
        let call =
            json!({"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}});
        self.says_block(message, parent, &call);
    }

    pub fn says_block(&mut self, message: &str, parent: Option<&str>, block: &Value) {
        self.says(
            &json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": parent, "message": {
            "id": message, "role": "assistant", "content": [block]}}),
        );
    }

    /// Requests permission for a tool call; returns the frames that acpipe sends at once.
    pub fn requests(&mut self, id: &str, call: &str, tool: &str, input: &Value) -> Vec<Value> {
        self.says(
            &json!({"type": "control_request", "request_id": id, "request": {
            "subtype": "can_use_tool", "tool_name": tool, "input": input, "tool_use_id": call}}),
        )
    }

    /// Reports the result of a tool call as the CLI.
    pub fn ends(&mut self, call: &str, parent: Option<&str>, output: &str) {
        self.says(&json!({"type": "user", "session_id": "s", "parent_tool_use_id": parent, "message": {
            "role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]}}));
    }

    /// Ends the turn as the CLI.
    pub fn ends_turn(&mut self) {
        self.says(
            &json!({"type": "result", "subtype": "success", "session_id": "s", "is_error": false,
            "result": "", "num_turns": 1}),
        );
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.client));
    }

    /// Returns the chunks of a type.
    pub fn chunks(&self, kind: &str) -> Vec<&Value> {
        let chunks = self.client.0.iter();
        chunks.filter(|chunk| chunk["type"] == kind).collect()
    }

    /// Reports a tool call as the CLI; returns the response.
    fn calls(&mut self, session: &str, tool: &str, input: &Value) -> Value {
        let call = json!({"type": "assistant", "session_id": session, "parent_tool_use_id": null, "message": {
            "id": "m", "role": "assistant", "content": [
                {"type": "tool_use", "id": "t", "name": tool, "input": input}]}});
        self.says(&call);
        self.hooks(tool, input)
    }

    /// Reports a tool call by the hook; returns the response.
    pub fn hooks(&mut self, tool: &str, input: &Value) -> Value {
        let hook = json!({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input, "tool_use_id": "t"});
        let answers = self.says(&json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "hook_callback", "callback_id": "acpipe", "input": hook, "tool_use_id": "t"}}));
        assert_eq!(answers.len(), 1, "{answers:?}");
        answers[0]["response"]["response"].clone()
    }
}

#[test]
fn rules_apply_to_tools_claude_does_not_ask_about() {
    for (tool, input, decision) in [
        ("Read", json!({"file_path": "/w/.env"}), json!("deny")),
        ("Bash", json!({"command": "ls"}), json!("ask")),
        ("Read", json!({"file_path": "/w/a"}), Value::Null),
    ] {
        let (mut play, hello) = Play::new(rules());
        assert_eq!(
            hello["hooks"],
            json!({"PreToolUse": [{"hookCallbackIds": ["acpipe"]}]})
        );
        let answer = play.calls("s", tool, &input);
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], decision);
        let told = |kind: &str| play.client.0.iter().find(|c| c["type"] == kind);
        if decision == "deny" {
            assert_eq!(told("tool-approval-response").unwrap()["approved"], false);
            let shown = play
                .client
                .0
                .iter()
                .rfind(|c| c["type"] == "data-permission");
            assert_eq!(shown.unwrap()["data"]["rule"], "rule \"secrets\"");
        } else {
            // Nothing is decided yet.
            assert_eq!(told("data-permission"), None);
        }
    }
}

#[test]
fn with_rules_the_default_applies_to_unasked_tools() {
    for (mode, decision) in [
        (policy::Mode::Deny, json!("deny")),
        (policy::Mode::Ask, Value::Null),
    ] {
        let mut policy = rules();
        policy.set_mode(mode);
        let (mut play, _) = Play::new(policy);
        let answer = play.calls("s", "Glob", &json!({"pattern": "*"}));
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], decision);
    }
}

#[test]
fn without_rules_claude_gets_no_hook() {
    for mode in [policy::Mode::Approve, policy::Mode::Deny] {
        let (_, hello) = Play::new(mode.into());
        assert_eq!(hello["hooks"], Value::Null);
    }
}

#[test]
fn tool_use_id_that_is_used_again_is_that_of_another_call() {
    let (mut play, _) = Play::new(policy::Mode::Deny.into());
    for (n, command) in ["ls", "pwd", "rm x"].iter().enumerate() {
        play.begins(&format!("m{n}"), "search:0", None, command);
        play.ends("search:0", None, command);
    }
    play.ends_turn();
    let want = ["search:0", "search:0#2", "search:0#3"];
    let outputs = play.chunks("tool-output-available");
    let ids: Vec<&Value> = outputs.iter().map(|chunk| &chunk["toolCallId"]).collect();
    assert_eq!(ids, want);
    let text = |chunk: &Value| chunk["output"]["content"][0]["content"]["text"].clone();
    let texts: Vec<Value> = outputs.iter().map(|chunk| text(chunk)).collect();
    assert_eq!(texts, ["ls", "pwd", "rm x"]);
    let notices = play.chunks("data-notice");
    let reported: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
    assert_eq!(reported, want);
}

#[test]
fn call_that_claude_never_ends_is_reported_unless_its_input_is_incomplete() {
    let (mut play, _) = Play::new(policy::Mode::Deny.into());
    play.begins("m", "t", None, "rm x");
    let event = |event: Value| json!({"type": "stream_event", "session_id": "s", "parent_tool_use_id": null, "event": event});
    play.says(&event(
        json!({"type": "message_start", "message": {"id": "m2"}}),
    ));
    play.says(&event(json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "tool_use", "id": "u", "name": "Bash", "input": {}}})));
    play.ends_turn();
    let notices = play.chunks("data-notice");
    let reported: Vec<&Value> = notices.iter().map(|n| &n["data"]["toolCallId"]).collect();
    assert_eq!(reported, ["t"]);
    assert_eq!(
        notices[0]["data"]["title"],
        "The agent may have run a tool without asking"
    );
}

#[test]
fn tool_that_a_list_of_the_session_allows_raises_no_alarm() {
    let bash = ("Bash", json!({"command": "ls"}));
    let fetch = ("WebFetch", json!({"url": "https://a.example"}));
    for (entry, (name, input), reported) in [
        ("Bash", bash.clone(), 0),
        ("Bash(ls:*)", bash.clone(), 0),
        // acpipe has no such condition, so Claude Code may have allowed the tool by it.
        ("WebFetch(domain:a.example)", fetch.clone(), 0),
        ("Read", bash, 1),
        ("Read", fetch, 1),
    ] {
        let options = json!({"allowedTools": [entry]});
        let (mut play, _) = Play::with_options(policy::Mode::Deny.into(), &options);
        let call = json!({"type": "tool_use", "id": "t", "name": name, "input": input});
        play.says_block("m", None, &call);
        play.ends("t", None, "files");
        play.ends_turn();
        assert_eq!(play.chunks("data-notice").len(), reported, "{entry} {name}");
    }
}

#[test]
fn tool_that_a_list_of_the_session_allows_passes_the_hook() {
    let mut rules = rules();
    rules.set_mode(policy::Mode::Deny);
    let options = json!({"allowedTools": ["Glob"]});
    let (mut play, _) = Play::with_options(rules, &options);
    let answer = play.calls("s", "Glob", &json!({"pattern": "*"}));
    assert_eq!(answer, json!({}));
}

/// The CLI was started with the list, so it runs the tool unless the hook says otherwise.
#[test]
fn list_of_another_client_lets_no_tool_pass_the_hook() {
    let (bash, input) = ("Bash", json!({"command": "rm x"}));
    for (mode, decision) in [(policy::Mode::Deny, "deny"), (policy::Mode::Ask, "ask")] {
        let now = Instant::now();
        let hub = Play::hub(mode.into(), now).resident();
        let options = json!({"allowedTools": [bash]});
        let (mut play, _) = Play::of(hub, now, &options, &json!({}));
        assert_eq!(play.calls("s", bash, &input), json!({}));
        play.ends("t", None, "");
        play.ends_turn();
        let hello = Command::Initialize(params(json!({"protocolVersion": 1})));
        let ensure = Command::Ensure(params(json!({})));
        let prompt = Command::Prompt(params(json!({"message": "go"})));
        for (call, command) in [hello, ensure, prompt].into_iter().enumerate() {
            let token = Token {
                client: ClientId(7),
                call: call as u64,
            };
            let cx = &mut HubCx::new(play.now, &mut play.client);
            play.hub.command(token, command, cx);
        }
        play.frames();
        let answer = play.calls("s", bash, &input);
        let decided = &answer["hookSpecificOutput"]["permissionDecision"];
        assert_eq!(decided, decision, "{answer}");
    }
}

#[test]
fn tool_that_is_judged_before_it_is_reported_raises_an_alarm_only_if_it_is_another_one() {
    let changed = "The agent changed a tool call after it was approved";
    for (parent, path, want) in [
        (Some("parent"), "/w/a", &[][..]),
        (Some("parent"), "/w/.env", &[changed]),
        (None, "/w/a", &[]),
        (None, "/w/.env", &[changed]),
    ] {
        let (mut play, _) = Play::new(rules());
        let hook = json!({"hook_event_name": "PreToolUse", "tool_name": "Read",
            "tool_input": {"file_path": "/w/a"}, "tool_use_id": "t"});
        play.says(
            &json!({"type": "control_request", "request_id": "r", "request": {
            "subtype": "hook_callback", "callback_id": "acpipe", "input": hook, "tool_use_id": "t"}}),
        );
        let block =
            json!({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": path}});
        play.says_block("m", parent, &block);
        play.ends("t", parent, "x");
        play.ends_turn();
        let notices = play.chunks("data-notice");
        let titles: Vec<&Value> = notices.iter().map(|n| &n["data"]["title"]).collect();
        assert_eq!(titles, want, "{parent:?} {path}");
    }
}

#[test]
fn tool_without_an_id_or_with_a_number_is_judged() {
    for (id, want) in [(json!(7), "7"), (Value::Null, "no-id")] {
        let (mut play, _) = Play::new(policy::Mode::Deny.into());
        let block =
            json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "rm x"}});
        play.says_block("m", None, &block);
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
        play.says(
            &json!({"type": "user", "session_id": "s", "parent_tool_use_id": null,
            "message": {"role": "user", "content": [result]}}),
        );
        let notices = play.chunks("data-notice");
        assert_eq!(notices.len(), 1, "{id}");
        let notice = &notices[0]["data"];
        assert_eq!(
            (&notice["title"], &notice["toolCallId"]),
            (&json!("The agent ran a tool without asking"), &json!(want))
        );
    }
}
