//! Tool calls in every form that agents use.

use super::{output, tool_types};
use crate::harness::server::Server;
use crate::harness::steps::{end, tool, tool_change};
use serde_json::{Value, json};

/// Form of a tool call, and the expected chunks and summary.
struct Shape {
    what: &'static str,
    steps: Vec<Value>,
    types: &'static [&'static str],
    name: &'static str,
    arguments: Value,
    result: &'static str,
    is_error: bool,
}

/// Content that contains a terminal and no text.
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
fn tool_calls_of_every_shape_are_shown() {
    let shapes = shapes();
    let runs: Vec<Vec<Value>> = shapes
        .iter()
        .map(|shape| [&shape.steps[..], &[end("end_turn")]].concat())
        .collect();
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    for (n, shape) in shapes.iter().enumerate() {
        let turn = s.prompt("go");
        let what = shape.what;
        // The agent uses one id for the calls of all turns.
        let id = if n == 0 {
            "t".to_owned()
        } else {
            format!("t#{}", n + 1)
        };
        assert_eq!(tool_types(&turn), shape.types, "{what}");
        assert_eq!(
            turn.summary["toolCalls"],
            json!([{"name": shape.name, "arguments": shape.arguments, "callId": id}]),
            "{what}"
        );
        assert_eq!(
            turn.summary["toolResults"],
            json!([{"callId": id, "result": shape.result, "isError": shape.is_error}]),
            "{what}"
        );
        assert_eq!(turn.summary["isError"], false, "{what}");
    }
}
