//! Processes of the Claude Code CLI, one for each session: their start, crash and end.

use crate::harness::claude::{self, args, processes};
use crate::harness::server::{Framing, Server};
use crate::harness::{FAKE_CLAUDE, LIMIT, World, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

fn is_eof(line: &Value) -> bool {
    line["eof"] == true
}

/// Starts a server with these sessions, each in its own directory of the same name.
fn with_sessions(script: &Value, names: &[&str]) -> Server {
    opened(claude::server(&[], script), names)
}

fn opened(mut s: Server, names: &[&str]) -> Server {
    s.connect_claude(&json!({}));
    for name in names {
        let cwd = s.world.dir.join(name);
        fs::create_dir(&cwd).unwrap();
        s.call("session/ensure", &json!({"sessionId": name, "cwd": cwd}));
    }
    s
}

/// Waits until a process has exited.
fn await_gone(s: &Server, pid: &Value) {
    let since = Instant::now();
    let alive = || {
        s.world
            .alive()
            .iter()
            .any(|(alive, _)| json!(alive) == *pid)
    };
    while alive() {
        assert!(since.elapsed() < LIMIT, "{pid} lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn claude_sessions_run_in_parallel_processes() {
    let mut s = with_sessions(&json!({}), &["a", "b"]);
    let prompt = s.send_steps("a", &json!([{"delta": "first"}, {"interrupted": true}]));
    s.await_chunk("a", |chunk| chunk["delta"] == "first");
    let short = s.send_prompt("b", "second");
    assert_eq!(s.turn(&short).summary["text"], "second");
    s.call("session/cancel", &json!({"sessionId": "a"}));
    let turn = s.turn(&prompt);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["text"], "first");
    let dir = s.world.dir.clone();
    let log = s.finish().log;
    let processes = processes(&log);
    assert_eq!(processes.len(), 2);
    for (process, name) in processes.iter().zip(["a", "b"]) {
        assert_eq!(process["cwd"], json!(dir.join(name)));
    }
}

#[test]
fn closing_a_claude_session_ends_only_its_process() {
    // (what the CLI ignores at its end, number of logged ends of stdin)
    for (script, heard) in [
        (json!({}), 1),
        (json!({"eof": [{"hang": true}]}), 1),
        (json!({"eof": [{"hang": true}], "ignoreTerm": true}), 1),
    ] {
        let limits = ["--timeout", "close=1s", "--timeout", "terminate=500ms"];
        let mut s = opened(claude::server(&limits, &script), &["a", "b"]);
        let [a, b] = &s.processes()[..] else { panic!() };
        s.call("session/close", &json!({"sessionId": "a"}));
        s.await_log(heard, is_eof);
        await_gone(&s, &a["pid"]);
        let id = s.send_prompt("b", "still here");
        assert_eq!(s.turn(&id).summary["text"], "still here");
        let pids: Vec<_> = s.world.alive().iter().map(|(pid, _)| json!(pid)).collect();
        assert!(pids.contains(&b["pid"]));
        // A closed session is not lost and can be opened again.
        let again = s.ensure("a");
        assert_eq!(again["sessionId"], "a");
        // An orderly shutdown would take as long again.
        s.kill();
        s.world.kill_all();
    }
}

#[test]
fn claude_processes_end_with_acpipe() {
    for by in ["shutdown", "eof", "term"] {
        let mut s = with_sessions(&json!({}), &["a", "b", "c"]);
        let hang = json!([{"delta": "x"}, {"interrupted": true}]);
        let id = s.send_steps("c", &hang);
        s.await_chunk("c", |chunk| chunk["delta"] == "x");
        match by {
            "shutdown" => {
                s.call("shutdown", &json!({}));
            }
            "term" => signal(s.pid(), Signal::TERM),
            _ => s.close_stdin(),
        }
        let turn = s.turn(&id);
        assert_eq!(turn.summary["stopReason"], "cancelled", "{by}");
        let log = s.await_end().log;
        assert_eq!(log.iter().filter(|line| is_eof(line)).count(), 3, "{by}");
    }
}

#[test]
fn prompt_after_a_crash_resumes_the_claude_session() {
    let mut s = with_sessions(&json!({}), &["a", "b"]);
    for name in ["a", "b"] {
        let id = s.send_prompt(name, name);
        assert_eq!(s.turn(&id).summary["text"], name);
    }
    let other = s.send_steps("b", &json!([{"delta": "x"}, {"interrupted": true}]));
    s.await_chunk("b", |chunk| chunk["delta"] == "x");
    let steps = json!([{"delta": "half"}, {"stderr": "out of memory"}, {"exit": 9}]);
    let id = s.send_steps("a", &steps);
    let turn = s.turn(&id);
    assert_eq!(turn.summary["errors"][0]["kind"], "agentExited");
    assert_eq!(turn.summary["text"], "half");
    assert!(
        turn.summary["errors"][0]
            .to_string()
            .contains("out of memory")
    );
    assert_eq!(s.call("agent/status", &json!({}))["state"], "ready");
    s.call("session/cancel", &json!({"sessionId": "b"}));
    assert_eq!(s.turn(&other).summary["isError"], false);
    let id = s.send_prompt("a", "again");
    let turn = s.turn(&id);
    assert_eq!(turn.summary["text"], "again");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    let log = s.finish().log;
    let processes = processes(&log);
    assert_eq!(processes.len(), 3);
    assert_eq!(
        args(&processes[2], "--resume="),
        args(&processes[0], "--session-id=")
    );
}

#[test]
fn process_that_exits_while_opening_reports_the_cause() {
    let script = json!({"start": [{"stderr": "Invalid MCP configuration"}, {"exit": 1}]});
    let mut s = claude::server(&[], &script);
    s.connect_claude(&json!({}));
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["kind"], "session");
    assert!(
        error.to_string().contains("Invalid MCP configuration"),
        "{error}"
    );
    assert_eq!(s.call("agent/status", &json!({}))["state"], "ready");
}

#[test]
fn claude_cli_installed_later_is_found() {
    let world = World::new();
    let path = world.dir.join("claude");
    let env = [("CLAUDE_CLI_PATH", path.to_str().unwrap())];
    let mut s = Server::launch(world, &["--agent", "claude"], Framing::Lines, &env);
    s.waive("session/state");
    s.initialize();
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["kind"], "agentNotFound");
    s.agent_states(&["starting", "disconnected"]);
    std::os::unix::fs::symlink(FAKE_CLAUDE, &path).unwrap();
    s.ensure("default");
    s.agent_states(&["starting", "ready"]);
}

#[test]
fn cli_without_a_version_fails_the_connect() {
    for (version, word, states) in [
        (
            json!([]),
            "check that it is the Claude Code CLI",
            &["starting", "stopping", "disconnected"][..],
        ),
        (
            json!([{"stderr": "libc is too old"}, {"exit": 127}]),
            "libc is too old",
            &["starting", "disconnected"],
        ),
    ] {
        let mut s = claude::server(&[], &json!({ "version": version }));
        let error = s.call_error("agent/connect", &json!({"protocol": "claude"}));
        assert!(error["message"].to_string().contains(word), "{error}");
        s.agent_states(states);
    }
}

#[test]
fn cancelled_opening_leaves_no_process() {
    let mut s = claude::server(&[], &json!({"control": {"initialize": []}}));
    s.connect_claude(&json!({}));
    let ensure = s.send("session/ensure", &json!({}));
    s.await_log(1, |line| line["got"]["request"]["subtype"] == "initialize");
    s.call("session/close", &json!({}));
    assert_eq!(s.error(&ensure)["data"]["kind"], "cancelled");
    let process = &s.processes()[0];
    await_gone(&s, &process["pid"]);
}
