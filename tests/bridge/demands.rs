//! Requirements of earlier systems (`tests/seeds/seeds.md`) that no other test covers, run with agents of
//! both dialects.

use crate::harness::claude::{self, args};
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, think, tool, tool_change, until_cancelled};
use acpipe_core::fold::Fold;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Starts a connected agent of each dialect with the session `default`.
fn both() -> [(&'static str, Server); 2] {
    [
        ("acp", Server::ready(&json!({}))),
        ("claude", claude::ready(&json!({}))),
    ]
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Returns the types of a turn's chunks without dialect-specific ones.
fn common_types(turn: &Turn) -> Vec<String> {
    let own = |kind: &str| kind.starts_with("data-") || kind == "message-metadata";
    let types = turn.types().into_iter();
    types.filter(|kind| !own(kind)).map(str::to_owned).collect()
}

#[test]
fn the_same_calls_drive_agents_of_every_dialect() {
    let [acp, claude] = both().map(|(dialect, mut s)| {
        s.waive("agent/state");
        let turn = s.prompt("hello");
        assert_eq!(turn.summary["text"], "hello", "{dialect}");
        // An answer in one piece is a complete stream.
        let types = [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish",
        ];
        assert_eq!(common_types(&turn), types, "{dialect}");
        let status = s.call("agent/status", &json!({}));
        assert_eq!(status["protocol"], dialect);
        let session = s.call("session/get", &json!({}));
        let messages = s.call("message/list", &json!({}))["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), 2, "{dialect}");
        let env = s.call("agent/getEnvironment", &json!({}));
        assert_eq!(
            s.call("session/cancel", &json!({})),
            json!({"cancelled": false})
        );
        let closed = s.call("session/close", &json!({}));
        let left = s.call("agent/disconnect", &json!({}));
        let shapes = [&turn.summary, &status, &session, &messages[1], &env].map(keys);
        (shapes, [closed, left])
    });
    assert_eq!(acp, claude);
}

#[test]
fn a_prompt_is_a_stream_of_chunks_that_ends_with_its_answer() {
    let steps = [
        say("a"),
        // Waits until the client has received the first chunks.
        json!({"wait": "session/new"}),
        say("b"),
        end("end_turn"),
    ];
    let mut s = Server::ready(&json!({"session/prompt": [steps]}));
    let prompt = s.send(
        "session/prompt",
        &json!({"message": "go", "turnId": "mine"}),
    );
    s.await_chunk("default", |chunk| chunk["delta"] == "a");
    let seen = s.seen();
    assert_eq!(s.answer_within(&prompt, seen), None);
    s.ensure("other");
    let turn = s.turn(&prompt);
    assert_eq!(turn.summary["turnId"], "mine");
    let types = [
        "start",
        "start-step",
        "text-start",
        "text-delta",
        "text-delta",
        "text-end",
        "finish-step",
        "finish",
    ];
    assert_eq!(common_types(&turn), types);
}

#[test]
fn claude_gets_the_given_directory_model_and_environment() {
    let mut s = claude::server(&[], &json!({}));
    s.waive("session/state");
    let directory = |s: &Server, name: &str| {
        let path = s.world.dir.join(name);
        std::fs::create_dir(&path).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (of_agent, of_session) = (directory(&s, "agent"), directory(&s, "session"));
    s.call(
        "agent/connect",
        &json!({"protocol": "claude", "cwd": of_agent, "env": {"CLAUDE_GIVEN": "yes"},
            "options": {"model": "haiku"}}),
    );
    s.agent_states(&["starting", "ready"]);
    s.call("session/ensure", &json!({"sessionId": "a"}));
    s.call(
        "session/ensure",
        &json!({"sessionId": "b", "cwd": of_session}),
    );
    let processes = s.processes();
    assert_eq!(processes.len(), 2);
    for (process, cwd) in processes.iter().zip([of_agent, of_session]) {
        assert_eq!(process["cwd"], json!(cwd));
        assert_eq!(process["env"]["CLAUDE_GIVEN"], "yes");
        assert_eq!(args(process, "--model="), ["haiku"]);
    }
}

/// Returns the records of one CLI process in order: `argv` for its start, `eof`, the subtype of a control
/// request, or the type of a frame.
fn process_records(log: &[Value], process: &Value) -> Vec<String> {
    let own = log.iter().filter(|line| line["pid"] == process["pid"]);
    let what = own.map(|line| match line {
        line if line["argv"].is_array() => "argv".to_owned(),
        line if line["eof"] == true => "eof".to_owned(),
        line => {
            let request = line["got"]["request"]["subtype"].as_str();
            let kind = request.or(line["got"]["type"].as_str());
            kind.unwrap_or("?").to_owned()
        }
    });
    what.collect()
}

#[test]
fn options_and_the_stored_id_come_before_the_prompt() {
    let mut s = claude::server(&[], &json!({}));
    s.connect_claude(&json!({"model": "haiku"}));
    s.ensure("default");
    s.prompt("hello");
    let crash = s.steps(&json!([{"exit": 1}]));
    assert_eq!(crash.summary["isError"], true);
    assert_eq!(s.prompt("again").summary["text"], "again");
    let [first, second] = &s.processes()[..] else {
        panic!("{:?}", s.processes())
    };
    assert_eq!(args(second, "--model="), ["haiku"]);
    assert_eq!(args(second, "--resume="), args(first, "--session-id="));
    assert_eq!(
        process_records(&s.world.log(), second),
        ["argv", "initialize", "user"]
    );
}

#[test]
fn all_prompts_of_a_session_use_one_open_stdin() {
    let mut s = claude::ready(&json!({}));
    let tool = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}});
    s.steps(&json!([{ "ask": tool }]));
    s.prompt("again");
    let process = &s.processes()[0];
    let log = s.finish().log;
    let want = [
        "argv",
        "initialize",
        "user",
        "control_response",
        "user",
        "eof",
    ];
    assert_eq!(process_records(&log, process), want);
}

#[test]
fn summary_holds_the_fields_of_the_claude_result() {
    let mut s = claude::ready(&json!({}));
    let tool = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}});
    let result = json!({"total_cost_usd": 0.25, "num_turns": 2});
    let turn =
        s.steps(&json!([{"say": "one "}, { "ask": tool }, {"say": "two"}, { "result": result }]));
    let summary = &turn.summary;
    assert_eq!(summary["text"], json!(turn.text()));
    assert!(turn.text().starts_with("one ") && turn.text().ends_with("two"));
    assert_eq!(summary["toolsUsed"], json!(["Bash"]));
    let names: Vec<&Value> = turn.activity.iter().map(|a| &a["toolName"]).collect();
    assert_eq!(names, [&json!("Bash"), &Value::Null]);
    assert_eq!(
        summary["toolCalls"][0]["arguments"],
        json!({"command": "ls"})
    );
    assert_eq!(summary["cost"], 0.25);
    assert_eq!(summary["numTurns"], 2);
    assert_eq!(summary["sessionId"], "default");
    let own = s.call("session/get", &json!({}))["agentSessionId"].clone();
    assert_eq!(
        json!(args(&s.processes()[0], "--session-id=")),
        json!([own])
    );
}

