//! Events of the AG-UI protocol in place of chunks.

use crate::harness::run::{Outcome, Run};
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say, tool, tool_change};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

fn script() -> Value {
    json!({"session/prompt": [[
        say("one"),
        tool("a", &json!({"name": "A", "title": "first", "status": "pending", "rawInput": {"x": 1}})),
        tool_change("a", &json!({"status": "completed", "rawOutput": "out"})),
        say("two"),
        end("end_turn"),
    ]]})
}

const TYPES: [&str; 14] = [
    "RUN_STARTED",
    "STEP_STARTED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "STEP_FINISHED",
    "RUN_FINISHED",
];

/// Returns the events that a run printed.
fn printed(outcome: &Outcome) -> Vec<Value> {
    let text = outcome.text();
    let events = text.lines().map(|line| serde_json::from_str(line).unwrap());
    events.collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.collect()
}

#[test]
fn run_prints_the_events_of_its_turn() {
    let outcome = Run::new(&["run", "-o", "agui", "--session", "s", "go"])
        .script(&script())
        .go()
        .expect(0);
    let events = printed(&outcome);
    assert_eq!(types(&events), TYPES);
    let (first, last) = (&events[0], &events[13]);
    assert_eq!(
        (&first["threadId"], &last["threadId"]),
        (&json!("s"), &json!("s"))
    );
    assert_eq!(first["runId"], last["runId"]);
    assert_eq!(last["outcome"], json!({"type": "success"}));
    assert_eq!(events[5]["parentMessageId"], events[2]["messageId"]);
    assert_eq!(events[6]["delta"], "{\"x\":1}");
    assert_eq!(events[8]["content"], "out");
}

#[test]
fn run_that_fails_before_its_turn_prints_one_error() {
    let outcome = Run::new(&["run", "-o", "agui", "go", "--", "/no/such/agent"])
        .go()
        .expect(127);
    let events = printed(&outcome);
    assert_eq!(types(&events), ["RUN_ERROR"]);
    assert!(
        events[0]["message"]
            .as_str()
            .unwrap()
            .contains("/no/such/agent")
    );
}

#[test]
fn run_has_no_events_of_other_profiles() {
    Run::new(&["run", "-o", "agui", "--chunk-profile", "6", "go"])
        .go()
        .expect(2);
}

/// Starts a server whose client receives events.
fn server(args: &[&str]) -> Server {
    let world = World::new();
    let script = world.script(&script());
    let args = [args, &["--", FAKE_AGENT, &script]].concat();
    let mut s = Server::launch(world, &args, Framing::Lines, &[]);
    s.waive("session/activity");
    s.waive("session/state");
    s
}

/// Receives the notifications of the next turn: `turnId`, `seq` and events of each.
fn receive(s: &mut Server) -> Vec<Value> {
    let mut received = Vec::new();
    loop {
        let params = s.notification("session/events");
        let is_last = params["events"][0]["type"] == "RUN_FINISHED";
        received.push(params);
        if is_last {
            return received;
        }
    }
}

fn events(received: &[Value]) -> Vec<Value> {
    let events = received
        .iter()
        .flat_map(|params| params["events"].as_array().unwrap());
    events.cloned().collect()
}

#[test]
fn client_with_the_capability_receives_events_and_no_chunks() {
    // The profile of the command line is for clients of chunks.
    for args in [&[][..], &["--chunk-profile", "5"]] {
        let mut s = server(args);
        let hello = json!({"protocolVersion": 1, "capabilities": {"agui": true}});
        assert_eq!(s.call("initialize", &hello)["chunkProfile"], 7);
        s.ensure("default");
        s.agent_states(&["starting", "ready"]);
        let prompt = s.send_prompt("default", "go");
        let received = receive(&mut s);
        let summary = s.result(&prompt);
        let events = events(&received);
        assert_eq!(types(&events), TYPES);
        assert_eq!(events[0]["threadId"], "default");
        assert_eq!(events[0]["runId"], summary["turnId"]);
        let seqs: Vec<u64> = received
            .iter()
            .map(|params| params["seq"].as_u64().unwrap())
            .collect();
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
        assert!(
            received
                .iter()
                .all(|params| params["turnId"] == summary["turnId"])
        );
    }
}

#[test]
fn client_that_attaches_again_receives_the_run_again() {
    let mut s = server(&[]);
    let hello = json!({"protocolVersion": 1, "capabilities": {"agui": true}});
    s.call("initialize", &hello);
    s.ensure("default");
    s.agent_states(&["starting", "ready"]);
    let prompt = s.send_prompt("default", "go");
    let first = receive(&mut s);
    s.result(&prompt);
    let attach = s.send(
        "session/attach",
        &json!({"sessionId": "default", "afterSeq": 0}),
    );
    assert_eq!(receive(&mut s), first);
    s.result(&attach);
    // From the middle: what is not open is opened, so that each event has its place.
    let attach = s.send(
        "session/attach",
        &json!({"sessionId": "default", "afterSeq": 3}),
    );
    let rest = events(&receive(&mut s));
    s.result(&attach);
    let rest = types(&rest);
    assert!(
        !rest.contains(&"STEP_STARTED") && !rest.contains(&"STEP_FINISHED"),
        "{rest:?}"
    );
    assert_eq!(
        rest[..3],
        ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]
    );
    assert_eq!(rest.len(), TYPES.len() - 2);
}

#[test]
fn events_need_the_chunk_profile_7() {
    let mut s = Server::start(&[]);
    for profile in [json!(6), json!("discobot")] {
        let hello =
            json!({"protocolVersion": 1, "chunkProfile": profile, "capabilities": {"agui": true}});
        let error = s.call_error("initialize", &hello);
        assert_eq!(error["data"]["field"], "chunkProfile", "{error}");
    }
    let hello = json!({"protocolVersion": 1, "chunkProfile": 7, "capabilities": {"agui": true}});
    assert_eq!(s.call("initialize", &hello)["chunkProfile"], 7);
    s.finish();
}
