//! State directories that are removed, not writable, or limited in open files: calls that need them fail with
//! the cause, all other calls work.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, resumable, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

fn script() -> Value {
    resumable(json!({"session/prompt": [[say("x"), end("end_turn")]]}))
}

#[test]
fn session_with_a_damaged_first_line_is_resumed() {
    let world = World::new();
    let path = world.script(&script());
    let args = ["--", FAKE_AGENT, &path];
    let mut s = Server::in_world(world, &args);
    let own = s.ensure("default")["agentSessionId"].clone();
    s.prompt("one");
    let mut s = s.restart(&args);
    let log = s.world.dir.join("state/sessions/default.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes[20..60].fill(b'#');
    fs::write(&log, bytes).unwrap();
    s.initialize();
    s.waive("agent/state");
    let ensured = s.ensure("default");
    assert_eq!(ensured["agentSessionId"], own);
    assert_eq!(ensured["recovery"]["rung"], "resume", "{ensured}");
    s.finish();
}

fn make_fifo(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn pipe_or_device_in_place_of_a_file_does_not_block() {
    let world = World::new();
    let path = world.script(&script());
    let args = ["--", FAKE_AGENT, &path];
    let mut s = Server::in_world(world, &args);
    for id in ["card", "zero"] {
        s.ensure(id);
    }
    make_fifo(&s.world.dir.join("state/launches/other.json"));
    let mut s = s.restart(&args);
    let sessions = s.world.dir.join("state/sessions");
    for name in ["card", "zero"] {
        fs::remove_file(sessions.join(name).with_extension("json")).unwrap();
    }
    make_fifo(&sessions.join("card.json"));
    std::os::unix::fs::symlink("/dev/zero", sessions.join("zero.json")).unwrap();
    make_fifo(&sessions.join("log.jsonl"));
    s.initialize();
    s.waive("agent/state");
    // The first two have logs, which are read instead.
    for id in ["card", "zero"] {
        assert_eq!(s.ensure(id)["recovery"]["rung"], "resume");
    }
    let error = s.call_error("session/ensure", &json!({"sessionId": "log"}));
    assert_eq!(error["data"]["kind"], "storage", "{error}");
    let listed = s.call("session/list", &json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 2, "{listed}");
    for verb in [
        &["sessions", "list"][..],
        &["sessions", "gc"],
        &["processes"],
    ] {
        assert!(s.world.acpipe(verb).output().unwrap().status.success());
    }
    s.finish();
}

#[test]
fn file_size_limit_does_not_kill_acpipe() {
    let mut world = World::new();
    world.room = Some(0);
    // The demo agent writes no file if no log is set.
    let mut run = world.acpipe(&["run", "--ephemeral", "--agent", "demo", "hi"]);
    let output = run.env_remove("FAKE_AGENT_LOG").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!output.stdout.is_empty(), "{output:?}");
}

#[test]
fn removed_state_directory_fails_only_storage_calls() {
    let mut s = Server::ready(&script());
    s.prompt("one");
    fs::remove_dir_all(s.world.dir.join("state")).unwrap();
    let error = s.call_error("session/prompt", &json!({"message": "two"}));
    assert_eq!(error["data"]["kind"], "storage", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("was deleted while"), "{message}");
    assert!(message.contains("session/close"), "{message}");
    // Messages can be read, lists work, and the advice in the message helps.
    let messages = s.call("message/list", &json!({}));
    assert_eq!(
        messages["messages"].as_array().unwrap().len(),
        2,
        "{messages}"
    );
    s.call("session/list", &json!({}));
    s.call("session/close", &json!({}));
    s.ensure("default");
    s.rewind("default");
    s.take_chunks("default");
    s.prompt("three");
    assert!(s.world.dir.join("state/sessions/default.jsonl").exists());
    s.finish();
}

#[test]
fn unusable_state_directory_fails_each_session() {
    let world = World::new();
    let file = world.file("file", "");
    let mut s = Server::launch(world, &["--state-dir", &file], Framing::Lines, &[]);
    s.initialize();
    let script = s.world.script(&script());
    let agent = json!({"command": FAKE_AGENT, "args": [script]});
    assert_eq!(s.call("agent/connect", &agent)["state"], "ready");
    s.agent_states(&["starting", "ready"]);
    for (method, params) in [
        ("session/ensure", json!({"sessionId": "a"})),
        ("session/create", json!({"sessionId": "b"})),
    ] {
        let error = s.call_error(method, &params);
        assert_eq!(error["data"]["kind"], "storage", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(&file) && message.contains("--persist never"),
            "{message}"
        );
    }
    s.call("agent/status", &json!({}));
    s.finish();
}

#[test]
fn sessions_beyond_the_open_file_limit_are_served() {
    let mut world = World::new();
    world.open_files = Some(100);
    let script = world.script(&script());
    let mut s = Server::in_world(world, &["--", FAKE_AGENT, &script]);
    let sessions = 150;
    let name = |n: usize| format!("s{n}");
    for n in 0..sessions {
        s.ensure(&name(n));
    }
    // All sessions can be used, including the oldest ones.
    for n in [0, sessions / 2, sessions - 1, 1] {
        let message = json!({"id": "m", "role": "user", "parts": []});
        let add = json!({"sessionId": name(n), "message": message});
        s.call("message/add", &add);
        let listed = s.call("message/list", &json!({"sessionId": name(n)}));
        assert_eq!(listed["messages"].as_array().unwrap().len(), 1);
    }
    let id = s.send_prompt(&name(3), "go");
    assert_eq!(s.turn(&id).summary["text"], "x");
    let listed = s.call("session/list", &json!({"limit": 1000}));
    let count = listed["sessions"].as_array().unwrap().len();
    assert_eq!(count, sessions, "{listed}");
    s.finish();
}
