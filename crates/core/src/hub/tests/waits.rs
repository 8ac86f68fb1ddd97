//! Tests of timeouts and wait notices, in virtual time.

mod limit;
mod slow_start;
mod stderr;
mod stdout;
mod total;

use super::play::{program, settings};
use crate::client::{Command, History, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Hub, HubCx, Settings};
use crate::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use acpipe_model::process_health::HealthChange;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Program;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A client that records its answers and the wait notices.
#[derive(Default)]
struct NoticeClient {
    answers: HashMap<u64, Result<Value, Error>>,
    wait_notices: Vec<Value>,
}

impl ClientSink for NoticeClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
        assert!(
            self.answers.insert(token.call, answer).is_none(),
            "{token:?}"
        );
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: &Notice) {
        let waiting = match notice {
            Notice::Activity(p) => &p.waiting_for,
            Notice::AgentState(p) if p.waiting_for.is_some() => &p.waiting_for,
            Notice::AgentState(_)
            | Notice::SessionState(_)
            | Notice::Presence(_)
            | Notice::UserMessage(_)
            | Notice::Acp(_)
            | Notice::Restored(..)
            | Notice::PolicyWarning(..) => return,
        };
        self.wait_notices
            .push(serde_json::to_value(waiting).unwrap());
    }
}

struct Play {
    hub: Hub,
    client: NoticeClient,
    begun: Instant,
    now: Instant,
    tokens: u64,
    agent: AgentId,
}

const S: fn(u64) -> Duration = Duration::from_secs;

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

impl Play {
    /// Starts an agent; returns the handshake that it received.
    fn new(command: &str, limits: &[(Timeout, u64)]) -> (Self, Value) {
        let mut settings = settings(Instant::now());
        command.clone_into(&mut settings.default_agent.spec.command);
        Self::of(settings, limits)
    }

    /// Starts the default agent of these settings; returns the handshake that it received.
    fn of(mut settings: Settings, limits: &[(Timeout, u64)]) -> (Self, Value) {
        let now = Instant::now();
        for (wait, seconds) in limits {
            settings.limits.set(*wait, Some(S(*seconds)));
        }
        let mut play = Self {
            hub: Hub::new(settings, Box::new(MemoryStore)),
            client: NoticeClient::default(),
            begun: now,
            now,
            tokens: 0,
            agent: AgentId(0),
        };
        play.ask(Command::Initialize(params(json!({"protocolVersion": 1}))));
        play.ask(Command::Connect(params(json!({}))));
        let hello = play.sent();
        (play, hello)
    }

    fn started(&mut self) {
        self.started_as(program());
    }

    fn started_as(&mut self, program: Program) {
        let program = Box::new(program);
        self.hear(AgentInput::Started { pid: 1, program });
    }

    /// Writes to the agent's stderr.
    fn write_stderr(&mut self, text: &[u8]) {
        self.hear(AgentInput::Health(HealthChange {
            stderr: text.to_vec(),
            ..HealthChange::default()
        }));
    }

    fn set_pending_write(&mut self, pending_write: Option<Instant>) {
        self.hear(AgentInput::Health(HealthChange {
            pending_write,
            ..HealthChange::default()
        }));
    }

    /// Opens a session at a ready agent that can load; returns the call to the agent.
    fn opening(limits: &[(Timeout, u64)], wish: Value) -> (Self, u64, Value) {
        let (mut play, hello) = Self::new("agent", limits);
        play.started();
        let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
        play.answer(&hello, &can);
        let asked = play.ask(Command::Ensure(params(wish)));
        let call = play.sent();
        (play, asked, call)
    }

    /// Begins a turn.
    fn prompted(limits: &[(Timeout, u64)]) -> (Self, u64, Value) {
        let (mut play, _, call) = Self::opening(limits, json!({}));
        play.answer(&call, &json!({"sessionId": "S"}));
        let prompt = play.ask(Command::Prompt(params(json!({"message": "x"}))));
        let call = play.sent();
        assert_eq!(call["method"], "session/prompt");
        play.client.wait_notices.clear();
        (play, prompt, call)
    }

