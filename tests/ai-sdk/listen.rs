//! Drives `acpipe serve --listen` as an app does that knows nothing of acpipe: chats, answers that are resumed
//! and stopped, tools that the user approves.

use crate::judge;
use crate::transport::{ACPIPE, end, lines, say, surround};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Majors of the AI SDK with tool approvals.
const MAJORS: [u32; 2] = [7, 6];

/// Time after which a start counts as hung.
const LIMIT: Duration = Duration::from_secs(30);

/// Process of `acpipe serve --listen` with an agent that plays a script.
struct Server {
    process: Child,
    api: String,
    token: String,
    log: PathBuf,
}

impl Server {
    fn start(name: &str, script: &Value) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let (script_file, log) = (folder.join("script.json"), folder.join("log"));
        std::fs::write(&script_file, script.to_string()).unwrap();
        std::fs::write(&log, "").unwrap();
        let mut command = Command::new(ACPIPE);
        surround(&mut command);
        let mut process = command
            .args(["serve", "--listen", "127.0.0.1:0", "--permissions", "ask"])
            .arg("--state-dir")
            .arg(folder.join("state"))
            .args(["--", env!("CARGO_BIN_EXE_fake-agent")])
            .arg(&script_file)
            .env("FAKE_AGENT_LOG", &log)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = lines(process.stderr.take().unwrap());
        let mut next = || stderr.recv_timeout(LIMIT).expect("it does not listen");
        let (address, token) = std::iter::repeat_with(&mut next)
            .find_map(|line| {
                let url = line.split(' ').find(|word| word.starts_with("http://"))?;
                let (address, token) = url.split_once("/#token=")?;
                Some((address.to_owned(), token.to_owned()))
            })
            .unwrap();
        Self {
            process,
            api: format!("{address}/api/chat"),
            token,
            log,
        }
    }

    /// Returns the messages that the agent received.
    fn log(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(&self.log).unwrap();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Plays a scenario of `listen.mjs` with clients of each major; returns the major, the result, and the messages
/// that the agent received. Without Node it prints a warning and returns an empty list.
fn play(scenario: &str, script: &Value) -> Vec<(u32, Value, Vec<Value>)> {
    if !judge::is_sdk_available(|| MAJORS.len()) {
        return Vec::new();
    }
    let servers = MAJORS.map(|major| Server::start(&format!("listen-{scenario}-{major}"), script));
    let asked = MAJORS.iter().zip(&servers).map(|(major, server)| {
        let asked = json!({ "scenario": scenario, "profile": major, "api": server.api, "token": server.token });
        asked.to_string() + "\n"
    });
    let asked: String = asked.collect();
    let (written, seen, status) = judge::ask("listen.mjs", move |mut stdin| {
        stdin.write_all(asked.as_bytes())
    });
    written.unwrap();
    assert!(status.success(), "{seen:?}");
    assert_eq!(seen.len(), MAJORS.len());
    let all = MAJORS.into_iter().zip(seen).zip(&servers);
    all.map(|((major, seen), server)| (major, seen, server.log()))
        .collect()
}

#[test]
fn unmodified_chat_streams_reopens_and_regenerates() {
    for (major, seen, _) in play("conversation", &json!({})) {
        let two = ["user: a", "assistant: a", "user: b", "assistant: b"];
        assert_eq!(seen["first"], json!(two), "{major}");
        assert_eq!(seen["before"], json!(two), "{major}");
        let three = [&two[..], &["user: c", "assistant: c"]].concat();
        assert_eq!(seen["after"], json!(three), "{major}");
        // acpipe keeps both answers.
        let stored = [&three[..], &["assistant: c"]].concat();
        assert_eq!(seen["stored"], json!(stored), "{major}");
        assert_eq!(seen["status"], "ready", "{major}");
        assert_eq!(seen["valid"], true, "{major}");
        assert_eq!(seen["refused"][0], "error", "{major}");
        let words = seen["refused"][1].as_str().unwrap();
        assert!(words.contains("token is wrong"), "{major}: {words}");
    }
}

#[test]
fn unmodified_chat_resumes_after_a_lost_connection() {
    let steps = [
        say("a"),
        json!({ "wait": "session/new" }),
        say("b"),
        end("end_turn"),
    ];
    let script = json!({ "session/prompt": [steps, [{ "default": true }]] });
    for (major, seen, log) in play("resume", &script) {
        let whole = json!(["user: go", "assistant: ab"]);
        assert_eq!(seen["lost"], "error", "{major}");
        assert_eq!(seen["tabs"], json!([whole, whole]), "{major}");
        assert_eq!(seen["ids"], 1, "{major}");
        assert_eq!(seen["statuses"], json!(["ready", "ready"]), "{major}");
        assert_eq!(seen["late"], whole, "{major}");
        assert_eq!(seen["valid"], true, "{major}");
        let count = |method: &str| log.iter().filter(|line| line["method"] == method).count();
        assert_eq!(count("session/cancel"), 0, "{major}");
        assert_eq!(count("session/prompt"), 2, "{major}");
    }
}

#[test]
fn unmodified_chat_is_stopped_by_the_cancel_endpoint() {
    let steps = [
        say("a"),
        json!({ "wait": "session/cancel" }),
        end("cancelled"),
    ];
    let script = json!({ "session/prompt": [steps, [{ "default": true }]] });
    for (major, seen, log) in play("stop", &script) {
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
fn unmodified_chat_approves_and_refuses_with_its_next_request() {
    let ask = json!({ "ask": { "method": "session/request_permission", "params": {
        "toolCall": { "toolCallId": "t", "title": "ls", "kind": "execute", "rawInput": { "command": "ls" } },
        "options": [
            { "optionId": "always", "name": "Always", "kind": "allow_always" },
            { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
            { "optionId": "no", "name": "No", "kind": "reject_once" },
        ] } } });
    let turn = |status: &str| {
        let update = json!({ "update": { "sessionUpdate": "tool_call_update", "toolCallId": "t", "status": status } });
        json!([say("before "), ask, update, say("after"), end("end_turn")])
    };
    let script = json!({ "session/prompt": [turn("completed"), turn("failed")] });
    for (major, seen, log) in play("approval", &script) {
        let turns = json!([
            [
                "approval-requested",
                "output-available",
                "assistant: before after"
            ],
            [
                "approval-requested",
                "output-denied",
                "assistant: before after"
            ],
        ]);
        assert_eq!(seen["turns"], turns, "{major}");
        let roles = json!(["user", "assistant", "user", "assistant"]);
        assert_eq!(seen["roles"], roles, "{major}");
        assert_eq!(seen["stored"], roles, "{major}");
        assert_eq!(seen["valid"], true, "{major}");
        let answers = log.iter().filter_map(|line| line.get("result"));
        let chosen: Vec<&Value> = answers.map(|a| &a["outcome"]["optionId"]).collect();
        assert_eq!(chosen, ["yes", "no"], "{major}");
    }
}
