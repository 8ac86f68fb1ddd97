//! Tool calls of every shape that agents give them.

use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool, tool_change};
use crate::turn::play;
use serde_json::{Value, json};

fn output(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

/// The types of the chunks about tools, without their prefix.
fn tool_types(turn: &crate::harness::server::Turn) -> Vec<&str> {
    let types = turn.types().into_iter();
    types.filter_map(|t| t.strip_prefix("tool-")).collect()
}

#[test]
fn a_call_in_full() {
    let turn = play(&[
        say("let me"),
        tool(
            "t1",
            &json!({"title": "List files", "kind": "execute", "name": "bash", "status": "pending"}),
        ),
        tool_change(
            "t1",
            &json!({"status": "in_progress", "rawInput": {"command": "ls"}, "locations": [{"path": "/a", "line": 3}]}),
        ),
        tool_change("t1", &json!({"content": output("a")})),
        tool_change(
            "t1",
            &json!({"status": "completed", "content": output("a\nb"), "rawOutput": {"exit": 0}}),
        ),
        say("done"),
        end("end_turn"),
    ]);
    assert_eq!(
        tool_types(&turn),
        [
            "input-start",
            "input-available",
            "input-available",
            "output-available"
        ]
    );
    let start = turn.one("tool-input-start");
    assert_eq!(start["toolCallId"], "t1");
    assert_eq!(start["toolName"], "bash");
    assert_eq!(start["title"], "List files");
    let inputs = turn.of("tool-input-available");
    assert_eq!(inputs[0]["input"], json!({"command": "ls"}));
    assert_eq!(
        inputs[0]["toolMetadata"]["acp"]["locations"],
        json!([{"path": "/a", "line": 3}])
    );
    assert_eq!(inputs[1]["toolMetadata"]["acp"]["content"], output("a"));
    let out = turn.one("tool-output-available");
    assert_eq!(
        out["output"],
        json!({"content": output("a\nb"), "rawOutput": {"exit": 0}})
    );
    assert_eq!(out["toolMetadata"]["acp"]["status"], "completed");
    let s = &turn.summary;
    assert_eq!(
        s["toolCalls"],
        json!([{"name": "bash", "arguments": {"command": "ls"}, "callId": "t1"}])
    );
    assert_eq!(
        s["toolResults"],
        json!([{"callId": "t1", "result": "a\nb", "isError": false}])
    );
    assert_eq!(s["toolsUsed"], json!(["bash"]));
    let activity = json!({"toolName": "bash", "description": "List files"});
    assert_eq!(turn.activity, [activity, Value::Null]);
    // The text goes on in a block of its own.
    assert_eq!(turn.of("text-start").len(), 2);
}

/// What a shape of a call must come to.
struct Shape {
    what: &'static str,
    steps: Vec<Value>,
    types: &'static [&'static str],
    name: &'static str,
    arguments: Value,
    result: &'static str,
    is_error: bool,
}

/// Content that is a terminal and no text.
fn shows() -> Value {
    json!([{"type": "terminal", "terminalId": "t"}])
}

