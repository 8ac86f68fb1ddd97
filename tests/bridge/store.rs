//! Storage: sessions and their history survive acpipe.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Script of an agent that resumes every session.
fn resuming(prompts: &Value) -> Value {
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}, "close": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/close": [[{"reply": {}}]],
        "session/prompt": prompts,
    })
}

/// Starts acpipe with this agent as its default; returns its arguments, too.
fn serve(script: &Value) -> (Server, [&'static str; 3]) {
    let world = World::new();
    let args = ["--", FAKE_AGENT, &*world.script(script).leak()];
    (Server::in_world(world, &args), args)
}

fn log(s: &Server, session: &str) -> PathBuf {
    s.world.dir.join(format!("state/sessions/{session}.jsonl"))
}

fn replayed(s: &mut Server, after: u64) -> Vec<Value> {
    let page = s.call("session/replay", &json!({"afterSeq": after}));
    assert_eq!(page["next"], Value::Null);
    page["entries"].as_array().unwrap().clone()
}

fn texts(s: &mut Server) -> Vec<String> {
    let list = s.call("message/list", &json!({}));
    let text = |message: &Value| {
        let parts = message["parts"].as_array().unwrap();
        let text = |part: &Value| part["text"].as_str().map(str::to_owned);
        let text: Vec<String> = parts.iter().filter_map(text).collect();
        format!("{}: {}", message["role"].as_str().unwrap(), text.join("|"))
    };
    list["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text)
        .collect()
}

#[test]
fn session_survives_a_restart_of_acpipe() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    let made = s.ensure("default");
    assert_eq!(made["recovery"]["messages"], 0);
    let turn = s.prompt("first");
    let before = s.call("message/list", &json!({}));
    let mut s = s.restarted(&args);
    let back = s.ensure("default");
    assert_eq!(back["recovery"]["rung"], "resume");
    assert_eq!(back["recovery"]["memory"], "kept");
    assert_eq!(back["recovery"]["messages"], 2);
    assert_eq!(back["agentSessionId"], made["agentSessionId"]);
    assert_eq!(s.call("message/list", &json!({})), before);
    let stored: Vec<Value> = replayed(&mut s, 0)
        .iter()
        .map(|e| e["chunk"].clone())
        .collect();
    assert_eq!(stored, turn.chunks);
    // The sequence numbers continue; the harness checks this.
    let second = s.prompt("second");
    assert_eq!(second.of("data-recovery").len(), 1);
    assert_eq!(
        texts(&mut s),
        [
            "user: first",
            "assistant: one",
            "user: second",
            "assistant: one"
        ]
    );
    let end = s.finish();
    assert_eq!(calls(&end.log, "session/resume").len(), 1);
}

#[test]
fn ended_turn_is_replayed_for_a_repeated_turn_id() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    let prompt = json!({"message": "first", "turnId": "mine"});
    let id = s.send("session/prompt", &prompt);
    let turn = s.turn(&id);
    let mut s = s.restarted(&args);
    s.rewind("default");
    let id = s.send("session/prompt", &prompt);
    let summary = s.result(&id);
    assert_eq!(summary, turn.summary);
    assert_eq!(s.take_chunks("default"), turn.chunks);
    let end = s.finish();
    assert_eq!(calls(&end.log, "session/prompt").len(), 1);
}

#[test]
fn the_turn_id_of_another_message_is_refused() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    let id = s.send(
        "session/prompt",
        &json!({"message": "first", "turnId": "mine"}),
    );
    let turn = s.turn(&id);
    let other = json!({"message": "second", "turnId": "mine"});
    let parts = json!([{"type": "text", "text": "first"}, {"type": "text", "text": "more"}]);
    for message in [json!("second"), json!("irst"), json!({"parts": parts})] {
        let prompt = json!({"message": message, "turnId": "mine"});
        let error = s.call_error("session/prompt", &prompt);
        assert_eq!(error["data"]["kind"], "invalidParams");
        assert_eq!(error["data"]["field"], "turnId");
        let told = error["message"].as_str().unwrap();
        assert!(told.contains("another message"), "{told}");
    }
    let mut s = s.restarted(&args);
    s.call_error("session/prompt", &other);
    // Equal parts are the same message, whatever its form.
    s.rewind("default");
    let parts = json!([{"type": "text", "text": "first"}]);
    let same = json!({"message": {"id": "m", "role": "user", "parts": parts}, "turnId": "mine"});
    let id = s.send("session/prompt", &same);
    assert_eq!(s.result(&id), turn.summary);
    assert_eq!(s.take_chunks("default"), turn.chunks);
    let end = s.finish();
    assert_eq!(calls(&end.log, "session/prompt").len(), 1);
}

