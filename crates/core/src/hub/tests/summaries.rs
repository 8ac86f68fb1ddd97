//! Summaries of turns: their end, their errors, their usage and cost, and the results of their tools.

use super::fixture::{A, Fixture};
use crate::client::Command;
use crate::store::MemoryStore;
use crate::testing::{SettingsBuilder, params};
use acpipe_policy::Mode;
use serde_json::{Value, json};
use std::time::Instant;

/// A turn that has ended.
struct Ended {
    chunks: Vec<Value>,
    summary: Value,
}

impl Ended {
    fn last(&self) -> &Value {
        self.chunks.last().expect("a chunk")
    }

    /// Returns the types of the chunks about tools, without the prefix `tool-`.
    fn tool_types(&self) -> Vec<&str> {
        let types = self.chunks.iter().filter_map(|c| c["type"].as_str());
        types.filter_map(|t| t.strip_prefix("tool-")).collect()
    }
}

/// Creates a session whose permission requests are approved.
fn session() -> Fixture {
    let settings = SettingsBuilder::new(Instant::now());
    Fixture::under(Mode::Approve, Box::new(MemoryStore), settings, &[A])
}

/// Plays a turn: its prompt, the agent's updates and permission requests, and the members of its response.
fn play(t: &mut Fixture, message: &str, updates: &[Value], response: &Value) -> Ended {
    let prompt = json!({"sessionId": "s", "message": message});
    let call = t.call(A, Command::Prompt(params(prompt)));
    let session = t.prompted();
    for update in updates {
        if update["sessionUpdate"].is_string() {
            t.update(&session, std::slice::from_ref(update));
        } else {
            t.request_permission("q", &session, update);
        }
    }
    let request = t.requests.pop().expect("a prompt");
    let mut line = response.clone();
    if line["id"].is_null() {
        line["id"] = request["id"].clone();
    } else {
        line["id"] = request["id"].to_string().into();
    }
    t.say(&[line]);
    let chunks = t.sinks.0.get_mut(&A).expect("the client").take_chunks();
    Ended {
        chunks: chunks.into_iter().map(|given| given.chunk).collect(),
        summary: t.result(A, call),
    }
}

