//! Agents with a fault: with the fault in the agent's profile, acpipe does not run into it.
//!
//! The timeout that the fault would cause is set to an hour, so each test ends in time only by the workaround.

use super::{clean, history, restore, with};
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, LIMIT, World, calls};
use serde_json::{Value, json};
use std::fs;
use std::io::Read as _;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;

/// Writes a profile with this fault for the fake agent.
fn write_profile(world: &World, quirks: &Value) {
    let dir = world.dir.join("state/profiles");
    fs::create_dir_all(&dir).unwrap();
    let profile = json!({"format": 1, "agent": "fake-agent", "command": "fake-agent",
        "date": "2026-01-02T03:04:05Z", "quirks": quirks});
    fs::write(dir.join("fake-agent.json"), profile.to_string()).unwrap();
}

/// Runs acpipe with an agent, and returns exit code and stdout. No process may be left.
fn run(world: &World, args: &[&str], script: &str) -> (i32, String) {
    let args = [&["run"], args, &["--", FAKE_AGENT, script]].concat();
    let mut child = world
        .acpipe(&args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (sender, ended) = channel();
    let mut stdout = child.stdout.take().unwrap();
    thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        let _ = sender.send(text);
    });
    let Ok(text) = ended.recv_timeout(LIMIT) else {
        world.kill_all();
        panic!("no end: {args:?}");
    };
    let status = child.wait().unwrap();
    assert_eq!(world.leak(), None);
    (status.code().unwrap(), text)
}

/// Runs two prompts in a session, the second with these arguments; the agent is restarted in between.
/// Returns the result of the second run, and the messages that the agent received in it.
fn second_run(world: &World, script: &Value, args: &[&str]) -> ((i32, String), Vec<Value>) {
    let script = world.script(script);
    assert_eq!(run(world, &["--session", "x", "one"], &script).0, 0);
    let before = world.log().len();
    let args = [&["--session", "x", "two"], args].concat();
    let result = run(world, &args, &script);
    (result, world.log().split_off(before))
}

#[test]
fn broken_resume_is_replaced_by_a_load() {
    let script = with("session/resume", json!([[{"hang": true}]]));
    let world = World::new();
    let limit = ["--timeout", "open=300ms"];
    assert_eq!(second_run(&world, &script, &limit).0.0, 124);
    let world = World::new();
    write_profile(&world, &json!({"brokenResume": true}));
    let (result, log) = second_run(&world, &script, &["--timeout", "open=1h"]);
    assert_eq!(result, (0, "two\n".to_owned()));
    assert_eq!(calls(&log, "session/load").len(), 1);
}

#[test]
fn broken_load_is_not_tried() {
    let mut script = with("session/load", json!([[{"hang": true}]]));
    let error = json!({"error": {"code": -32603, "message": "broken"}});
    script["session/resume"] = json!([[error]]);
    let world = World::new();
    write_profile(&world, &json!({"brokenLoad": true, "brokenList": true}));
    let (result, log) = second_run(&world, &script, &["--timeout", "open=1h"]);
    assert_eq!(result, (0, "two\n".to_owned()));
    assert_eq!(calls(&log, "session/load").len(), 0);
}

#[test]
fn broken_list_is_not_asked_for() {
    let error = json!({"error": {"code": -32603, "message": "broken"}});
    let mut script = with("session/list", json!([[{"hang": true}]]));
    script["session/load"] = json!([[error]]);
    script["session/resume"] = json!([[error]]);
    let limit = ["--timeout", "list=1h", "--timeout", "open=1h"];
    let world = World::new();
    write_profile(&world, &json!({"brokenList": true}));
    let (result, log) = second_run(&world, &script, &limit);
    assert_eq!(result, (0, "two\n".to_owned()));
    assert_eq!(calls(&log, "session/list").len(), 0);
}

#[test]
fn unknown_sessions_are_recognised_by_a_load() {
    let mut script = with("session/resume", json!([[{"reply": {}}]]));
    let none = json!({"error": {"code": -32002, "message": "session not found"}});
    script["session/load"] = json!([[none]]);
    let world = World::new();
    let (_, log) = second_run(&world, &script, &[]);
    assert_eq!(calls(&log, "session/resume").len(), 1);
    assert_eq!(
        calls(&log, "session/new").len(),
        0,
        "the success is believed"
    );
    let world = World::new();
    write_profile(
        &world,
        &json!({"acceptsUnknownSessions": true, "brokenList": true}),
    );
    let (_, log) = second_run(&world, &script, &[]);
    assert_eq!(calls(&log, "session/resume").len(), 0);
    assert_eq!(calls(&log, "session/new").len(), 1);
}