    fn ask(&mut self, command: Command) -> u64 {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.hub
            .command(token, command, &mut HubCx::new(self.now, &mut self.client));
        self.tokens
    }

    /// Returns the last message that was sent to the agent.
    fn sent(&mut self) -> Value {
        self.hub.commit(&mut HubCx::new(self.now, &mut self.client));
        let mut last = Value::Null;
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agent = id,
                Effect::Send(_, lines) => last = serde_json::from_slice(&lines).unwrap(),
                _ => {}
            }
        }
        last
    }

    fn hear(&mut self, input: AgentInput) {
        let (now, client) = (self.now, &mut self.client);
        assert!(
            self.hub
                .agent(self.agent, input, &mut HubCx::new(now, client))
                .is_none()
        );
        self.hub.drained(true, &mut HubCx::new(now, client));
    }

    fn say(&mut self, line: &str) {
        self.hear(AgentInput::Batch(Batch::Lines(format!("{line}\n").into())));
    }

    fn answer(&mut self, call: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
        self.say(&answer.to_string());
    }

    fn update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        self.say(&update.to_string());
    }

    /// Lets time pass as the loop does: every timer expires when it is due.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some((at, _)) = self.hub.deadline().filter(|(at, _)| *at <= end) {
            self.now = at;
            self.hub.tick(&mut HubCx::new(at, &mut self.client));
            self.hub.rest(at);
            self.hub.wake(at);
        }
        self.now = end;
    }

    fn error(&self, token: u64) -> &Error {
        self.client.answers[&token].as_ref().unwrap_err()
    }

    /// Returns the only error of an ended turn.
    fn turn_error(&self, token: u64) -> Value {
        let summary = self.client.answers[&token].as_ref().unwrap();
        assert_eq!(summary["errorReason"], "timeout exceeded");
        summary["errors"][0].clone()
    }

    /// Lets time pass; returns the wait notices, each with its time in seconds.
    fn wait_notices(&mut self, until: Duration) -> Vec<(u64, Value)> {
        let mut all = Vec::new();
        let end = self.now + until;
        while self.now < end {
            self.pass(S(1));
            let at = self.now.duration_since(self.begun).as_secs();
            all.extend(
                self.client
                    .wait_notices
                    .drain(..)
                    .map(|wait_notices| (at, wait_notices)),
            );
        }
        all
    }

    fn waiting(&mut self) -> Value {
        let token = self.ask(Command::History(History::GetSession(params(json!({})))));
        self.client.answers[&token].as_ref().unwrap()["waitingFor"].clone()
    }
}

fn text() -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}})
}

fn tool(status: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "make", "kind": "execute",
        "status": status, "rawInput": {}})
}

#[test]
fn unanswered_handshake_fails_the_connect() {
    // (output of the agent, last activity, message)
    let cases = [
        (None, Value::Null, "within 60 s (no activity)"),
        (
            Some("Usage: agent"),
            json!({"what": "unrelated output", "agoMs": 50_000}),
            "(last activity: unrelated output, 50 s ago)",
        ),
    ];
    for (said, last, words) in cases {
        let (mut play, _) = Play::new("agent", &[]);
        play.started();
        play.write_stderr(b"loading\n\x1b[1mno key\n");
        play.pass(S(10));
        if let Some(said) = said {
            play.say(said);
        }
        play.pass(S(49));
        assert!(!play.client.answers.contains_key(&2));
        play.pass(S(1));
        let error = play.error(2);
        assert!(error.message.contains(words), "{error}");
        assert!(error.message.ends_with("no key"), "{error}");
        let data = error.data();
        assert_eq!(data["kind"], "timeout");
        assert_eq!(data["stage"], "initialize");
        assert_eq!(data["waitedMs"], 60_000);
        assert_eq!(data["lastHeard"], last);
        assert!(data["stderr"].as_str().unwrap().starts_with("loading\n"));
    }
}

