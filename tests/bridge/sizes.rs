//! Costs of large histories: manual measurements for `docs/internals/performance.md`.
//!
//! `cargo test --release --test bridge sizes -- --ignored --nocapture --test-threads 1`

use crate::harness::server::Server;
use crate::harness::{FAKE_AGENT, World, memory};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

const AT: &str = "2026-11-01T00:00:00.000Z";

fn print_line(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns acpipe's peak memory so far, in MB.
fn peak(s: &Server) -> usize {
    memory(s.pid(), "VmHWM") / 1_000_000
}

fn timed(s: &mut Server, what: &str, method: &str, params: &Value) -> Value {
    let begun = Instant::now();
    let result = s.call(method, params);
    let took = begun.elapsed();
    print_line(&format!("{what}: {took:.3?}, peak {} MB", peak(s)));
    result
}

pub fn sessions(world: &World) -> PathBuf {
    let dir = world.dir.join("state/sessions");
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Returns the first line of a log.
pub fn identity(id: &str) -> String {
    let line = json!({"record": "session", "at": AT, "format": 1, "sessionId": id,
        "createdAt": AT, "cwd": "/project", "agent": "agent", "agentSessionId": id});
    format!("{line}\n")
}

/// Appends a turn to a log: a prompt, fifty deltas, an end.
pub fn turn(n: usize, seq: &mut u64, log: &mut String) {
    let id = format!("turn{n}");
    let parts = json!([{"type": "text", "text": "go on"}]);
    let user = json!({"id": format!("user{n}"), "role": "user", "parts": parts});
    let prompt = json!({"record": "prompt", "at": AT, "turnId": id, "message": user});
    let _ = writeln!(log, "{prompt}");
    let mut chunk = |chunk: Value| {
        *seq += 1;
        let _ = writeln!(
            log,
            r#"{{"record":"chunk","turnId":"{id}","seq":{seq},"chunk":{chunk}}}"#
        );
    };
    chunk(json!({"type": "start", "messageId": format!("msg{n}")}));
    chunk(json!({"type": "start-step"}));
    chunk(json!({"type": "text-start", "id": "1"}));
    let delta = "the quick brown fox jumps ".repeat(12);
    for _ in 0..50 {
        chunk(json!({"type": "text-delta", "id": "1", "delta": delta}));
    }
    chunk(json!({"type": "text-end", "id": "1"}));
    chunk(json!({"type": "finish-step"}));
    chunk(json!({"type": "finish"}));
    let end = json!({"record": "end", "at": AT, "turnId": id, "summary": {"turnId": id}});
    let _ = writeln!(log, "{end}");
}

#[test]
#[ignore = "by hand: it measures"]
fn a_history_of_100_000_updates_is_loaded() {
    let line = |role: &str, text: &str| {
        let update = json!({"sessionUpdate": role, "content": {"type": "text", "text": text}});
        let params = json!({"sessionId": "theirs", "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
    };
    let answer = line(
        "agent_message_chunk",
        "the quick brown fox jumps over the lazy dog",
    );
    let mut turn = vec![line("user_message_chunk", "go on")];
    turn.extend(vec![answer; 9]);
    // One text for all lines: an agent that makes each line takes longer than acpipe.
    let history = vec![turn.join("\n"); 10_000].join("\n");
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1,
            "agentCapabilities": {"loadSession": true}}}]],
        "session/load": [[{"line": history}, {"reply": {}}]],
    });
    let world = World::new();
    let path = world.script(&script);
    let mut s = Server::in_world(world, &["--", FAKE_AGENT, &path]);
    let adopt = json!({"sessionId": "a", "agentSessionId": "theirs"});
    // Each load ends with 0.25 s in which the agent is quiet.
    print_line(&format!("before the load: {} MB", peak(&s)));
    let made = timed(&mut s, "load of 100,000 updates", "session/ensure", &adopt);
    assert_eq!(made["recovery"]["messages"], 20_000);
    s.call("session/close", &json!({"sessionId": "a"}));
    let again = json!({"sessionId": "a", "strategy": "load"});
    let what = "load of the same updates, which are stored";
    let made = timed(&mut s, what, "session/ensure", &again);
    assert_eq!(made["recovery"]["adopted"], 0);
    s.finish();
}