#[test]
fn summary_has_duration_and_reported_usage_for_every_ending() {
    let failed = json!({"is_error": true, "result": "API Error: 400 no", "api_error_status": 400,
        "stop_reason": "stop_sequence", "terminal_reason": "api_error"});
    let limit = json!({"subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns",
        "errors": ["Reached maximum number of turns (1)"]});
    // (last step, `stopReason`, whether there is usage)
    let cases = [
        (json!({"result": {}}), "end_turn", true),
        (json!({ "result": failed }), "error", true),
        (json!({ "result": limit }), "max_turn_requests", true),
        (json!({"interrupted": true}), "cancelled", true),
        // Usage that the agent did not report is not invented.
        (json!({"exit": 1}), "error", false),
    ];
    let mut s = claude::ready(&json!({}));
    for (step, stop, told) in cases {
        let prompt = s.send_steps("default", &json!([{"delta": "x"}, step]));
        s.await_chunk("default", |chunk| chunk["delta"] == "x");
        if stop == "cancelled" {
            s.call("session/cancel", &json!({}));
        }
        let summary = s.turn(&prompt).summary;
        assert_eq!(summary["stopReason"], stop, "{step}");
        let usage = &summary["usage"];
        if told {
            assert_eq!(usage["inputTokens"], 3, "{step}: {usage}");
            assert_eq!(usage["outputTokens"], 4, "{step}: {usage}");
        } else {
            assert_eq!(usage, &Value::Null, "{step}");
        }
        assert!(summary["durationMs"].is_u64(), "{step}");
    }
    let [wait, stop] = until_cancelled();
    let mut s = Server::ready(&json!({"session/prompt": [[say("x"), wait, stop]]}));
    let prompt = s.send_prompt("default", "go");
    s.await_chunk("default", |chunk| chunk["delta"] == "x");
    s.call("session/cancel", &json!({}));
    assert_eq!(s.turn(&prompt).summary["usage"], Value::Null);
}

/// Returns the shortest of several times: other programs on the machine can only lengthen one.
fn shortest(mut measure: impl FnMut() -> Duration) -> Duration {
    (0..5).map(|_| measure()).min().unwrap()
}

#[test]
fn a_turn_takes_less_than_100_ms_beside_the_time_of_the_agent() {
    // Both fake agents answer at once, so the whole time of the call counts.
    for (dialect, mut s) in both() {
        s.waive("agent/state");
        let time = shortest(|| {
            let start = Instant::now();
            assert_eq!(s.prompt("hello").summary["text"], "hello", "{dialect}");
            start.elapsed()
        });
        assert!(time < Duration::from_millis(100), "{dialect}: {time:?}");
    }
}