#[test]
fn spawn_timeout_error_names_its_stage() {
    let (mut play, _) = Play::new("agent", &[(Timeout::Spawn, 7)]);
    play.pass(S(7));
    let data = play.error(2).data();
    assert_eq!(data["stage"], "spawn");
    assert_eq!(data["waitedMs"], 7000);
    assert_eq!(data.get("stderr"), None);
}

#[test]
fn opening_has_no_limit_while_the_agent_sends_updates() {
    // Activity: of a session that is loaded, and of one whose id is not known yet.
    let load = json!({"agentSessionId": "S"});
    for (wish, session) in [(load, "S"), (json!({}), "early")] {
        let (mut play, asked, _) = Play::opening(&[(Timeout::Open, 20)], wish);
        for _ in 0..5 {
            play.pass(S(19));
            let update =
                json!({"sessionUpdate": "available_commands_update", "availableCommands": []});
            play.update(session, &update);
        }
        play.pass(S(19));
        assert!(!play.client.answers.contains_key(&asked), "{session}");
        play.pass(S(1));
        let error = play.error(asked);
        assert!(
            error.message.contains("no output from the agent for 20 s"),
            "{error}"
        );
        let data = error.data();
        assert_eq!(data["stage"], "open");
        assert_eq!(data["waitedMs"], 20_000);
        assert_eq!(data["lastHeard"]["agoMs"], 20_000);
    }
}

#[test]
fn updates_of_other_sessions_do_not_extend_an_opening() {
    let (mut play, asked, call) = Play::opening(&[(Timeout::Open, 20)], json!({}));
    play.answer(&call, &json!({"sessionId": "S"}));
    assert!(play.client.answers.contains_key(&asked));
    let other = play.ask(Command::Ensure(params(json!({"sessionId": "b"}))));
    play.sent();
    for _ in 0..3 {
        play.pass(S(9));
        play.update("S", &text());
    }
    assert_eq!(play.error(other).data()["lastHeard"], Value::Null);
}

#[test]
fn turn_has_no_idle_limit_by_default() {
    let (mut play, prompt, _) = Play::prompted(&[]);
    play.pass(S(1_000_000));
    assert_eq!(play.sent(), Value::Null);
    assert!(!play.client.answers.contains_key(&prompt));
}

#[test]
fn a_silent_turn_is_cancelled_and_ends_with_a_timeout() {
    let failed = json!({"error": {"code": -32603, "message": "aborted"}});
    // The result does not depend on the agent's response to the cancel.
    for answer in ["end_turn", "cancelled", "refusal", "error", "nothing"] {
        let (mut play, prompt, call) = Play::prompted(&[(Timeout::Prompt, 60)]);
        play.pass(S(40));
        play.update("S", &tool("in_progress"));
        play.pass(S(59));
        assert_eq!(play.sent(), Value::Null);
        play.pass(S(1));
        assert_eq!(play.sent()["method"], "session/cancel");
        // A cancel by the client has no further effect.
        play.ask(Command::Cancel(params(json!({}))));
        assert_eq!(play.sent(), Value::Null);
        match answer {
            "nothing" => play.pass(S(5)),
            "error" => {
                let mut answer = failed.clone();
                answer["jsonrpc"] = json!("2.0");
                answer["id"] = call["id"].clone();
                play.say(&answer.to_string());
            }
            stop => play.answer(&call, &json!({"stopReason": stop})),
        }
        let error = play.turn_error(prompt);
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("no output from the agent for 60 s"),
            "{message}"
        );
        assert!(message.contains("while tool"), "{message}");
        let unanswered = message.contains("session/cancel within 5 s");
        assert_eq!(unanswered, answer == "nothing", "{message}");
        let data = &error["data"];
        assert_eq!(data["stage"], "prompt");
        assert_eq!(
            data["lastHeard"],
            json!({"what": "tool call", "agoMs": 60_000})
        );
        // Only the response to the cancelled turn is still waited for.
        assert_eq!(play.hub.deadline().is_some(), answer == "nothing");
    }
}