fn shapes() -> Vec<Shape> {
    let shape = |what, steps: &[Value], types, name, arguments, result, is_error| Shape {
        what,
        steps: steps.to_vec(),
        types,
        name,
        arguments,
        result,
        is_error,
    };
    vec![
        shape(
            "an update is the first sight",
            &[tool_change(
                "t",
                &json!({"kind": "read", "status": "completed", "rawOutput": "out"}),
            )],
            &["input-available", "output-available"],
            "read",
            json!({}),
            "out",
            false,
        ),
        shape(
            "a permission is the first sight",
            &[
                json!({"ask": {"method": "session/request_permission", "params": {
                    "toolCall": {"toolCallId": "t", "kind": "edit", "rawInput": {"a": 1}},
                    "options": [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]}}}),
                tool_change(
                    "t",
                    &json!({"status": "completed", "content": output("ok")}),
                ),
            ],
            &[
                "input-available",
                "approval-request",
                "approval-response",
                "output-available",
            ],
            "edit",
            json!({"a": 1}),
            "ok",
            false,
        ),
        shape(
            "nothing but an id",
            &[
                tool("t", &json!({})),
                tool_change("t", &json!({"status": "completed"})),
            ],
            &["input-start", "input-available", "output-available"],
            "other",
            json!({}),
            "",
            false,
        ),
        shape(
            "nulls everywhere",
            &[
                tool(
                    "t",
                    &json!({"title": null, "kind": null, "status": null, "rawInput": null, "content": null, "locations": null, "_meta": null}),
                ),
                tool_change(
                    "t",
                    &json!({"status": "completed", "rawOutput": null, "content": []}),
                ),
            ],
            &["input-start", "input-available", "output-available"],
            "other",
            json!({}),
            "",
            false,
        ),
        shape(
            "an empty input first",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "pending", "rawInput": {}}),
                ),
                tool_change("t", &json!({"rawInput": {"a": 1}})),
                tool_change("t", &json!({"status": "completed"})),
            ],
            &["input-start", "input-available", "output-available"],
            "n",
            json!({"a": 1}),
            "",
            false,
        ),
        shape(
            "the same update twice says nothing new",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "in_progress", "rawInput": {"a": 1}}),
                ),
                tool_change("t", &json!({"status": "in_progress", "rawInput": {"a": 1}})),
                tool_change("t", &json!({"status": "completed"})),
            ],
            &["input-available", "output-available"],
            "n",
            json!({"a": 1}),
            "",
            false,
        ),
        shape(
            "completed twice, then more",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "completed", "rawInput": 1, "rawOutput": "a"}),
                ),
                tool_change("t", &json!({"status": "completed"})),
                tool_change("t", &json!({"status": "in_progress"})),
                tool_change("t", &json!({"rawOutput": "ab"})),
            ],
            &[
                "input-available",
                "output-available",
                "output-available",
                "output-available",
            ],
            "n",
            json!(1),
            "ab",
            false,
        ),
        shape(
            "completed, then failed",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "completed", "rawInput": 1, "rawOutput": "a"}),
                ),
                tool_change(
                    "t",
                    &json!({"status": "failed", "content": output("broke")}),
                ),
            ],
            &["input-available", "output-available", "output-error"],
            "n",
            json!(1),
            "broke",
            true,
        ),
        shape(
            "failed at first sight",
            &[tool("t", &json!({"name": "n", "status": "failed"}))],
            &["input-available", "output-error"],
            "n",
            json!({}),
            "Tool call failed",
            true,
        ),
        shape(
            "never settled",
            &[tool(
                "t",
                &json!({"name": "n", "status": "pending", "rawInput": {"x": 2}}),
            )],
            &["input-available", "output-available"],
            "n",
            json!({"x": 2}),
            "The agent ended its turn without reporting a result of this tool call",
            false,
        ),
        shape(
            "announced and nothing more",
            &[tool("t", &json!({"name": "n"}))],
            &["input-start", "input-available", "output-available"],
            "n",
            json!({}),
            "The agent ended its turn without reporting a result of this tool call",
            false,
        ),
        shape(
            "not settled, with content",
            &[tool(
                "t",
                &json!({"name": "n", "status": "in_progress", "rawInput": 1, "content": output("so far")}),
            )],
            &["input-available", "output-available"],
            "n",
            json!(1),
            "The agent ended its turn without reporting a result of this tool call",
            false,
        ),
        shape(
            "a terminal of the agent's own, as pi has it",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "pending", "content": shows(), "_meta": {"terminal_info": {"terminal_id": "t", "cwd": "/"}}}),
                ),
                tool_change(
                    "t",
                    &json!({"status": "in_progress", "_meta": {"terminal_output": {"terminal_id": "t", "data": "out\n"}}}),
                ),
                tool_change(
                    "t",
                    &json!({"status": "completed", "_meta": {"terminal_exit": {"terminal_id": "t", "exit_code": 0, "signal": null}}}),
                ),
            ],
            &["input-start", "input-available", "output-available"],
            "n",
            json!({}),
            "out\n",
            false,
        ),
        shape(
            "a terminal of the agent's own, as codex has it",
            &[
                tool(
                    "t",
                    &json!({"name": "n", "status": "in_progress", "rawInput": 1, "content": shows()}),
                ),
                tool_change(
                    "t",
                    &json!({"status": "completed", "_meta": {
                    "terminal_output_delta": {"terminal_id": "t", "data": "out\n"},
                    "terminal_exit": {"terminal_id": "t", "exit_code": 0, "signal": null}}}),
                ),
            ],
            &["input-available", "output-available"],
            "n",
            json!(1),
            "out\n",
            false,
        ),
        shape(
            "named in the additions of claude",
            &[tool(
                "t",
                &json!({"kind": "execute", "status": "completed", "_meta": {"claudeCode": {"toolName": "Bash"}}}),
            )],
            &["input-available", "output-available"],
            "Bash",
            json!({}),
            "",
            false,
        ),
        shape(
            "a name that comes too late",
            &[
                tool("t", &json!({"kind": "fetch"})),
                tool_change("t", &json!({"name": "late", "status": "completed"})),
            ],
            &["input-start", "input-available", "output-available"],
            "fetch",
            json!({}),
            "",
            false,
        ),
    ]
}

#[test]
fn calls_of_every_shape() {
    let shapes = shapes();
    let runs: Vec<Vec<Value>> = shapes
        .iter()
        .map(|shape| [&shape.steps[..], &[end("end_turn")]].concat())
        .collect();
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    for shape in &shapes {
        let turn = s.prompt("go");
        let what = shape.what;
        assert_eq!(tool_types(&turn), shape.types, "{what}");
        assert_eq!(
            turn.summary["toolCalls"],
            json!([{"name": shape.name, "arguments": shape.arguments, "callId": "t"}]),
            "{what}"
        );
        assert_eq!(
            turn.summary["toolResults"],
            json!([{"callId": "t", "result": shape.result, "isError": shape.is_error}]),
            "{what}"
        );
        assert_eq!(turn.summary["isError"], false, "{what}");
    }
}

