//! Invalid output of the Claude Code CLI and its effects.

use crate::harness::claude;
use serde_json::json;

#[test]
fn unreadable_lines_are_counted_and_the_turn_continues() {
    let mut s = claude::ready_with(&["--max-line", "100000"], &json!({}));
    let turn = s.steps(&json!([
        {"delta": "a"}, {"line": "no json"}, {"line": "[1]"}, {"line": ""}, {"bytes": [123, 255, 125, 10]},
        {"novel": 200_000}, {"delta": "b"}
    ]));
    assert_eq!(turn.summary["text"], "ab");
    let faults = s.call("agent/status", &json!({}))["faults"].clone();
    let want = json!({"malformed": 2, "blank": 1, "invalidUtf8": 1, "tooLong": 1});
    assert_eq!(faults, want);
    assert_eq!(s.prompt("on").summary["text"], "on");
}

#[test]
fn claude_result_over_the_line_limit_fails_its_turn() {
    let mut s = claude::ready_with(&["--max-line", "100000"], &json!({}));
    let turn = s.steps(&json!([{"say": "kept"}, {"huge": 200_000}]));
    assert_eq!(turn.summary["errors"][0]["kind"], "malformed");
    assert!(
        turn.summary["errors"][0]["message"]
            .to_string()
            .contains("--max-line")
    );
    assert_eq!(turn.summary["text"], "kept");
    assert_eq!(s.prompt("on").summary["text"], "on");
}

#[test]
fn claude_process_without_stdout_is_stopped() {
    let mut s = claude::ready(&json!({"eof": [{"hang": true}]}));
    s.prompt("one");
    let turn = s.steps(&json!([{"delta": "half"}, {"closeStdout": true}, {"hang": true}]));
    assert_eq!(turn.summary["errors"][0]["kind"], "streaming");
    assert_eq!(turn.summary["text"], "half");
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "two");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
}