#[test]
fn interrupted_turn_is_reported_and_can_rerun() {
    let [wait, stop] = until_cancelled();
    let script = resuming(&json!([[say("begun"), wait, stop]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    let prompt = json!({"message": "first", "turnId": "mine"});
    s.send("session/prompt", &prompt);
    s.await_chunk("default", |chunk| chunk["type"] == "text-delta");
    let mut s = s.crash(&args);
    s.initialize();
    s.waive("agent/state");
    let error = s.call_error("session/prompt", &prompt);
    assert_eq!(error["data"]["kind"], "turnUnfinished");
    assert_eq!(texts(&mut s), ["user: first", "assistant: begun"]);
    // The crash ended the message, so a catch-up shows its end.
    let entries = replayed(&mut s, 0);
    assert_eq!(entries.last().unwrap()["chunk"]["type"], "error");
    s.allow_gaps("default");
    let id = s.send(
        "session/prompt",
        &json!({"message": "first", "turnId": "mine", "rerun": true}),
    );
    s.await_chunk("default", |chunk| chunk["type"] == "text-delta");
    s.call("session/cancel", &json!({}));
    assert_eq!(s.turn(&id).summary["turnId"], "mine");
    s.finish();
}

#[test]
fn stored_chunks_are_read_in_pages() {
    let script = resuming(&json!([[say("a"), say("b"), say("c"), end("end_turn")]]));
    let (mut s, _) = serve(&script);
    s.ensure("default");
    let turn = s.prompt("go");
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let action = json!({"afterSeq": after, "limit": 2});
        let page = s.call("session/replay", &action);
        let entries = page["entries"].as_array().unwrap().clone();
        assert!(entries.len() <= 2);
        for entry in entries {
            after += 1;
            assert_eq!(entry["seq"], after);
            assert_eq!(entry["turnId"], turn.summary["turnId"]);
            seen.push(entry["chunk"].clone());
        }
        match page["next"].as_u64() {
            Some(next) => assert_eq!(next, after),
            None => break,
        }
    }
    assert_eq!(seen, turn.chunks);
    assert!(replayed(&mut s, after).is_empty());
    s.finish();
}

#[test]
fn two_programs_cannot_have_one_session() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    let other = World::new();
    let state = s.world.dir.join("state");
    let env = [("ACPIPE_STATE_DIR", state.to_str().unwrap())];
    let mut two = Server::launch(other, &args, Framing::Lines, &env);
    two.initialize();
    let error = two.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["kind"], "sessionLocked");
    s.call("session/close", &json!({}));
    two.waive("agent/state");
    two.ensure("default");
    two.finish();
    s.finish();
}

#[test]
fn a_torn_end_is_repaired_and_a_bad_line_left_in_place() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    s.prompt("first");
    let path = log(&s, "default");
    let mut lines: Vec<String> = Vec::new();
    let mut s = {
        let s = s.restart(&args);
        let text = fs::read_to_string(&path).unwrap();
        lines.extend(text.lines().map(str::to_owned));
        lines.insert(3, "{\"record\":\"chunk\",\"seq".to_owned());
        fs::write(&path, format!("{}\n{{\"record\":\"ch", lines.join("\n"))).unwrap();
        s
    };
    s.initialize();
    s.waive("agent/state");
    let info = s.call("session/get", &json!({}));
    assert_eq!(info["corruptLines"], 1);
    assert_eq!(info["messages"], 2);
    s.prompt("second");
    let text = fs::read_to_string(&path).unwrap();
    s.finish();
    let after: Vec<&str> = text.lines().collect();
    assert!(text.ends_with('\n'));
    assert_eq!(after[..lines.len()], lines[..]);
    assert!(after.len() > lines.len());
}