fn say(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn stop(reason: impl Into<Value>) -> Value {
    json!({"result": {"stopReason": reason.into()}})
}

#[test]
fn every_stop_reason_has_a_finish_reason_and_a_last_chunk() {
    // Reason, `finishReason`, last chunk, `errorReason`, kind of the error.
    let cases = json!([
        ["end_turn", "stop", "finish", null, null],
        ["max_tokens", "length", "finish", null, null],
        [
            "max_turn_requests",
            "length",
            "finish",
            "max_turns limit reached",
            "maxTurns"
        ],
        ["refusal", "content-filter", "finish", null, null],
        ["cancelled", "other", "abort", null, null],
        ["tired", "other", "finish", null, null],
        ["", "other", "finish", null, null],
        ["error", "error", "error", null, "session"],
        ["Failed", "error", "error", null, "session"],
        [5, "error", "error", null, "malformed"],
        [null, "error", "error", null, "malformed"],
    ]);
    let mut t = session();
    for case in cases.as_array().unwrap() {
        let turn = play(&mut t, "go", &[say("x")], &stop(case[0].clone()));
        let s = &turn.summary;
        let seen = json!([
            case[0],
            s["finishReason"],
            turn.last()["type"],
            s["errorReason"],
            s["errors"][0]["kind"]
        ]);
        assert_eq!(seen, *case);
        let reason = case[0].as_str().filter(|_| case[1] != "error");
        assert_eq!(s["stopReason"], reason.unwrap_or("error"), "{case}");
        assert_eq!(s["isError"], !case[4].is_null(), "{case}");
        assert_eq!(s["text"], "x", "{case}");
    }
}

#[test]
fn unusual_responses_end_the_turn() {
    let result = json!({"stopReason": "end_turn"});
    let mut t = session();
    for response in [
        json!({"error": null, "result": result}),
        json!({"result": result, "extra": [1]}),
        json!({"result": result, "jsonrpc": "1.0"}),
        json!({"result": result, "id": "as a string"}),
    ] {
        let turn = play(&mut t, "go", &[say("x")], &response);
        assert_eq!(turn.summary["isError"], false, "{response}");
        assert_eq!(turn.last()["type"], "finish", "{response}");
    }
}

#[test]
fn errors_of_the_agent_have_a_kind_and_a_message() {
    let internal = |data: Value| json!({"code": -32603, "message": "Internal error", "data": data});
    let mut t = session();
    for (error, kind, part) in [
        (internal(Value::Null), "session", "Internal error"),
        (
            internal(json!({"details": "limit of x"})),
            "session",
            "limit of x",
        ),
        (internal(json!({"message": "deep"})), "session", "deep"),
        (internal(json!("just text")), "session", "just text"),
        (
            json!({"code": -32603, "message": "connect ECONNREFUSED"}),
            "network",
            "ECONNREFUSED",
        ),
        (
            internal(json!({"details": "fetch failed"})),
            "network",
            "fetch failed",
        ),
        (json!("only text"), "session", "only text"),
        (json!({"message": 5}), "session", ""),
        (
            json!({"code": "E_BAD", "message": "odd code"}),
            "session",
            "odd code",
        ),
    ] {
        let turn = play(&mut t, "go", &[say("partial")], &json!({"error": error}));
        let s = &turn.summary;
        assert_eq!(s["errors"][0]["kind"], kind, "{error}");
        assert_eq!(s["errors"][0]["data"]["kind"], Value::Null, "{error}");
        let message = s["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{error}: {message}");
        assert_eq!(turn.last()["errorText"], message);
        assert_eq!(
            (&s["text"], &s["stopReason"]),
            (&json!("partial"), &json!("error"))
        );
        let metadata = |c: &&Value| c["type"] == "message-metadata";
        let metadata = turn.chunks.iter().find(metadata).unwrap();
        assert_eq!(metadata["messageMetadata"]["acp"]["error"]["kind"], kind);
    }
}

#[test]
fn error_reason_depends_on_the_failure() {
    let failed = [
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "name": "bash", "rawInput": {}}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "failed"}),
    ];
    let error = json!({"error": {"code": -32603, "message": "x"}});
    // The agent continued after the failed tool, so that was not the reason.
    let went_on = [&failed[..], &[say("never mind")]].concat();
    for (updates, response, reason) in [
        (
            &failed[..],
            error.clone(),
            json!("tool execution failed: bash"),
        ),
        (&went_on, error, Value::Null),
        (&failed, stop("end_turn"), Value::Null),
        (
            &failed,
            stop("max_turn_requests"),
            json!("max_turns limit reached"),
        ),
    ] {
        let turn = play(&mut session(), "go", updates, &response);
        assert_eq!(turn.summary["errorReason"], reason, "{response}");
    }
}

/// Each case has an update and, if there is no output, the kind of the error.
#[test]
fn turn_without_visible_output_is_an_error_unless_its_end_explains_it() {
    let update = |kind: &str, more: Value| {
        let mut update = more;
        update["sessionUpdate"] = kind.into();
        update
    };
    let image = json!({"content": {"type": "image", "mimeType": "image/png", "data": "aWNvbg=="}});
    let text = json!({"content": {"type": "text", "text": "x"}});
    let done = json!({"toolCallId": "t", "title": "x", "status": "completed"});
    let mut t = session();
    for (update, is_output) in [
        (say(" \n"), false),
        (update("usage_update", json!({"used": 1, "size": 2})), false),
        (
            update("session_info_update", json!({"_meta": {"x": 1}})),
            false,
        ),
        (say("x"), true),
        (update("agent_thought_chunk", text), true),
        (update("plan", json!({"entries": []})), true),
        (update("notice", json!({"title": "t"})), true),
        (update("agent_message_chunk", image), true),
        (update("tool_call", done), true),
        (json!({"toolCallId": "q"}), true),
    ] {
        let turn = play(
            &mut t,
            "go",
            std::slice::from_ref(&update),
            &stop("end_turn"),
        );
        let kind = if is_output {
            Value::Null
        } else {
            json!("emptyTurn")
        };
        assert_eq!(turn.summary["errors"][0]["kind"], kind, "{update}");
        assert_eq!(turn.last()["type"] == "error", !is_output, "{update}");
    }
    for reason in ["max_tokens", "refusal", "cancelled", "novel"] {
        let turn = play(&mut t, "go", &[], &stop(reason));
        assert_eq!(turn.summary["isError"], false, "{reason}");
    }
}

