//! Tests of agent requests that wait for the client: files that need a permission, and elicitations.

use super::play::{HubClient, Play, params, settings};
use crate::client::Command;
use crate::hub::{AgentId, Hub};
use crate::store::MemoryStore;
use acpipe_model::host::HostServices;
use acpipe_policy as policy;
use acpipe_policy::{Policy, Rule};
use serde_json::{Value, json};
use std::time::Instant;

/// Returns a running turn of an agent to which files are served. The client is asked about each write.
fn play() -> Play {
    let mut rule = Rule::new("rule \"writes\"".to_owned(), policy::Effect::Ask);
    rule.kind("edit").unwrap();
    let mut policy = Policy::default();
    policy.add(rule);
    let mut play = starting(policy);
    play.ready();
    play.ensure(json!({}));
    let open = play.sent();
    play.answer(&open, &json!({"sessionId": "S"}));
    play.ask(Command::Prompt(params(json!({"message": "go"}))));
    play.sent();
    play
}

/// Returns a client and an agent that is starting, to which files are served.
fn starting(policy: Policy) -> Play {
    let now = Instant::now();
    let mut settings = settings(now);
    settings.policy = policy;
    let served = HostServices {
        write_files: true,
        ..HostServices::default()
    };
    let mut play = Play {
        hub: Hub::new(settings, Box::new(MemoryStore)).serving(served),
        client: HubClient::default(),
        now,
        tokens: 0,
        agent: AgentId(0),
    };
    let initialize =
        json!({"protocolVersion": 1, "capabilities": {"permissions": true, "questions": true}});
    play.ask(Command::Initialize(params(initialize)));
    play.ask(Command::Connect(params(json!({}))));
    play
}

/// Sends the agent's request to write a file of this size; returns what acpipe sends at once.
fn write(play: &mut Play, id: u64, bytes: usize) -> Value {
    let path = format!("{}/f", env!("CARGO_MANIFEST_DIR"));
    let content = "x".repeat(bytes);
    let params = json!({"sessionId": "S", "path": path, "content": content});
    let method = "fs/write_text_file";
    play.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

#[test]
fn files_that_wait_for_a_permission_are_bounded_in_bytes() {
    let mut play = play();
    // The first request may have any size.
    assert_eq!(write(&mut play, 1, 65 << 20), Value::Null);
    let refused = write(&mut play, 2, 1);
    assert_eq!(refused["id"], 2, "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("too many file"), "{message}");
    // After the turn, no request is waiting.
    play.ask(Command::Cancel(params(json!({}))));
    play.sent();
    assert_eq!(write(&mut play, 3, 1)["error"]["code"], -32800);
}

/// Sends an elicitation with a message of this size; returns what acpipe sends at once.
fn ask_user(play: &mut Play, id: u64, bytes: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let message = "x".repeat(bytes);
    let params =
        json!({"sessionId": "S", "mode": "form", "message": message, "requestedSchema": schema});
    play.say(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}))
}

#[test]
fn open_questions_are_bounded_in_bytes() {
    let mut play = play();
    assert_eq!(ask_user(&mut play, 1, 1), Value::Null);
    assert_eq!(ask_user(&mut play, 2, 64 << 20), Value::Null);
    let declined = ask_user(&mut play, 3, 1);
    assert_eq!(declined["id"], 3, "{declined}");
    assert_eq!(declined["result"]["action"], "decline", "{declined}");
}

/// A sign-in is what the client itself requested; its questions are not those of the agent's work.
#[test]
fn policy_declines_questions_outside_of_sessions_but_not_those_of_a_sign_in() {
    let mut play = starting(Policy::from(policy::Mode::Deny));
    let hello = play.sent();
    let methods = json!([{"id": "web", "name": "Web"}]);
    let ready = json!({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": methods});
    play.answer(&hello, &ready);
    let ask = |play: &mut Play, id: u64, of: &Value| {
        let params = json!({"requestId": of, "mode": "url", "message": "go", "url": "https://x.invalid/", "elicitationId": "e"});
        play.say(
            &json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params}),
        )
    };
    let declined = ask(&mut play, 1, &Value::Null);
    assert_eq!(declined["result"]["action"], "decline", "{declined}");
    play.ask(Command::Authenticate(params(json!({"methodId": "web"}))));
    let sign_in = play.sent();
    assert_eq!(ask(&mut play, 2, &sign_in["id"]), Value::Null);
    assert_eq!(ask(&mut play, 3, &Value::Null), Value::Null);
}

#[test]
fn request_with_a_very_long_id_is_refused() {
    let mut play = play();
    for (length, code) in [(4094, json!(null)), (4095, json!(-32600))] {
        let method = "session/request_permission";
        let tool = json!({"toolCallId": "t", "kind": "edit"});
        let params = json!({"sessionId": "S", "toolCall": tool, "options": []});
        let id = "i".repeat(length);
        let answer =
            play.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        assert_eq!(answer["error"]["code"], code, "{length}");
    }
}