#[test]
#[ignore = "by hand: it measures"]
fn a_session_of_100_mb_is_opened_and_listed() {
    let world = World::new();
    let mut log = identity("big");
    let (mut n, mut seq) = (0, 0);
    while log.len() < 100_000_000 {
        n += 1;
        turn(n, &mut seq, &mut log);
    }
    let path = sessions(&world).join("big.jsonl");
    fs::write(path, &log).unwrap();
    let mut s = Server::in_world(world, &[]);
    let (all, big) = (json!({}), json!({"sessionId": "big"}));
    let what = "100 MB: listed without card and index";
    timed(&mut s, what, "session/list", &all);
    let info = timed(&mut s, "100 MB: opened without index", "session/get", &big);
    assert_eq!(info["messages"], 2 * n);
    s.call("session/close", &big);
    let mut s = s.restarted(&[]);
    timed(&mut s, "100 MB: listed without card", "session/list", &all);
    let info = timed(&mut s, "100 MB: opened", "session/get", &big);
    assert_eq!(info["messages"], 2 * n);
    timed(&mut s, "100 MB: session/get again", "session/get", &big);
    let last = timed(&mut s, "100 MB: last message", "message/last", &big);
    let page = json!({"sessionId": "big", "before": last["message"]["id"], "limit": 100});
    for what in ["100 messages before it", "the same 100 messages again"] {
        let what = format!("100 MB: {what}");
        let page = timed(&mut s, &what, "message/list", &page);
        assert_eq!(page["messages"].as_array().unwrap().len(), 100);
    }
    let page = json!({"sessionId": "big", "afterSeq": seq - 1000});
    timed(
        &mut s,
        "100 MB: its last 1000 chunks",
        "session/replay",
        &page,
    );
    timed(&mut s, "100 MB: listed while open", "session/list", &all);
    s.finish();
}

#[test]
#[ignore = "by hand: it measures"]
fn ten_thousand_sessions_are_listed() {
    let world = World::new();
    let dir = sessions(&world);
    for n in 0..10_000 {
        let id = format!("s{n}");
        let mut log = identity(&id);
        turn(1, &mut 0, &mut log);
        let card = json!({"sessionId": id, "cwd": "/project", "createdAt": AT,
            "updatedAt": AT, "messages": 2, "seq": 56, "bytes": log.len()});
        fs::write(dir.join(format!("{id}.jsonl")), &log).unwrap();
        fs::write(dir.join(format!("{id}.json")), card.to_string()).unwrap();
    }
    let mut s = Server::in_world(world, &[]);
    let what = "10,000 sessions listed for the first time";
    timed(&mut s, what, "session/list", &json!({}));
    let mut s = s.restarted(&[]);
    for what in ["10,000 sessions listed", "10,000 sessions listed again"] {
        let list = timed(&mut s, what, "session/list", &json!({}));
        assert_eq!(list["sessions"].as_array().unwrap().len(), 100);
    }
    let here = json!({"cwd": "/project"});
    let what = "10,000 sessions listed by directory";
    timed(&mut s, what, "session/list", &here);
    for n in 0..10_000 {
        fs::remove_file(dir.join(format!("s{n}.json"))).unwrap();
    }
    timed(
        &mut s,
        "10,000 sessions listed without cards",
        "session/list",
        &json!({}),
    );
    s.finish();
}

#[test]
#[ignore = "by hand: it measures"]
fn resting_sessions_take_little_memory() {
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}, "close": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/close": [[{"reply": {}}]],
    });
    let world = World::new();
    let path = world.script(&script);
    let options = ["--max-sessions", "8", "--durability", "none"];
    let agent = ["--", FAKE_AGENT, path.as_str()];
    let mut s = Server::in_world(world, &[&options[..], &agent].concat());
    let mut before: usize = 0;
    let mut ensured = 0;
    // The first sessions fill what is kept for any number of them.
    for count in [2_000, 12_000, 22_000] {
        while ensured < count {
            ensured += 1;
            s.ensure(&format!("session-{ensured:026}"));
        }
        let now = memory(s.pid(), "VmRSS") / 1024;
        print_line(&format!("{count} sessions, 8 of them live: {now} kB"));
        if before > 0 {
            let each = now.saturating_sub(before) * 1024 / 10_000;
            print_line(&format!("each resting session: {each} B"));
        }
        before = now;
    }
    s.finish();
}