#[test]
fn messages_are_added_changed_listed_and_cleared() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    s.ensure("default");
    s.prompt("first");
    let note = json!({"id": "n", "role": "system", "parts": [{"type": "text", "text": "note"}]});
    let added = s.call("message/add", &json!({"message": note}));
    assert_eq!(added["message"], note);
    let twice = s.call_error("message/add", &json!({"message": note}));
    assert_eq!(twice["data"]["kind"], "messageExists");
    let change = json!({"messageId": "n", "message": {"metadata": {"seen": true}}});
    let changed = s.call("message/update", &change);
    assert_eq!(changed["message"]["metadata"]["seen"], true);
    assert_eq!(changed["message"]["parts"], note["parts"]);
    let unknown = json!({"messageId": "x", "message": {}});
    let error = s.call_error("message/update", &unknown);
    assert_eq!(error["data"]["kind"], "messageNotFound");
    let mut s = s.restarted(&args);
    assert_eq!(
        texts(&mut s),
        ["user: first", "assistant: one", "system: note"]
    );
    let last = s.call("message/last", &json!({}));
    assert_eq!(last["message"]["role"], "assistant");
    let page = s.call("message/list", &json!({"before": "n", "limit": 1}));
    assert_eq!(page["messages"][0], last["message"]);
    assert_eq!(page["more"], true);
    let page = s.call("message/list", &json!({"after": last["message"]["id"]}));
    assert_eq!(page["messages"].as_array().unwrap().len(), 1);
    assert_eq!(page["more"], false);
    s.call("message/clear", &json!({"archive": true}));
    assert!(texts(&mut s).is_empty());
    let archive = s.world.dir.join("state/archive");
    assert_eq!(fs::read_dir(archive).unwrap().count(), 1);
    // The session keeps its identity, and its sequence numbers continue.
    let back = s.ensure("default");
    assert_eq!(back["recovery"]["rung"], "resume");
    s.prompt("again");
    s.finish();
}

#[test]
fn sessions_are_listed_closed_and_cleared() {
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, args) = serve(&script);
    for id in ["a", "B/..", "c", "unused"] {
        s.ensure(id);
    }
    for id in ["a", "B/..", "c"] {
        let note =
            json!({"id": "n", "role": "system", "parts": [{"type": "text", "text": "note"}]});
        s.call("message/add", &json!({"sessionId": id, "message": note}));
    }
    s.call("session/close", &json!({"sessionId": "a"}));
    let mut s = s.restarted(&args);
    s.ensure("c");
    let list = s.call("session/list", &json!({"limit": 2}));
    let cursor = list["nextCursor"].as_str().unwrap();
    let rest = s.call("session/list", &json!({"limit": 2, "cursor": cursor}));
    assert_eq!(rest["nextCursor"], Value::Null);
    let pages = [list["sessions"].clone(), rest["sessions"].clone()];
    let all: Vec<&Value> = pages.iter().flat_map(|p| p.as_array().unwrap()).collect();
    let mut ids: Vec<(&str, &str)> = all
        .iter()
        .map(|i| {
            (
                i["sessionId"].as_str().unwrap(),
                i["state"].as_str().unwrap(),
            )
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [("B/..", "resting"), ("a", "resting"), ("c", "live")]);
    s.call("session/clear", &json!({"sessionId": "B/.."}));
    s.call("session/clear", &json!({"sessionId": "c"}));
    let list = s.call("session/list", &json!({}));
    assert_eq!(list["sessions"].as_array().unwrap().len(), 1);
    let error = s.call_error("session/get", &json!({"sessionId": "c"}));
    assert_eq!(error["data"]["kind"], "sessionNotFound");
    let again = s.ensure("c");
    assert_eq!(again["recovery"]["rung"], "new");
    let end = s.finish();
    assert_eq!(calls(&end.log, "session/close").len(), 2);
}

#[test]
fn session_without_a_store_lives_as_long_as_acpipe() {
    let world = World::new();
    let path = world.script(&resuming(&json!([[say("one"), end("end_turn")]])));
    let args = ["--persist", "never", "--", FAKE_AGENT, &path];
    let mut s = Server::in_world(world, &args);
    s.ensure("default");
    s.prompt("first");
    assert_eq!(texts(&mut s), ["user: first", "assistant: one"]);
    // Only the launch record is stored.
    assert!(!s.world.dir.join("state/sessions").exists());
    let mut s = s.restart(&args);
    s.initialize();
    let error = s.call_error("message/list", &json!({}));
    assert_eq!(error["data"]["kind"], "sessionNotFound");
    s.finish();
}

#[test]
fn persist_messages_variable_decides_about_the_store() {
    // (option, variable, whether the session is stored)
    let cases = [
        (None, "false", false),
        (None, "true", true),
        (None, "", true),
        (Some("always"), "false", true),
        (Some("never"), "true", false),
    ];
    for (option, variable, stored) in cases {
        let world = World::new();
        let path = world.script(&json!({}));
        let option = option.map_or_else(Vec::new, |value| vec!["--persist", value]);
        let args = [option.as_slice(), &["--", FAKE_AGENT, path.as_str()]].concat();
        let env = [("PERSIST_MESSAGES", variable)];
        let mut s = Server::launch(world, &args, Framing::Lines, &env);
        s.initialize();
        s.waive("agent/state");
        s.ensure("default");
        s.prompt("first");
        assert_eq!(log(&s, "default").exists(), stored, "{option:?} {variable}");
        s.finish();
    }
    let world = World::new();
    let mut odd = world.acpipe(&["serve"]);
    let odd = odd.env("PERSIST_MESSAGES", "maybe").output().unwrap();
    assert_eq!(odd.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&odd.stderr);
    assert!(
        stderr.contains("PERSIST_MESSAGES must be true or false"),
        "{stderr}"
    );
}