#[test]
fn the_first_text_arrives_within_500_ms_of_the_call() {
    let [wait, stop] = until_cancelled();
    let script = json!({"session/prompt": [[say("x"), wait, stop]]});
    for (dialect, mut s) in [
        ("acp", Server::ready(&script)),
        ("claude", claude::ready(&json!({}))),
    ] {
        let time = shortest(|| {
            let start = Instant::now();
            let prompt = match dialect {
                "acp" => s.send_prompt("default", "go"),
                _ => s.send_steps("default", &json!([{"delta": "x"}, {"interrupted": true}])),
            };
            s.await_chunk("default", |chunk| chunk["delta"] == "x");
            let time = start.elapsed();
            // The turn still runs: its text did not wait for the end.
            let cancel = s.call("session/cancel", &json!({}));
            assert_eq!(cancel, json!({"cancelled": true}), "{dialect}");
            s.turn(&prompt);
            time
        });
        assert!(time < Duration::from_millis(500), "{dialect}: {time:?}");
    }
}

#[test]
fn the_stored_message_is_the_fold_of_the_chunks() {
    let plan =
        |text: &str| json!({"update": {"sessionUpdate": "plan", "entries": [{"content": text}]}});
    let steps = [
        think("hm"),
        say("one"),
        tool(
            "t",
            &json!({"name": "n", "status": "in_progress", "rawInput": {"a": 1}}),
        ),
        plan("first"),
        tool_change("t", &json!({"status": "completed", "rawOutput": "out"})),
        plan("second"),
        say("two"),
        end("end_turn"),
    ];
    let call = json!({"tool_name": "Bash", "tool_use_id": "t", "input": {"command": "ls"}});
    for dialect in ["acp", "claude"] {
        let (mut s, turn) = if dialect == "acp" {
            let mut s = Server::ready(&json!({"session/prompt": [steps]}));
            let turn = s.prompt("go");
            (s, turn)
        } else {
            let mut s = claude::ready(&json!({}));
            let turn = s.steps(&json!([{"say": "one "}, { "ask": call }, {"say": "two"}]));
            (s, turn)
        };
        let mut fold = Fold::default();
        turn.chunks.iter().for_each(|chunk| fold.push(chunk));
        let messages = s.call("message/list", &json!({}))["messages"].clone();
        assert_eq!(messages[0]["role"], "user", "{dialect}");
        assert_eq!(messages[1], fold.message(), "{dialect}");
        let types: Vec<&str> = messages[1]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["type"].as_str().unwrap())
            .collect();
        let has = |kind: &str| types.iter().filter(|other| **other == kind).count();
        assert!(has("text") >= 2, "{types:?}");
        assert_eq!(has("dynamic-tool"), 1, "{types:?}");
        if dialect == "acp" {
            assert_eq!((has("reasoning"), has("data-plan")), (1, 1), "{types:?}");
        }
    }
}

#[test]
fn the_last_message_can_be_read_while_its_turn_runs() {
    let [wait, stop] = until_cancelled();
    let mut s = Server::ready(&json!({"session/prompt": [[say("so far"), wait, stop]]}));
    let last = |s: &mut Server| s.call("message/last", &json!({}))["message"].clone();
    assert_eq!(last(&mut s), Value::Null);
    let prompt = s.send_prompt("default", "go");
    s.await_chunk("default", |chunk| chunk["delta"] == "so far");
    let message = last(&mut s);
    assert_eq!(message["role"], "assistant");
    let text = |part: &Value| part["type"] == "text" && part["text"] == "so far";
    assert!(
        message["parts"].as_array().unwrap().iter().any(text),
        "{message}"
    );
    s.call("session/cancel", &json!({}));
    let summary = s.turn(&prompt).summary;
    assert_eq!(summary["messageId"], message["id"]);
}

#[test]
fn sessions_have_separate_messages() {
    let mut s = Server::ready(&json!({}));
    for session in ["a", "b"] {
        s.ensure(session);
        let prompt = s.send_prompt(session, session);
        s.turn(&prompt);
    }
    let texts = |s: &mut Server, session: &str| {
        let list = s.call("message/list", &json!({"sessionId": session}));
        let messages = list["messages"].as_array().unwrap().clone();
        let text = |message: &Value| {
            let parts = message["parts"].as_array().unwrap();
            parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect::<String>()
        };
        messages.iter().map(text).collect::<Vec<String>>()
    };
    let note = json!({"id": "n", "role": "system", "parts": [{"type": "text", "text": "note"}]});
    s.call("message/add", &json!({"sessionId": "a", "message": note}));
    assert_eq!(texts(&mut s, "a"), ["a", "a", "note"]);
    assert_eq!(texts(&mut s, "b"), ["b", "b"]);
    let other = json!({"sessionId": "b", "messageId": "n", "message": {}});
    let error = s.call_error("message/update", &other);
    assert_eq!(error["data"]["kind"], "messageNotFound");
    s.call("message/clear", &json!({"sessionId": "a"}));
    assert!(texts(&mut s, "a").is_empty());
    assert_eq!(texts(&mut s, "b"), ["b", "b"]);
}
