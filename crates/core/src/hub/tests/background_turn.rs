//! Tests of background turns.

use super::play::settings;
use crate::client::{Command, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use crate::session::BACKGROUND_QUIET_LIMIT;
use crate::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::{EnsureParams, Protocol};
use std::time::{Duration, Instant};

#[derive(Default)]
struct TextClient(Vec<String>);

impl ClientSink for TextClient {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        answer.unwrap();
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        let chunk: serde_json::Value = serde_json::from_slice(json).unwrap();
        self.0.push(chunk["type"].as_str().unwrap().to_owned());
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

fn say(hub: &mut Hub, line: &str, now: Instant, client: &mut TextClient) {
    let lines = Batch::Lines(format!("{line}\n").into());
    let rest = hub.agent(
        AgentId(1),
        AgentInput::Batch(lines),
        &mut HubCx::new(now, client),
    );
    assert!(rest.is_none());
    hub.drained(true, &mut HubCx::new(now, client));
}

#[test]
fn background_turn_ends_when_the_agent_is_idle_and_no_tool_runs() {
    let (mut now, client) = (Instant::now(), &mut TextClient::default());
    let mut hub = Hub::new(settings(now), Box::new(MemoryStore));
    hub.command(
        Token::first(1),
        Command::Initialize(serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap()),
        &mut HubCx::new(now, client),
    );
    let ensure = Command::Ensure(EnsureParams::default());
    hub.command(Token::first(2), ensure, &mut HubCx::new(now, client));
    assert!(matches!(hub.effects(now)[..], [Effect::Open(..), ..]));
    let answer = |id, result| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    say(
        &mut hub,
        &answer(1, r#"{"protocolVersion":1}"#),
        now,
        client,
    );
    say(&mut hub, &answer(2, r#"{"sessionId":"a"}"#), now, client);
    let update = |update: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"a","update":{update}}}}}"#
        )
    };
    let text =
        update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#);
    let tool = |status| {
        update(&format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"{status}"}}"#
        ))
    };
    assert!(hub.deadline().is_none());
    say(&mut hub, &text, now, client);
    say(&mut hub, &tool("in_progress"), now, client);
    let (at, _) = hub.deadline().unwrap();
    assert_eq!(at, now + BACKGROUND_QUIET_LIMIT);

    // A running tool has no time limit.
    now = at;
    hub.tick(&mut HubCx::new(now, client));
    assert!(hub.deadline().is_none());
    now += Duration::from_secs(3600);
    say(&mut hub, &tool("completed"), now, client);
    let (at, _) = hub.deadline().unwrap();
    hub.tick(&mut HubCx::new(at, client));
    assert!(hub.deadline().is_none());
    let kinds: Vec<&str> = client.0.iter().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "tool-input-available",
            "tool-output-available",
            "finish-step",
            "finish"
        ]
    );
}

/// The text of each turn.
#[derive(Default)]
struct TurnTexts(Vec<(String, String)>);

impl ClientSink for TurnTexts {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        answer.unwrap();
    }
    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        let chunk: serde_json::Value = serde_json::from_slice(json).unwrap();
        let said = match chunk["type"].as_str().unwrap() {
            "text-delta" => chunk["delta"].as_str().unwrap().to_owned(),
            kind @ ("start" | "finish") => kind.to_owned(),
            _ => return,
        };
        self.0.push((place.turn.unwrap().to_owned(), said));
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

#[test]
fn prompt_waits_for_a_background_turn_with_a_reported_end() {
    let (now, client) = (Instant::now(), &mut TurnTexts::default());
    let mut settings = settings(now);
    settings.default_agent.spec.protocol = Protocol::Claude;
    let mut hub = Hub::new(settings, Box::new(MemoryStore));
    let initialize = serde_json::from_str(r#"{"protocolVersion":1}"#).unwrap();
    hub.command(
        Token::first(1),
        Command::Initialize(initialize),
        &mut HubCx::new(now, client),
    );
    let ensure = Command::Ensure(EnsureParams::default());
    hub.command(Token::first(2), ensure, &mut HubCx::new(now, client));
    hub.effects(now);
    let mut cli = AgentId(1);
    let mut sent = String::new();
    let mut world = |hub: &mut Hub, line: &str, client: &mut TurnTexts| {
        let lines = Batch::Lines(format!("{line}\n").into());
        let input = AgentInput::Batch(lines);
        assert!(
            hub.agent(cli, input, &mut HubCx::new(now, client))
                .is_none()
        );
        hub.drained(true, &mut HubCx::new(now, client));
        for effect in hub.effects(now) {
            match effect {
                Effect::Open(id, _) => cli = id,
                Effect::Send(_, bytes) => sent = String::from_utf8(bytes).unwrap(),
                _ => {}
            }
        }
        sent.clone()
    };
    world(&mut hub, "2.1.330 (Claude Code)", client);
    let handshake = r#"{"type":"control_response","response":{"subtype":"success","request_id":"1","response":{}}}"#;
    world(&mut hub, handshake, client);
    let text = |id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":null}}"#
        )
    };
    let init = r#"{"type":"system","subtype":"init"}"#;
    world(&mut hub, init, client);
    world(&mut hub, &text("m1", "a task ended"), client);
    let prompt = serde_json::from_str(r#"{"message":"hello","turnId":"mine"}"#).unwrap();
    hub.command(
        Token::first(3),
        Command::Prompt(prompt),
        &mut HubCx::new(now, client),
    );
    let frame = world(&mut hub, r#"{"type":"keep_alive"}"#, client);
    let frame: serde_json::Value = serde_json::from_str(&frame).unwrap();
    let uuid = frame["uuid"].as_str().unwrap();
    world(&mut hub, &text("m2", "as I said"), client);
    let origin = r#"{"type":"result","subtype":"success","is_error":false,"origin":{"kind":"task-notification"}}"#;
    world(&mut hub, origin, client);
    let state = |state: &str| {
        format!(r#"{{"type":"command_lifecycle","command_uuid":"{uuid}","state":"{state}"}}"#)
    };
    world(&mut hub, &state("started"), client);
    world(&mut hub, init, client);
    world(&mut hub, &text("m3", "hello too"), client);
    let result = format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"user_message_uuids":["{uuid}"]}}"#
    );
    world(&mut hub, &result, client);
    let of = |mine: bool| -> Vec<&str> {
        let words = client.0.iter().filter(|(turn, _)| (turn == "mine") == mine);
        words.map(|(_, word)| word.as_str()).collect()
    };
    assert_eq!(of(true), ["start", "hello too", "finish"]);
    assert_eq!(of(false), ["start", "a task ended", "as I said", "finish"]);
}
