//! Unloading of idle sessions and agents, and their restoration on the next use.

use crate::harness::server::Server;
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, LIMIT, calls, claude};
use serde_json::{Value, json};
use std::time::Instant;

fn offers() -> Value {
    json!([[{"reply": {"protocolVersion": 1, "agentCapabilities":
        {"sessionCapabilities": {"resume": {}, "close": {}}}}}]])
}

/// Returns the number of session logs that acpipe has open.
fn open_logs(s: &Server) -> usize {
    let fds = std::fs::read_dir(format!("/proc/{}/fd", s.pid())).unwrap();
    let files = fds
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok());
    files
        .filter(|file| file.extension().is_some_and(|ext| ext == "jsonl"))
        .count()
}

/// Returns the number of living processes of this program.
fn processes(s: &Server, program: &str) -> usize {
    let alive = s.world.alive();
    alive
        .iter()
        .filter(|(_, line)| line.starts_with(program))
        .count()
}

#[test]
fn idle_session_and_agent_are_unloaded_and_restored() {
    let script = json!({"initialize": offers(), "session/resume": [[{"reply": {}}]]});
    let mut s = Server::initialized(&["--idle-timeout", "300ms"]);
    s.connect(&script);
    let servers = json!([{"name": "m", "command": "c", "args": [], "env": []}]);
    s.call("session/ensure", &json!({"mcpServers": servers}));
    assert_eq!(s.prompt("one").summary["text"], "one");
    let stopping = s.notification("agent/state");
    assert_eq!(stopping["state"], "stopping");
    assert!(
        stopping["reason"]
            .as_str()
            .unwrap()
            .contains("idle timeout")
    );
    let gone = s.notification("agent/state");
    assert_eq!(gone["state"], "disconnected");
    assert_eq!(gone["reason"], stopping["reason"]);
    assert_eq!(open_logs(&s), 0);
    assert_eq!(processes(&s, FAKE_AGENT), 0);
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "two");
    assert_eq!(turn.one("data-recovery")["data"]["memory"], "kept");
    s.waive("agent/state");
    let messages = s.call("message/list", &json!({}));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 4);
    let log = s.finish().log;
    assert_eq!(calls(&log, "session/close").len(), 1);
    // The store does not hold the MCP servers, but the client's last `session/ensure` did.
    assert_eq!(
        calls(&log, "session/resume")[0]["params"]["mcpServers"],
        servers
    );
}

#[test]
fn processes_of_sessions_are_capped() {
    let mut s = claude::server(&["--max-sessions", "2"], &json!({}));
    s.connect_claude(&json!({}));
    for id in ["a", "b", "c"] {
        s.ensure(id);
        let id = s.send_prompt(id, "first");
        s.turn(&id);
    }
    let since = Instant::now();
    while processes(&s, FAKE_CLAUDE) > 2 {
        assert!(since.elapsed() < LIMIT);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = s.send_prompt("a", "back");
    let turn = s.turn(&id);
    assert_eq!(turn.summary["text"], "back");
    assert_eq!(s.processes().len(), 4);
}
