//! Tool calls: their chunks, results and activity.

mod shapes;

use crate::harness::steps::{end, say, tool, tool_change};
use crate::turn::play;
use serde_json::{Value, json};

fn output(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

/// Returns the types of the chunks about tools, without the prefix `tool-`.
fn tool_types(turn: &crate::harness::server::Turn) -> Vec<&str> {
    let types = turn.types().into_iter();
    types.filter_map(|t| t.strip_prefix("tool-")).collect()
}

#[test]
fn complete_tool_call_has_all_chunks() {
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
    // The text continues in another block.
    assert_eq!(turn.of("text-start").len(), 2);
}

#[test]
fn update_after_a_tool_failure_is_sent_as_data() {
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
fn update_without_a_status_keeps_the_result() {
    let turn = play(&[
        tool(
            "t",
            &json!({"name": "n", "status": "in_progress", "rawInput": 1}),
        ),
        tool_change("t", &json!({"status": "completed", "rawOutput": "x"})),
        tool_change("t", &json!({"title": "T"})),
        tool_change("t", &json!({"status": "completed", "rawOutput": "x"})),
        say("done"),
        end("end_turn"),
    ]);
    // The second output shows the title; the repeated result is no change.
    assert_eq!(
        tool_types(&turn),
        ["input-available", "output-available", "output-available"]
    );
    for shown in turn.of("tool-output-available") {
        assert_eq!(shown["output"]["rawOutput"], "x");
        assert_eq!(shown["toolMetadata"]["acp"]["status"], "completed");
    }
    let results = json!([{"callId": "t", "result": "x", "isError": false}]);
    assert_eq!(turn.summary["toolResults"], results);
    assert_eq!(turn.activity.last(), Some(&Value::Null));
}

#[test]
fn parallel_tool_calls_stay_separate() {
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
