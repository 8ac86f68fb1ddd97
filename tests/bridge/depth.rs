//! JSON from agents, clients and old logs that is nested so deeply that readers fail. The harness reads every
//! line with a reader that accepts 127 levels: a deeper line fails the test.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Prefix of a string that contains deep JSON.
const MARK: &str = "acpipe:deep-json:";

/// Deepest nesting of messages that acpipe forwards unchanged (`DEEPEST`), and of lines that it writes
/// (`WRITTEN`).
const DEEPEST: usize = 112;
const WRITTEN: usize = 127;

/// Returns the depth of nesting in a JSON text, counted byte by byte.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if text => escaped = true,
            b'"' => text = !text,
            b'{' | b'[' if !text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !text => depth -= 1,
            _ => {}
        }
    }
    deepest
}

fn arrays(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

fn objects(levels: usize) -> String {
    "{\"a\":".repeat(levels) + "1" + &"}".repeat(levels)
}

/// Steps with the deep value in every place where an agent can put a value.
fn everywhere(deep: &str) -> Vec<Value> {
    let update = |update: &str| {
        let update = update.replace("DEEP", deep);
        json!({"line": format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{update}}}}}"#
        )})
    };
    vec![
        update(
            r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"T","rawInput":DEEP,"locations":DEEP,"_meta":{"x":DEEP},"odd":DEEP}"#,
        ),
        update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","rawOutput":DEEP,"content":[{"type":"content","content":{"type":"text","text":"x","_meta":DEEP}}]}"#,
        ),
        update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":{"x":DEEP}}"#,
        ),
        update(
            r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","_meta":DEEP},"_meta":DEEP}"#,
        ),
        update(r#"{"sessionUpdate":"plan","entries":DEEP}"#),
        update(r#"{"sessionUpdate":"never seen","odd":DEEP}"#),
        update(r#"{"sessionUpdate":"subagent_update","sessionId":"sub","state":DEEP}"#),
        update(r#"{"sessionUpdate":"session_info_update","title":"T","odd":DEEP}"#),
        json!({"line": format!(
            r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{"stopReason":"end_turn","_meta":{deep},"odd":{deep}}}}}"#
        )}),
    ]
}

/// Returns path and text of the logs of a server's sessions.
fn logs(world: &World) -> Vec<(PathBuf, String)> {
    let sessions = fs::read_dir(world.dir.join("state/sessions")).unwrap();
    let files = sessions.flatten().map(|file| file.path());
    let logs = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path, text)
    };
    let logs: Vec<_> = logs.map(read).collect();
    assert!(!logs.is_empty(), "no session was stored");
    logs
}

#[test]
fn deep_json_of_an_agent_is_carried_as_marked_strings() {
    for (levels, deep) in [
        (100, objects(100)),
        (129, arrays(129)),
        (1_100, objects(1_100)),
        (20_000, arrays(20_000)),
    ] {
        let all = everywhere(&deep);
        // For the deepest nesting a few places are enough.
        let steps = match levels {
            ..=1_100 => all,
            _ => vec![all[2].clone(), all[5].clone(), all[8].clone()],
        };
        let mut s = Server::ready(&json!({ "session/prompt": [steps] }));
        s.waive("session/state");
        s.ensure("default");
        let turn = s.prompt("go");
        assert_eq!(turn.summary["stopReason"], "end_turn", "{}", turn.summary);
        let is_deep = levels > DEEPEST;
        assert_eq!(turn.summary.to_string().contains(MARK), is_deep, "{levels}");
        if levels <= 1_100 {
            let input = &turn.of("tool-input-available")[0]["input"];
            assert!(input.is_array() || input.is_object(), "{levels}: {input}");
            assert_eq!(input.to_string().contains(MARK), is_deep, "{levels}");
        }
        let other = turn.of("data-acp")[0];
        assert_eq!(other.to_string().contains(MARK), is_deep, "{levels}");
        // The stored form is the same.
        let message = s.call("message/last", &json!({}))["message"].clone();
        assert_eq!(message.to_string().contains(MARK), is_deep, "{levels}");
        s.call("session/replay", &json!({"afterSeq": 0}));
        for (_, log) in logs(&s.world) {
            for line in log.lines() {
                let depth = depth(line);
                assert!(depth <= WRITTEN, "{levels}: {depth} in {}", &line[..200]);
                serde_json::from_str::<Value>(line).unwrap();
            }
        }
        s.finish();
    }
}