#[test]
fn what_follows_a_failure_is_carried_beside_it() {
    let turn = play(&[
        tool(
            "t",
            &json!({"name": "n", "status": "failed", "rawInput": 1, "content": output("no")}),
        ),
        tool_change("t", &json!({"rawOutput": {"log": "x"}, "title": "T"})),
        tool_change("t", &json!({"status": "completed"})),
        end("end_turn"),
    ]);
    assert_eq!(tool_types(&turn), ["input-available", "output-error"]);
    assert_eq!(turn.one("tool-output-error")["errorText"], "no");
    let late = turn.of("data-tool-call");
    assert_eq!(late.len(), 2);
    assert_eq!(late[0]["id"], "t");
    assert_eq!(late[0]["data"]["rawOutput"], json!({"log": "x"}));
    assert_eq!(late[0]["data"]["title"], "T");
    assert_eq!(turn.summary["toolResults"][0]["isError"], true);
}

#[test]
fn parallel_calls_keep_apart() {
    let turn = play(&[
        tool(
            "a",
            &json!({"name": "A", "title": "first", "status": "in_progress", "rawInput": 1}),
        ),
        tool(
            "b",
            &json!({"name": "B", "title": "second", "status": "in_progress", "rawInput": 2}),
        ),
        tool("c", &json!({"name": "A", "title": "third", "rawInput": 3})),
        tool_change("b", &json!({"status": "completed", "rawOutput": "B!"})),
        say("meanwhile"),
        tool_change("c", &json!({"status": "failed", "rawOutput": "C!"})),
        tool_change("a", &json!({"status": "completed", "rawOutput": "A!"})),
        end("end_turn"),
    ]);
    assert_eq!(
        turn.summary["toolResults"],
        json!([
            {"callId": "a", "result": "A!", "isError": false},
            {"callId": "b", "result": "B!", "isError": false},
            {"callId": "c", "result": "C!", "isError": true},
        ])
    );
    assert_eq!(turn.summary["toolsUsed"], json!(["A", "B"]));
    let shown: Vec<&str> = turn
        .activity
        .iter()
        .map(|a| a["description"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(shown, ["first", "second", "third", "first", "-"]);
}

#[test]
fn diffs_are_kept_whole() {
    let diff = json!([{"type": "diff", "path": "/a.rs", "oldText": "x\n", "newText": "y\n"}]);
    let turn = play(&[
        tool(
            "t",
            &json!({"kind": "edit", "status": "pending", "rawInput": {"path": "/a.rs"}, "content": diff}),
        ),
        tool_change("t", &json!({"status": "completed"})),
        end("end_turn"),
    ]);
    let input = turn.one("tool-input-available");
    assert_eq!(input["toolMetadata"]["acp"]["content"], diff);
    assert_eq!(turn.one("tool-output-available")["output"]["content"], diff);
}

#[test]
fn terminals_that_the_agent_runs_are_shown() {
    let meta = |part: Value| json!({"_meta": part});
    let turn = play(&[
        tool(
            "t",
            &json!({"name": "bash", "status": "in_progress", "rawInput": {"c": "ls"},
            "content": [{"type": "terminal", "terminalId": "x"}],
            "_meta": {"terminal_info": {"terminal_id": "x", "cwd": "/w"}}}),
        ),
        tool_change(
            "t",
            &meta(json!({"terminal_output": {"terminal_id": "x", "data": "one\n"}})),
        ),
        tool_change(
            "t",
            &meta(json!({"terminal_output": {"terminal_id": "x", "data": "two\n"}})),
        ),
        tool_change(
            "t",
            &json!({"status": "completed", "_meta": {"terminal_exit": {"terminal_id": "x", "exit_code": 0, "signal": null}}}),
        ),
        end("end_turn"),
    ]);
    let shown = turn.of("data-terminal");
    let last = &shown.last().unwrap()["data"];
    assert_eq!(last["toolCallId"], "t");
    assert_eq!(last["output"], "one\ntwo\n");
    assert_eq!(last["details"]["cwd"], "/w");
    assert_eq!(last["details"]["exit_code"], 0);
    assert!(shown.iter().all(|c| c["id"] == "x"));
}

#[test]
fn open_calls_are_settled_when_the_turn_fails() {
    let turn = play(&[
        say("x"),
        tool(
            "a",
            &json!({"name": "A", "status": "in_progress", "rawInput": 1}),
        ),
        tool("b", &json!({"name": "B"})),
        json!({"error": {"code": -32603, "message": "gone"}}),
    ]);
    assert_eq!(turn.of("tool-output-error").len(), 2);
    assert_eq!(turn.last()["type"], "error");
    assert_eq!(turn.activity.last(), Some(&Value::Null));
    let settled = &turn.of("tool-output-error")[0]["toolMetadata"]["acp"]["settled"];
    assert_eq!(
        *settled,
        "The turn failed before this tool reported a result"
    );
}