#[test]
fn history_repeated_by_a_resume_is_not_shown() {
    let [user, answer] = history();
    // The history follows the response, so it arrives with the turn.
    let late = [user, json!({"reply": {}}), answer];
    let script = with("session/resume", restore(&late));
    let world = World::new();
    write_profile(&world, &json!({"replaysOnResume": true}));
    let (result, log) = second_run(&world, &script, &[]);
    assert_eq!(result, (0, "two\n".to_owned()));
    assert_eq!(calls(&log, "session/resume").len(), 1);
}

#[test]
fn late_history_does_not_become_part_of_the_answer() {
    let [user, answer] = history();
    // The turn begins only after the history, if acpipe waits for the history.
    let late = [user, json!({"reply": {}}), json!({"sleep": 500}), answer];
    let mut script = with("session/load", restore(&late));
    script["session/prompt"] = json!([[{"sleep": 600}, {"default": true}]]);
    let quirks = json!({"lateReplayMs": 2000, "brokenResume": true});
    for (quirks, text) in [
        (json!({"brokenResume": true}), "repeatedtwo\n"),
        (quirks, "two\n"),
    ] {
        let world = World::new();
        write_profile(&world, &quirks);
        let (result, _) = second_run(&world, &script, &[]);
        assert_eq!(result, (0, text.to_owned()), "{quirks}");
    }
}

#[test]
fn turn_that_ignores_a_cancel_is_left_soon() {
    let script = with("session/prompt", json!([[say("x"), {"hang": true}]]));
    let world = World::new();
    write_profile(&world, &json!({"ignoresCancel": true}));
    let script = world.script(&script);
    let limits = ["--max-time", "100ms", "--timeout", "cancel=1h", "hello"];
    assert_eq!(run(&world, &limits, &script).0, 124);
}

#[test]
fn process_that_ignores_the_end_of_its_stdin_is_terminated_at_once() {
    let script = with("eof", json!([{"hang": true}]));
    let world = World::new();
    write_profile(&world, &json!({"ignoresEndOfInput": true}));
    let script = world.script(&script);
    let result = run(&world, &["--timeout", "close=1h", "hello"], &script);
    assert_eq!(result, (0, "hello\n".to_owned()));
    assert!(world.log().iter().any(|line| line["eof"] == true));
}

/// Starts `acpipe serve` with an agent whose profile has these faults.
fn serve(world: World, quirks: &Value, args: &[&str], script: &Value) -> Server {
    write_profile(&world, quirks);
    let script = world.script(script);
    let args = [args, &["--", FAKE_AGENT, &script]].concat();
    let mut server = Server::launch(world, &args, Framing::Lines, &[]);
    server.waive("agent/state");
    server.initialize();
    server
}

#[test]
fn agent_with_one_session_per_process_serves_several() {
    let refused = json!({"error": {"code": -32603, "message": "one session only"}});
    for quirks in [json!({}), json!({"oneSessionPerProcess": true})] {
        let world = World::new();
        let mark = world.dir.join("one");
        let one = json!({"mark": mark, "steps": [{"reply": {"sessionId": "one"}}, {"hang": true}]});
        let new = [json!({"once": one}), json!({"reply": {"sessionId": "two"}})];
        let mut script = with("session/new", json!([new, [refused]]));
        script["session/prompt"] = json!([[say("answer"), end("end_turn")]]);
        let mut server = serve(world, &quirks, &[], &script);
        server.ensure("a");
        if quirks == json!({}) {
            let error = server.call_error("session/ensure", &json!({"sessionId": "b"}));
            let error = error["message"].as_str().unwrap();
            assert!(error.contains("one session only"), "{error}");
        } else {
            server.ensure("b");
            for session in ["a", "b"] {
                let id = server.send_prompt(session, "hello");
                assert_eq!(server.turn(&id).summary["text"], "answer");
            }
        }
        server.finish();
    }
}

#[test]
fn session_whose_close_is_not_answered_opens_again() {
    let script = with("session/close", json!([[{"hang": true}]]));
    let limits = ["--timeout", "closeSession=1h"];
    let mut server = serve(
        World::new(),
        &json!({"brokenClose": true}),
        &limits,
        &script,
    );
    server.ensure("a");
    server.call("session/close", &json!({"sessionId": "a"}));
    server.ensure("a");
    let log = server.world.log();
    assert_eq!(calls(&log, "session/close").len(), 0);
    server.finish();
}

#[test]
fn agent_without_a_profile_is_not_changed() {
    let world = World::new();
    let (result, log) = second_run(&world, &clean(), &[]);
    assert_eq!(result, (0, "two\n".to_owned()));
    assert_eq!(calls(&log, "session/resume").len(), 1);
}