#[test]
fn turn_of_a_command_may_be_empty() {
    let commands = json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "compact", "description": ""}]});
    let mut t = session();
    // Until the agent lists its commands, any text in the form of a command counts as one.
    for (prompt, updates, fails) in [
        ("/novel", &[][..], false),
        ("go", &[commands, say("listed")], false),
        ("/compact now", &[], false),
        ("/novel", &[], true),
        ("/a/path", &[], true),
    ] {
        let turn = play(&mut t, prompt, updates, &stop("end_turn"));
        assert_eq!(turn.summary["isError"], fails, "{prompt}");
    }
}

#[test]
fn usage_is_read_in_every_known_form() {
    let cases = [
        (
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "totalTokens": 16, "cachedReadTokens": 3,
                "cachedWriteTokens": 0, "thoughtTokens": 1}}),
            json!([10, 5, 16, 3, 0, 1]),
        ),
        (
            json!({"usage": {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": null, "thoughtTokens": "many"}}),
            json!([10, 5, 15, null, null, null]),
        ),
        (
            json!({"_meta": {"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2}}}}),
            json!([7, 2, 9, null, null, null]),
        ),
        (
            json!({"usage": {"inputTokens": 0}}),
            json!([0, null, null, null, null, null]),
        ),
        (json!({"usage": null}), Value::Null),
        (json!({"usage": {}}), Value::Null),
        (json!({"usage": 5}), Value::Null),
    ];
    let names = [
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "cachedReadTokens",
        "cachedWriteTokens",
        "thoughtTokens",
    ];
    let mut t = session();
    for (mut result, figures) in cases {
        result["stopReason"] = "end_turn".into();
        let turn = play(&mut t, "go", &[say("x")], &json!({"result": result}));
        let all = figures.as_array().map(|figures| {
            let pairs = names.iter().zip(figures);
            pairs.map(|(name, n)| ((*name).to_owned(), n.clone()))
        });
        let usage = all.clone().map(|all| Value::Object(all.collect()));
        assert_eq!(turn.summary["usage"], json!(usage), "{result}");
        let known = all.map(|all| Value::Object(all.filter(|(_, n)| !n.is_null()).collect()));
        let shown = &turn.last()["messageMetadata"]["acp"]["usage"];
        assert_eq!(*shown, json!(known), "{result}");
    }
}

#[test]
fn cost_of_a_summary_is_that_of_its_turn() {
    let usd = |amount: f64| json!({"amount": amount, "currency": "USD"});
    let context = |used: u64, cost: Value| json!({"sessionUpdate": "usage_update", "used": used, "size": 1000, "cost": cost});
    let mut t = session();
    for (updates, cost) in [
        (
            vec![context(10, usd(0.25)), context(20, usd(0.5))],
            json!(0.5),
        ),
        (vec![context(30, usd(0.75))], json!(0.25)),
        (vec![context(30, Value::Null)], Value::Null),
        (vec![context(40, json!("much"))], Value::Null),
        (vec![], Value::Null),
        (vec![context(50, usd(1.0))], json!(0.25)),
    ] {
        let turn = play(
            &mut t,
            "go",
            &[&updates[..], &[say("x")]].concat(),
            &stop("end_turn"),
        );
        assert_eq!(turn.summary["cost"], cost, "{updates:?}");
        let last = updates.last().map(|update| update["used"].clone());
        let context = &turn.summary["metadata"]["context"];
        assert_eq!(context["used"], json!(last), "{updates:?}");
    }
    // A cost outside of turns is not part of the next one.
    let session = t.prompted();
    t.update(&session, &[context(60, usd(1.5))]);
    let turn = play(
        &mut t,
        "go",
        &[context(70, usd(2.0)), say("x")],
        &stop("end_turn"),
    );
    assert_eq!(turn.summary["cost"], 0.5);
}

/// Rows of a tool call: its updates, its chunks, its name, arguments and result, and whether that is an error.
fn shapes() -> Value {
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let terminal = json!([{"type": "terminal", "terminalId": "x"}]);
    let data = json!({"terminal_id": "x", "data": "out\n"});
    let exit = json!({"terminal_id": "x", "exit_code": 0, "signal": null});
    let none = "The agent ended its turn without reporting a result of this tool call";
    let (at_once, announced) = (
        ["input-available", "output-available"],
        ["input-start", "input-available", "output-available"],
    );
    let asked = [
        "input-available",
        "approval-request",
        "approval-response",
        "output-available",
    ];
    let asked_twice = [
        "input-available",
        "approval-request",
        "approval-response",
        "output-available",
        "output-available",
    ];
    let twice = ["input-available", "output-available", "output-available"];
    let failed = ["input-available", "output-available", "output-error"];
    let nulls = json!({"title": null, "kind": null, "status": null, "rawInput": null, "content": null, "_meta": null});
    json!([
        [[{"change": 1, "kind": "read", "status": "completed", "rawOutput": "out"}], at_once, "read", {}, "out", false],
        [[{"ask": 1, "kind": "edit", "rawInput": {"a": 1}}, {"status": "completed", "content": text("ok")}],
            asked, "edit", {"a": 1}, "ok", false],
        [[{"ask": 1}, {"status": "completed"}], asked, "other", {}, "", false],
        // The AI SDK has one approval for each call; the second request is data.
        [[{"ask": 1, "kind": "edit"}, {"status": "in_progress"}, {"ask": 1}, {"status": "completed", "rawOutput": "done"}],
            asked_twice, "edit", {}, "done", false],
        [[{}, {"status": "completed"}], announced, "other", {}, "", false],
        [[nulls, {"status": "completed", "rawOutput": null, "content": []}], announced, "other", {}, "", false],
        [[{"name": "n", "status": "pending", "rawInput": {}}, {"rawInput": {"a": 1}}, {"status": "completed"}],
            announced, "n", {"a": 1}, "", false],
        [[{"name": "n", "status": "in_progress", "rawInput": {"a": 1}}, {"status": "in_progress", "rawInput": {"a": 1}},
            {"status": "completed"}], at_once, "n", {"a": 1}, "", false],
        [[{"name": "n", "status": "completed", "rawInput": 1, "rawOutput": "a"}, {"status": "completed"},
            {"status": "in_progress"}, {"rawOutput": "ab"}],
            ["input-available", "output-available", "output-available", "output-available"], "n", 1, "ab", false],
        // The second output shows the title; the repeated result is no change.
        [[{"name": "n", "status": "in_progress", "rawInput": 1}, {"status": "completed", "rawOutput": "x"},
            {"title": "T"}, {"status": "completed", "rawOutput": "x"}], twice, "n", 1, "x", false],
        [[{"name": "n", "status": "completed", "rawInput": 1, "rawOutput": "a"},
            {"status": "failed", "content": text("broke")}], failed, "n", 1, "broke", true],
        [[{"name": "n", "status": "failed"}], ["input-available", "output-error"], "n", {}, "Tool call failed", true],
        // Updates after a failure are data.
        [[{"name": "n", "status": "failed", "rawInput": 1, "content": text("no")},
            {"rawOutput": {"log": "x"}, "title": "T"}, {"status": "completed"}],
            ["input-available", "output-error"], "n", 1, "no", true],
        [[{"name": "n", "status": "pending", "rawInput": {"x": 2}}], at_once, "n", {"x": 2}, none, false],
        [[{"name": "n"}], announced, "n", {}, none, false],
        [[{"name": "n", "status": "in_progress", "rawInput": 1, "content": text("so far")}], at_once, "n", 1, none, false],
        // Terminals of the agent's own, as pi and codex have them.
        [[{"name": "n", "status": "pending", "content": terminal, "_meta": {"terminal_info": {"terminal_id": "x", "cwd": "/"}}},
            {"status": "in_progress", "_meta": {"terminal_output": data}},
            {"status": "completed", "_meta": {"terminal_exit": exit}}], announced, "n", {}, "out\n", false],
        [[{"name": "n", "status": "in_progress", "rawInput": 1, "content": terminal},
            {"status": "completed", "_meta": {"terminal_output_delta": data, "terminal_exit": exit}}],
            at_once, "n", 1, "out\n", false],
        [[{"kind": "execute", "status": "completed", "_meta": {"claudeCode": {"toolName": "Bash"}}}],
            at_once, "Bash", {}, "", false],
        [[{"kind": "fetch"}, {"name": "late", "status": "completed"}], announced, "fetch", {}, "", false],
    ])
}

#[test]
fn tool_calls_of_every_shape_have_their_result() {
    let mut t = session();
    for (n, row) in shapes().as_array().unwrap().iter().enumerate() {
        let id = format!("t{n}");
        let updates = row[0].as_array().unwrap().iter().enumerate();
        let updates: Vec<Value> = updates
            .map(|(at, fields)| {
                let mut update = fields.clone();
                update["toolCallId"] = id.as_str().into();
                let is_change = at > 0 || update["change"] == 1;
                if update["ask"].is_null() {
                    let kind = if is_change {
                        "tool_call_update"
                    } else {
                        "tool_call"
                    };
                    update["sessionUpdate"] = kind.into();
                }
                update
            })
            .collect();
        let turn = play(&mut t, "go", &updates, &stop("end_turn"));
        let s = &turn.summary;
        assert_eq!(json!(turn.tool_types()), row[1], "{row}");
        let calls = json!([{"name": row[2], "arguments": row[3], "callId": id}]);
        assert_eq!(s["toolCalls"], calls, "{row}");
        let results = json!([{"name": row[2], "callId": id, "result": row[4], "isError": row[5]}]);
        assert_eq!(s["toolResults"], results, "{row}");
        assert_eq!(s["isError"], false, "{row}");
    }
}

#[test]
fn parallel_and_open_calls_stay_separate() {
    let call = |id: &str, name: &str| json!({"sessionUpdate": "tool_call", "toolCallId": id, "name": name, "rawInput": 1});
    let end = |id: &str, status: &str, output: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "rawOutput": output});
    let updates = [
        call("a", "A"),
        call("b", "B"),
        call("c", "A"),
        end("b", "completed", "B!"),
        say("meanwhile"),
        end("c", "failed", "C!"),
        end("a", "completed", "A!"),
    ];
    let turn = play(&mut session(), "go", &updates, &stop("end_turn"));
    let results = json!([
        {"name": "A", "callId": "a", "result": "A!", "isError": false},
        {"name": "B", "callId": "b", "result": "B!", "isError": false},
        {"name": "A", "callId": "c", "result": "C!", "isError": true},
    ]);
    assert_eq!(turn.summary["toolResults"], results);
    assert_eq!(turn.summary["toolsUsed"], json!(["A", "B"]));
    // A turn that fails settles its open calls.
    let error = json!({"error": {"code": -32603, "message": "gone"}});
    let turn = play(&mut session(), "go", &updates[..2], &error);
    assert_eq!(turn.tool_types()[2..], ["output-error", "output-error"]);
    let is_failed = |c: &&Value| c["type"] == "tool-output-error";
    let settled = turn.chunks.iter().find(is_failed).unwrap();
    assert_eq!(
        settled["toolMetadata"]["acp"]["settled"],
        "The turn failed before this tool reported a result"
    );
}