#[cfg(unix)]
#[test]
fn stored_files_are_private_to_the_user() {
    use std::os::unix::fs::PermissionsExt as _;
    let script = resuming(&json!([[say("one"), end("end_turn")]]));
    let (mut s, _) = serve(&script);
    s.ensure("default");
    s.prompt("first");
    let dir = s.world.dir.join("state/sessions");
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&log(&s, "default")), 0o600);
    s.finish();
}

#[test]
fn sessions_of_the_agent_are_listed_and_adopted() {
    let piece = |kind: &str, text: &str| {
        json!({"notify": {"method": "session/update", "params": {"sessionId": "theirs", "update":
            {"sessionUpdate": kind, "content": {"type": "text", "text": text}}}}})
    };
    let listed = |id: &str| json!({"sessionId": id, "cwd": "/x", "title": "T", "updatedAt": "2030-01-01T00:00:00Z"});
    let script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "loadSession": true, "sessionCapabilities": {"list": {}}}}}]],
        "session/list": [
            [{"reply": {"sessions": [listed("fake-1")], "nextCursor": "2"}}],
            [{"reply": {"sessions": [listed("theirs")]}}],
            [{"hang": true}],
        ],
        "session/load": [[
            piece("user_message_chunk", "old question"),
            piece("agent_message_chunk", "old answer"),
            {"reply": {}},
        ]],
        "session/prompt": [[say("one"), end("end_turn")]],
    });
    let (mut s, _) = serve(&script);
    s.ensure("mine");
    // A session that was never used is listed only while it is open.
    let note = json!({"id": "n", "role": "system", "parts": [{"type": "text", "text": "note"}]});
    s.call(
        "message/add",
        &json!({"sessionId": "mine", "message": note}),
    );
    let list = s.call("session/list", &json!({"agent": true}));
    let sessions = list["sessions"].as_array().unwrap();
    assert_eq!(sessions.len(), 2, "its own is not listed twice: {list}");
    assert_eq!(sessions[0]["sessionId"], Value::Null);
    assert_eq!(sessions[0]["agentSessionId"], "theirs");
    assert_eq!(sessions[0]["state"], "foreign");
    assert_eq!(sessions[0]["title"], "T");
    assert_eq!(sessions[1]["sessionId"], "mine");
    let adopt = json!({"sessionId": "default", "agentSessionId": "theirs"});
    let adopted = s.call("session/ensure", &adopt);
    assert_eq!(adopted["recovery"]["rung"], "load");
    assert_eq!(adopted["recovery"]["adopted"], 2);
    assert_eq!(
        texts(&mut s),
        ["user: old question", "assistant: old answer"]
    );
    let twice = s.call_error("session/ensure", &adopt);
    assert_eq!(twice["data"]["kind"], "sessionExists");
    // A list does not wait forever for the agent: here the agent's exit ends the wait.
    let waiting = s.send("session/list", &json!({"agent": true}));
    s.await_agent_call("session/list");
    s.call("agent/disconnect", &json!({}));
    let list = s.result(&waiting);
    assert_eq!(list["sessions"].as_array().unwrap().len(), 2);
    s.finish();
}

#[test]
fn lost_history_stays_or_is_archived_on_request() {
    // (options, number of messages, number of archived logs)
    let cases: [(&[&str], u64, usize); 3] = [
        (&[], 2, 0),
        (&["--on-new", "keep"], 2, 0),
        (&["--on-new", "clear"], 0, 1),
    ];
    for (options, messages, archived) in cases {
        let world = World::new();
        let path = world.script(&json!({}));
        let args = [options, &["--", FAKE_AGENT, path.as_str()]].concat();
        let mut s = Server::in_world(world, &args);
        s.ensure("default");
        s.prompt("first");
        let mut s = s.restarted(&args);
        // The agent can neither resume nor load a session.
        let recovery = s.ensure("default")["recovery"].clone();
        assert_eq!(
            (&recovery["rung"], &recovery["memory"]),
            (&json!("new"), &json!("lost"))
        );
        let list = s.call("message/list", &json!({}));
        assert_eq!(list["total"], messages, "{options:?}");
        let archive = fs::read_dir(s.world.dir.join("state/archive")).unwrap();
        assert_eq!(archive.count(), archived, "{options:?}");
        s.finish();
    }
}
