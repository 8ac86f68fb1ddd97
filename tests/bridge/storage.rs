//! State directories that are removed, not writable, or limited in open files: calls that need them fail with
//! the cause, all other calls work.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

fn script() -> Value {
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[say("x"), end("end_turn")], [say("x"), end("end_turn")]],
    })
}

/// Starts an initialized server and ignores the agent's states.
fn launch(world: World, args: &[&str]) -> Server {
    let mut s = Server::launch(world, args, Framing::Lines, &[]);
    s.initialize();
    s.waive("agent/state");
    s
}

#[test]
fn session_with_a_damaged_first_line_is_resumed() {
    let world = World::new();
    let path = world.script(&script());
    let args = ["--", FAKE_AGENT, &path];
    let mut s = launch(world, &args);
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
    let mut s = launch(world, &args);
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
    let world = World::new();
    let script = world.script(&script());
    let sessions = 150;
    let mut acpipe = Command::new("sh");
    let configured = world.acpipe(&["serve", "--", FAKE_AGENT, &script]);
    acpipe.args(["-c", r#"ulimit -n 100; exec "$0" "$@""#]);
    acpipe
        .arg(configured.get_program())
        .args(configured.get_args());
    for (name, value) in configured.get_envs() {
        match value {
            Some(value) => acpipe.env(name, value),
            None => acpipe.env_remove(name),
        };
    }
    let mut acpipe = acpipe
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = acpipe.stdin.take().unwrap();
    let mut lines = BufReader::new(acpipe.stdout.take().unwrap()).lines();
    let mut id = 0;
    let mut call = |method: &str, params: &Value| -> Value {
        id += 1;
        writeln!(
            stdin,
            "{}",
            json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        )
        .unwrap();
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line["id"] == id {
                assert!(line.get("result").is_some(), "{method} {params}: {line}");
                return line["result"].clone();
            }
        }
    };
    call("initialize", &json!({"protocolVersion": 1}));
    let name = |n: usize| format!("s{n}");
    for n in 0..sessions {
        call("session/ensure", &json!({"sessionId": name(n)}));
    }
    // All sessions can be used, including the oldest ones.
    for n in [0, sessions / 2, sessions - 1, 1] {
        let message = json!({"id": "m", "role": "user", "parts": []});
        call(
            "message/add",
            &json!({"sessionId": name(n), "message": message}),
        );
        let listed = call("message/list", &json!({"sessionId": name(n)}));
        assert_eq!(listed["messages"].as_array().unwrap().len(), 1);
    }
    assert_eq!(
        call(
            "session/prompt",
            &json!({"sessionId": name(3), "message": "go"})
        )["text"],
        "x"
    );
    let listed = call("session/list", &json!({"limit": 1000}));
    assert_eq!(
        listed["sessions"].as_array().unwrap().len(),
        sessions,
        "{listed}"
    );
    drop(stdin);
    assert!(acpipe.wait().unwrap().success());
}
