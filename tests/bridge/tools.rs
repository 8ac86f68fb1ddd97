//! Tool calls: their chunks, results and activity.

use crate::harness::steps::{end, say, tool, tool_change};
use crate::turn::play;
use serde_json::{Value, json};

fn output(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
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
    let types = turn.types().into_iter();
    let types: Vec<&str> = types.filter_map(|t| t.strip_prefix("tool-")).collect();
    assert_eq!(
        types,
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
        json!([{"name": "bash", "callId": "t1", "result": "a\nb", "isError": false}])
    );
    assert_eq!(s["toolsUsed"], json!(["bash"]));
    let activity = json!({"toolName": "bash", "description": "List files"});
    assert_eq!(turn.activity, [activity, Value::Null]);
    // The text continues in another block.
    assert_eq!(turn.of("text-start").len(), 2);
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