#[test]
fn deep_json_of_an_agent_leaves_a_run_in_readable_lines() {
    let script = json!({"session/prompt": [everywhere(&arrays(20_000))]});
    for format in ["chunks", "json", "sse"] {
        let outcome = Run::new(&["run", "-o", format, "go"])
            .script(&script)
            .go()
            .expect(0);
        let text = outcome.text();
        assert!(text.contains(MARK), "{format}");
        assert!(text.lines().all(|line| depth(line) <= WRITTEN), "{format}");
    }
}

#[test]
fn deep_json_of_a_client_is_carried_as_marked_strings() {
    for (levels, deep) in [
        (100, arrays(100)),
        (200, objects(200)),
        (20_000, arrays(20_000)),
    ] {
        let mut s = Server::ready(&json!({"session/prompt": [[say("x"), end("end_turn")]]}));
        s.ensure("default");
        let message = format!(
            r#"{{"id":"m1","role":"user","parts":[{{"type":"text","text":"hi"}},{{"type":"data-x","data":{deep}}}],"metadata":{deep}}}"#
        );
        for (id, method, params) in [
            (
                "\"add\"",
                "message/add",
                format!(r#"{{"message":{message}}}"#),
            ),
            (
                "\"prompt\"",
                "session/prompt",
                format!(r#"{{"message":{}}}"#, message.replace("m1", "m2")),
            ),
        ] {
            let id = crate::harness::server::Id(id.to_owned());
            s.expect(&id);
            s.raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{},"method":"{method}","params":{params}}}"#,
                id.0
            ));
            let result = s.result(&id);
            if method == "session/prompt" {
                s.claim_turn(&result);
            }
        }
        let list = s.call("message/list", &json!({})).to_string();
        assert_eq!(list.contains(MARK), levels > DEEPEST, "{levels}");
        for (_, log) in logs(&s.world) {
            assert!(log.lines().all(|line| depth(line) <= WRITTEN), "{levels}");
        }
        s.finish();
    }
}

/// Deep values stored by earlier versions are not sent unchanged.
#[test]
fn deep_json_of_an_old_log_is_replayed_as_marked_strings() {
    let deep = objects(5_000);
    let world = World::new();
    let tool = json!({"update": {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "rawInput": {"old": "DEEP"}}});
    let script = world.script(&json!({"session/prompt": [[tool, say("x"), end("end_turn")]]}));
    let mut s = Server::launch(world, &["--", FAKE_AGENT, &script], Framing::Lines, &[]);
    s.initialize();
    s.waive("agent/state");
    s.ensure("default");
    s.prompt("PROMPTED");
    s.close_stdin();
    s.ended();
    let (path, log) = logs(&s.world).remove(0);
    let poisoned = log.replace("\"DEEP\"", &deep);
    let poisoned = poisoned.replace(
        "\"text\":\"PROMPTED\"",
        &format!("\"text\":\"PROMPTED\",\"old\":{deep}"),
    );
    assert_ne!(log, poisoned);
    fs::write(path, poisoned).unwrap();
    let mut s = s.next(&["--", FAKE_AGENT, &script]);
    s.initialize();
    s.waive("agent/state");
    s.ensure("default");
    s.rewind("default");
    let replayed = s
        .call("session/replay", &json!({"afterSeq": 0}))
        .to_string();
    let list = s.call("message/list", &json!({}));
    assert_eq!(list["messages"].as_array().unwrap().len(), 2, "{list}");
    for text in [replayed, list.to_string()] {
        assert!(
            text.contains(MARK) && depth(&text) <= WRITTEN,
            "{}",
            depth(&text)
        );
    }
    s.finish();
}
