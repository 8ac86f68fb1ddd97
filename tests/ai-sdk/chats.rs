//! Drives `examples/server.mjs` as an app does: chats, answers that are resumed and stopped, tools that the
//! user approves.

use crate::judge;
use crate::transport::{MAJORS, Server, end, say};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Result of a scenario for clients of one major of the AI SDK.
struct Played {
    major: u32,
    seen: Value,
    /// Messages that the agent received.
    log: Vec<Value>,
}

/// Starts a server with its own agent for clients of one major, and returns the file with the messages that
/// the agent received.
fn start(scenario: &str, major: u32, args: &[&str], script: &Value) -> (Server, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = |what: &str| folder.join(format!("chats-{scenario}-{major}.{what}"));
    let (script_file, log) = (file("json"), file("log"));
    std::fs::write(&script_file, script.to_string()).unwrap();
    std::fs::write(&log, "").unwrap();
    let profile = major.to_string();
    let agent = env!("CARGO_BIN_EXE_fake-agent");
    let agent = ["--", agent, script_file.to_str().unwrap()];
    let args = [args, &["--chunk-profile", &profile], &agent].concat();
    let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
    let server = Server::start(&args, &[("FAKE_AGENT_LOG", log.to_str().unwrap())]);
    (server, log)
}

/// Plays a scenario of `chats.mjs` with clients of each major. Without Node it prints a warning and returns
/// an empty list.
fn play(scenario: &str, args: &[&str], script: &Value) -> Vec<Played> {
    if !judge::is_sdk_available(|| MAJORS.len()) {
        return Vec::new();
    }
    let servers = MAJORS.map(|major| start(scenario, major, args, script));
    let asked = MAJORS.iter().zip(&servers).map(|(major, (server, _))| {
        let asked = json!({ "scenario": scenario, "profile": major, "api": server.api });
        asked.to_string() + "\n"
    });
    let asked: String = asked.collect();
    let (written, seen, status) = judge::ask("chats.mjs", move |mut stdin| {
        stdin.write_all(asked.as_bytes())
    });
    written.unwrap();
    assert!(status.success(), "{seen:?}");
    assert_eq!(seen.len(), MAJORS.len());
    let all = MAJORS.into_iter().zip(seen).zip(&servers);
    let played = all.map(|((major, seen), (_, log))| {
        let log = std::fs::read_to_string(log).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let log = lines.collect();
        Played { major, seen, log }
    });
    played.collect()
}

#[test]
fn each_chat_has_a_separate_session() {
    for Played { major, seen, log } in play("conversation", &[], &json!({})) {
        let one = ["user: a", "assistant: a", "user: c", "assistant: c"];
        assert_eq!(seen["one"], json!(one), "{major}");
        assert_eq!(seen["two"], json!(["user: b", "assistant: b"]), "{major}");
        assert_eq!(seen["stored"], json!(one), "{major}");
        assert_eq!(seen["nobody"], json!([]), "{major}");
        assert_eq!(seen["refused"], json!([400, 400, 400]), "{major}");
        let prompts = log.iter().filter(|line| line["method"] == "session/prompt");
        let sessions: Vec<&Value> = prompts.map(|line| &line["params"]["sessionId"]).collect();
        assert_eq!(sessions, ["fake-1", "fake-2", "fake-1"], "{major}");
    }
}

#[test]
fn answer_continues_without_its_browser_and_can_be_resumed() {
    let steps = [
        say("a"),
        json!({ "wait": "session/new" }),
        say("b"),
        end("end_turn"),
    ];
    let script = json!({ "session/prompt": [steps, [{ "default": true }]] });
    for Played { major, seen, log } in play("resume", &[], &script) {
        assert_eq!(seen["busy"], 409, "{major}");
        assert_eq!(seen["before"], json!(["user: go"]), "{major}");
        let whole = json!(["user: go", "assistant: ab"]);
        assert_eq!(seen["after"], whole, "{major}");
        assert_eq!(seen["stored"], whole, "{major}");
        assert_eq!(seen["status"], "ready", "{major}");
        assert_eq!(seen["third"], json!([]), "{major}");
        let cancels = log.iter().filter(|line| line["method"] == "session/cancel");
        assert_eq!(cancels.count(), 0, "{major}");
    }
}

#[test]
fn stop_cancels_the_turn_and_keeps_the_chat() {
    let steps = [
        say("a"),
        json!({ "wait": "session/cancel" }),
        end("cancelled"),
    ];
    let script = json!({ "session/prompt": [steps, [{ "default": true }]] });
    for Played { major, seen, log } in play("stop", &[], &script) {
        assert_eq!(seen["stopped"], json!({ "cancelled": true }), "{major}");
        assert_eq!(seen["late"], json!({ "cancelled": false }), "{major}");
        let said = [
            "user: go",
            "assistant: a",
            "user: again",
            "assistant: again",
        ];
        assert_eq!(seen["said"], json!(said), "{major}");
        assert_eq!(seen["status"], "ready", "{major}");
        let cancels = log.iter().filter(|line| line["method"] == "session/cancel");
        assert_eq!(cancels.count(), 1, "{major}");
    }
}

#[test]
fn a_tool_is_approved_and_refused_by_the_user() {
    let ask = json!({ "ask": { "method": "session/request_permission", "params": {
        "toolCall": { "toolCallId": "t", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } },
        "options": [
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ] } } });
    let update = |status: &str| json!({ "update": { "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status } });
    let script = json!({ "session/prompt": [
        [ask, update("completed"), end("end_turn")],
        [ask, update("failed"), end("end_turn")],
    ] });
    for Played { major, seen, log } in play("approval", &["--permissions", "ask"], &script) {
        let refused = if major > 5 {
            "output-denied"
        } else {
            "output-error"
        };
        assert_eq!(
            seen["states"],
            json!(["output-available", refused]),
            "{major}"
        );
        assert_eq!(seen["statuses"], json!([200, 404, 200, 404]), "{major}");
        assert_eq!(seen["valid"], true, "{major}");
        let answers = log.iter().filter_map(|line| line.get("result"));
        let chosen: Vec<&Value> = answers.map(|a| &a["outcome"]["optionId"]).collect();
        assert_eq!(chosen, ["yes", "no"], "{major}");
    }
}
