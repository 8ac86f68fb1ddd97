//! Tests of modes, models and options that the client sets.

use super::play::settings;
use crate::client::{Command, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use acpipe_json::frame::Batch;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use acpipe_protocol::chunk::Chunk;
use serde_json::Value;
use serde_json::json;
use std::time::Duration;
use std::time::Instant;

/// A client that records its last answer and the number of state notifications.
#[derive(Default)]
struct SettingClient {
    answer: Option<Result<Value, Error>>,
    states: usize,
}

impl ClientSink for SettingClient {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        self.answer = Some(answer.map(|reply| serde_json::to_value(reply).unwrap()));
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, notice: &Notice) {
        self.states += usize::from(matches!(notice, Notice::SessionState(_)));
    }
}

struct Play {
    hub: Hub,
    client: SettingClient,
    now: Instant,
}

impl Play {
    /// Runs a command; returns the call that it makes to the agent.
    fn command(&mut self, command: Command) -> Value {
        let (now, client) = (self.now, &mut self.client);
        self.hub
            .command(Token::first(1), command, &mut HubCx::new(now, client));
        self.sent()
    }

    fn sent(&mut self) -> Value {
        let sent = |effect| match effect {
            Effect::Send(_, line) => Some(serde_json::from_slice(&line).unwrap()),
            _ => None,
        };
        let calls: Vec<Value> = self
            .hub
            .effects(self.now)
            .into_iter()
            .filter_map(sent)
            .collect();
        calls.last().cloned().unwrap_or_default()
    }

    /// Answers a call; returns the next.
    fn answer(&mut self, call: &Value, result: &Value) -> Value {
        let line = json!({"jsonrpc": "2.0", "id": call["id"], "result": result});
        let batch = AgentInput::Batch(Batch::Lines(format!("{line}\n").into()));
        let (now, client) = (self.now, &mut self.client);
        assert!(
            self.hub
                .agent(AgentId(1), batch, &mut HubCx::new(now, client))
                .is_none()
        );
        self.sent()
    }

    /// Lets exactly the time limit pass.
    fn wait(&mut self) {
        self.client.answer = None;
        let limit = self.hub.limits().of(Timeout::Set).unwrap();
        self.now += limit.saturating_sub(Duration::from_millis(1));
        self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
        assert!(self.client.answer.is_none());
        self.now += Duration::from_millis(1);
        self.hub.tick(&mut HubCx::new(self.now, &mut self.client));
    }
}

/// Returns a live session whose agent has two modes.
fn play() -> (Play, Value) {
    let mut play = Play {
        hub: Hub::new(
            settings(Instant::now()),
            Box::new(crate::store::MemoryStore),
        ),
        client: SettingClient::default(),
        now: Instant::now(),
    };
    let new = json!({"sessionId": "S", "modes": {"currentModeId": "a",
        "availableModes": [{"id": "a"}, {"id": "b"}]}});
    let hello = serde_json::from_value(json!({"protocolVersion": 1})).unwrap();
    play.command(Command::Initialize(hello));
    let call = play.command(ensure(&json!("auto")));
    let call = play.answer(&call, &json!({"protocolVersion": 1}));
    play.answer(&call, &new);
    (play, new)
}

fn ensure(strategy: &Value) -> Command {
    Command::Ensure(serde_json::from_value(json!({ "strategy": strategy })).unwrap())
}

fn set_mode() -> Command {
    Command::SetMode(serde_json::from_value(json!({"mode": "b"})).unwrap())
}

#[test]
fn late_answer_after_a_timeout_still_counts() {
    let (mut play, _) = play();
    let call = play.command(set_mode());
    play.wait();
    let error = play.client.answer.take().unwrap().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout);
    assert_eq!((play.hub.deadline(), play.client.states), (None, 0));
    play.answer(&call, &json!({}));
    assert_eq!(play.client.states, 1);
    assert!(play.client.answer.is_none());
    play.command(ensure(&json!("auto")));
    let state = play.client.answer.unwrap().unwrap()["state"].clone();
    assert_eq!(state["modes"]["currentModeId"], "b");
}

#[test]
fn session_opens_although_its_settings_time_out() {
    let (mut play, mut new) = play();
    let call = play.command(set_mode());
    play.answer(&call, &json!({}));
    play.client.answer = None;
    let call = play.command(ensure(&json!("new")));
    new["sessionId"] = json!("T");
    let again = play.answer(&call, &new);
    assert_eq!(again["params"], json!({"sessionId": "T", "modeId": "b"}));
    assert!(play.client.answer.is_none());
    play.wait();
    let answer = play.client.answer.take().unwrap().unwrap();
    let lost = &answer["recovery"]["notRestored"][0];
    assert_eq!(
        (&lost["setting"], &lost["value"]),
        (&json!("mode"), &json!("b"))
    );
    assert_eq!(answer["state"]["modes"]["currentModeId"], "a");
}

#[test]
fn setting_answer_for_an_earlier_opening_is_ignored() {
    let (mut play, mut new) = play();
    let late = play.command(set_mode());
    let call = play.command(ensure(&json!("new")));
    new["sessionId"] = json!("T");
    play.answer(&call, &new);
    play.client.answer = None;
    play.answer(&late, &json!({}));
    let error = play.client.answer.take().unwrap().unwrap_err();
    assert_eq!((error.kind, play.client.states), (ErrorKind::Cancelled, 0));
}
