//! Clients that read slowly or not at all, and agents that do not read.

use crate::harness::server::{Id, Server, Turn};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, await_blocked_writer, signal, words};
use rustix::process::Signal;
use serde_json::json;
use std::time::{Duration, Instant};

fn flooding(updates: u32) -> Server {
    let mut s = Server::initialized(&[]);
    s.waive("session/activity");
    let args = [
        "--flood",
        "--updates",
        &updates.to_string(),
        "--mix",
        "text",
    ];
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": args}),
    );
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s
}

fn agent_pid(s: &mut Server) -> i32 {
    let pid = s.call("agent/status", &json!({}))["pid"].as_i64().unwrap();
    i32::try_from(pid).unwrap()
}

#[test]
fn late_reader_receives_every_chunk() {
    let mut s = flooding(50_000);
    let agent = agent_pid(&mut s);
    s.set_reading(false);
    let id = s.send_prompt("default", "go");
    // The updates exceed the capacity of all pipes and buffers, so acpipe and the agent wait for the client.
    await_blocked_writer(agent);
    s.set_reading(true);
    let turn = s.turn(&id);
    // Each text holds its number. All are there, in order, in any number of chunks.
    assert_eq!(numbers(&turn), (0..50_000).collect::<Vec<u32>>());
    assert_eq!(turn.text(), turn.summary["text"].as_str().unwrap());
    assert_eq!(turn.summary["isError"], false);
    let status = s.call("agent/status", &json!({}));
    assert_eq!(status["faults"]["malformed"], 0);
}

/// Returns the numbers in the texts of the flooding agent.
fn numbers(turn: &Turn) -> Vec<u32> {
    let text = turn.text();
    let digits = |word: &str| word.len() == 8 && word.bytes().all(|b| b.is_ascii_digit());
    let words = text.split(|c: char| !c.is_ascii_digit());
    let words = words.filter(|word| digits(word));
    words.map(|word| word.parse().unwrap()).collect()
}

/// Every pipe toward the client is full, so the agent cannot write. A cancel still reaches it.
#[test]
fn a_cancel_reaches_an_agent_that_is_blocked_itself() {
    let big = "x".repeat(8000);
    let mut s = Server::ready(&json!({"session/prompt": [[
        {"repeat": {"times": 200, "steps": [say(&big)]}},
        {"wait": "session/cancel"},
        end("cancelled"),
    ]]}));
    let agent = agent_pid(&mut s);
    s.set_reading(false);
    let id = s.send_prompt("default", "go");
    await_blocked_writer(agent);
    let cancel = s.send("session/cancel", &json!({}));
    s.await_agent_call("session/cancel");
    // The agent received the cancel while it could not write.
    await_blocked_writer(agent);
    s.set_reading(true);
    assert_eq!(s.result(&cancel)["cancelled"], true);
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.text().len(), 200 * big.len());
}

#[test]
fn calls_are_answered_in_the_middle_of_a_flood() {
    let mut s = flooding(50_000);
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["type"] == "text-delta");
    let since = Instant::now();
    assert_eq!(s.call("agent/status", &json!({}))["state"], "ready");
    assert!(since.elapsed() < Duration::from_secs(10));
    let error = s.call_error(
        "session/prompt",
        &json!({"message": "x", "whenBusy": "reject"}),
    );
    assert_eq!(error["data"]["kind"], "busy");
    s.turn(&id);
}

/// Both directions at once: neither the client nor the agent reads, and both have much to write.
#[test]
fn full_pipes_both_ways_do_not_deadlock() {
    let mut s = flooding(10_000);
    let sessions = ["s1", "s2", "s3"];
    for session in sessions {
        s.ensure(session);
    }
    s.set_reading(false);
    let mut ids = vec![s.send_prompt("default", "go")];
    // The agent floods before it reads again, so only a small part of these prompts fits into its stdin pipe.
    let big = "x".repeat(1_000_000);
    ids.extend(sessions.map(|session| s.send_prompt(session, &big)));
    let status = s.send("agent/status", &json!({}));
    s.set_reading(true);
    for id in &ids {
        let turn = s.turn(id);
        assert_eq!(numbers(&turn), (0..10_000).collect::<Vec<u32>>());
    }
    assert_eq!(s.result(&status)["state"], "ready");
}

/// All queues are bounded, including the one for an agent that does not read its stdin.
#[test]
fn agent_that_does_not_read_its_stdin_is_stopped_as_overloaded() {
    let mut s = Server::ready_with(
        &words(
            "--persist never --max-sessions 2000 --timeout close=100ms --timeout terminate=100ms",
        ),
        &json!({}),
    );
    let pid = agent_pid(&mut s);
    signal(pid, Signal::STOP);
    let filler = json!([{"name": "x".repeat(100_000), "command": "x"}]);
    let first = s.send(
        "session/create",
        &json!({"sessionId": "big", "mcpServers": filler}),
    );
    let mut ids: Vec<Id> = (0..1100)
        .map(|n| s.send("session/create", &json!({"sessionId": format!("s{n}")})))
        .collect();
    ids.push(first);
    let mut kinds: Vec<String> = Vec::new();
    for id in &ids {
        let error = s.error(id);
        let kind = error["data"]["kind"].as_str().unwrap().to_owned();
        if kind == "overloaded" {
            assert_eq!(error["code"], -32001);
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    // The first thousand calls fail with the cause. Calls after that fail because the agent is being stopped.
    assert_eq!(
        kinds.first().map(String::as_str),
        Some("overloaded"),
        "{kinds:?}"
    );
    assert!(
        kinds.iter().all(|k| k == "overloaded" || k == "outOfOrder"),
        "{kinds:?}"
    );
    signal(pid, Signal::CONT);
    s.agent_states(&["stopping", "disconnected"]);
    s.connect(&json!({}));
    s.ensure("default");
    assert_eq!(s.prompt("back").summary["text"], "back");
}