#[test]
fn paused_reads_do_not_count_as_idle_time() {
    let (mut play, prompt, call) = Play::prompted(&[(Timeout::Prompt, 60)]);
    play.pass(S(50));
    // The loop does not tick meanwhile.
    play.now += S(1000);
    play.hub.postpone(S(1000));
    play.pass(S(9));
    play.update("S", &text());
    play.pass(S(59));
    assert_eq!(play.sent(), Value::Null);
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    assert_eq!(
        play.client.answers[&prompt].as_ref().unwrap()["isError"],
        false
    );
}

#[test]
fn paused_reads_do_not_time_out_a_start() {
    let (mut play, _) = Play::new("agent", &[(Timeout::Spawn, 7)]);
    play.now += S(1000);
    play.hub.postpone(S(1000));
    play.pass(S(6));
    assert_eq!(play.client.answers.get(&2), None);
    play.pass(S(1));
    assert_eq!(play.error(2).data()["stage"], "spawn");
}

#[test]
fn paused_reads_do_not_time_out_a_list() {
    let (mut play, hello) = Play::new("agent", &[]);
    play.started();
    let can =
        json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"list": {}}}});
    play.answer(&hello, &can);
    let list = play.ask(Command::History(History::ListSessions(params(
        json!({"agent": true}),
    ))));
    let call = play.sent();
    assert_eq!(call["method"], "session/list");
    play.now += S(1000);
    play.hub.postpone(S(1000));
    play.pass(S(9));
    assert_eq!(play.client.answers.get(&list), None);
}

#[test]
fn prompt_before_an_environment_change_does_not_wait_for_a_stuck_turn() {
    let (mut play, ..) = Play::prompted(&[(Timeout::Cancel, 5)]);
    play.ask(Command::Prompt(params(json!({"message": "next"}))));
    play.ask(Command::UpdateEnvironment(params(
        json!({"set": {"A": "b"}}),
    )));
    play.ask(Command::Cancel(params(json!({}))));
    play.pass(S(9));
    assert!(!play.hub.is_stopping());
    play.pass(S(1));
    assert!(play.hub.is_stopping());
}

#[test]
fn idle_turn_sends_a_wait_notice() {
    let (mut play, _, call) = Play::prompted(&[]);
    let wait_notices = play.wait_notices(S(45));
    let times: Vec<u64> = wait_notices.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [10, 20, 40]);
    assert_eq!(wait_notices[2].1["party"], "agent");
    assert_eq!(wait_notices[2].1["stage"], "prompt");
    assert_eq!(wait_notices[2].1["silentMs"], 40_000);
    assert_eq!(
        wait_notices[2].1["note"],
        "waiting for the agent, 40 s (no activity so far)"
    );
    // The end of the wait is notified too, once.
    play.update("S", &text());
    play.update("S", &text());
    assert_eq!(play.client.wait_notices, [Value::Null]);
    play.client.wait_notices.clear();
    play.begun = play.now;
    play.update("S", &tool("in_progress"));
    play.client.wait_notices.clear();
    let wait_notices = play.wait_notices(S(10));
    assert_eq!(
        (wait_notices[0].0, &wait_notices[0].1["party"]),
        (10, &json!("tool"))
    );
    play.set_pending_write(Some(play.now));
    assert_eq!(play.waiting()["party"], "tool");
    play.now += S(1);
    assert_eq!(play.waiting()["party"], "agentInput");
    play.set_pending_write(None);
    play.ask(Command::Cancel(params(json!({}))));
    assert_eq!(play.waiting()["stage"], "cancel");
    play.answer(&call, &json!({"stopReason": "cancelled"}));
    assert_eq!(play.waiting(), Value::Null);
    play.client.wait_notices.clear();
    assert_eq!(play.wait_notices(S(100)), []);
}

#[test]
fn slow_opening_is_reported() {
    let (mut play, _, call) = Play::opening(&[], json!({}));
    let wait_notices = play.wait_notices(S(5));
    let times: Vec<u64> = wait_notices.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [2, 4]);
    assert_eq!(wait_notices[0].1["stage"], "open");
    assert_eq!(play.waiting()["stage"], "open");
    play.answer(&call, &json!({"sessionId": "S"}));
    assert_eq!(play.waiting(), Value::Null);
    assert_eq!(play.hub.deadline(), None);
}
