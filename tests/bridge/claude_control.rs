//! Control messages between acpipe and the Claude Code CLI: permission requests, cancels, settings,
//! background turns.

use crate::harness::claude::{self, answers, args, requests};
use serde_json::{Value, json};

fn is_user(line: &Value) -> bool {
    line["got"]["type"] == "user"
}

fn text(chunks: &[Value]) -> String {
    let deltas = chunks.iter().filter(|chunk| chunk["type"] == "text-delta");
    deltas
        .map(|chunk| chunk["delta"].as_str().unwrap())
        .collect()
}

#[test]
fn claude_permission_requests_are_answered_by_the_policy() {
    for (policy, behavior) in [("approve", "allow"), ("deny", "deny")] {
        let mut s = claude::ready_with(&["--permissions", policy], &json!({}));
        let ask = json!({"tool_name": "Bash", "tool_use_id": "t1", "input": {"command": "ls"},
            "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]});
        let turn = s.steps(&json!([{ "ask": ask }]));
        let approved = behavior == "allow";
        assert_eq!(turn.one("tool-approval-response")["approved"], approved);
        assert_eq!(turn.summary["isError"], false);
        let answers = answers(&s.finish().log);
        assert_eq!(answers.len(), 1);
        let answer = &answers[0]["response"];
        assert_eq!(answer["behavior"], behavior, "{policy}");
        if approved {
            assert_eq!(answer["updatedInput"], json!({"command": "ls"}));
        }
        // A single approval adds no lasting permission.
        assert_eq!(answer.get("updatedPermissions"), None);
        assert_eq!(answer.get("interrupt"), None);
    }
}

#[test]
fn a_cancel_that_is_not_answered_ends_the_process_of_the_session() {
    let args = ["--timeout", "cancel=300ms"];
    let mut s = claude::ready_with(&args, &json!({"control": {"interrupt": []}}));
    s.ensure("other");
    let before = s.processes();
    let steps = json!([{"delta": "x"}, {"wait": "never"}]);
    let id = s.send_steps("default", &steps);
    s.await_chunk("default", |chunk| chunk["delta"] == "x");
    s.call("session/cancel", &json!({}));
    let waits = s.send_prompt("default", "next");
    let turn = s.turn(&id);
    assert_eq!(turn.summary["errors"][0]["kind"], "timeout");
    // A new process continues the session; the process of the other session still runs.
    let next = s.turn(&waits);
    assert_eq!(next.summary["text"], "next");
    assert_eq!(next.one("data-recovery")["data"]["memory"], "kept");
    let id = s.send_prompt("other", "alive");
    assert_eq!(s.turn(&id).summary["text"], "alive");
    let after = s.processes();
    assert_eq!((before.len(), after.len()), (2, 3));
    assert!(claude::args(&after[2], "--resume").len() == 1, "{after:?}");
}

#[test]
fn background_turn_of_claude_is_a_separate_message() {
    let mut s = claude::ready(&json!({}));
    let turn = s.steps(&json!([{"say": "asked"}, {"background": [{"say": "a task ended"}]}]));
    assert_eq!(turn.summary["text"], "asked");
    // A background turn ends with its result, not after a pause.
    assert_eq!(text(&s.unprompted("default")), "a task ended");
    let turn = s.prompt("next");
    assert_eq!(turn.summary["text"], "next");
    assert_eq!(turn.summary["cost"], 0.25);
}

#[test]
fn settings_are_restored_in_a_new_process() {
    let mut s = claude::ready(&json!({}));
    s.prompt("one");
    s.call("session/setModel", &json!({"model": "Haiku"}));
    let set = s.call("session/setMode", &json!({"mode": "plan"}));
    assert_eq!(set["state"]["modes"]["currentModeId"], "plan");
    assert_eq!(set["state"]["models"]["currentModelId"], "haiku");
    s.steps(&json!([{"exit": 1}]));
    let turn = s.prompt("again");
    assert_eq!(turn.summary["text"], "again");
    let receipt = &turn.one("data-recovery")["data"];
    assert_eq!(receipt["rung"], "resume");
    assert_eq!(receipt["notRestored"], json!([]));
    let state = s.ensure("default")["state"].clone();
    assert_eq!(state["models"]["currentModelId"], "haiku");
    let log = s.finish().log;
    let second = claude::processes(&log)[1]["pid"].clone();
    let log: Vec<Value> = log
        .into_iter()
        .filter(|line| line["pid"] == second)
        .collect();
    assert_eq!(requests(&log, "set_model")[0]["model"], "haiku");
    assert_eq!(requests(&log, "set_permission_mode")[0]["mode"], "plan");
    // The system prompt of this process does not have the instruction for plan mode.
    let prompts: Vec<String> = log
        .iter()
        .filter(|line| is_user(line))
        .map(|line| line["got"]["message"]["content"].to_string())
        .collect();
    assert_eq!(prompts.len(), 1);
    assert!(prompts[0].contains("You are planning."), "{}", prompts[0]);
}

#[test]
fn cleared_claude_session_continues_under_a_new_id() {
    let new = "11111111-1111-4111-8111-111111111111";
    let mut s = claude::ready(&json!({}));
    s.prompt("before");
    assert_eq!(s.prompt("before").summary["cost"], 0.25);
    let turn = s.steps(&json!([{ "clear": new }]));
    assert_eq!(turn.summary["isError"], false, "{}", turn.summary);
    assert_eq!(s.ensure("default")["agentSessionId"], new);
    let turn = s.prompt("after");
    assert_eq!(turn.summary["text"], "after");
    assert_eq!(turn.summary["cost"], 0.25);
    s.steps(&json!([{"exit": 1}]));
    assert_eq!(s.prompt("again").summary["cost"], 0.25);
    let mut s = s.restart_in(&[], &[("CLAUDE_CLI_PATH", crate::harness::FAKE_CLAUDE)]);
    s.initialize();
    s.connect_claude(&json!({}));
    assert_eq!(s.ensure("default")["recovery"]["rung"], "resume");
    assert_eq!(s.prompt("later").summary["cost"], 0.25);
    let processes = s.processes();
    assert_eq!(processes.len(), 3);
    for process in &processes[1..] {
        assert_eq!(args(process, "--resume="), [new]);
    }
}

/// A prompt that overlaps with a background turn.
#[test]
fn background_text_during_a_retry_pause_is_a_separate_message() {
    let mut s = claude::ready(&json!({}));
    let overloaded = json!({"is_error": true, "result": "API Error: 529 mock 529.", "api_error_status": 529,
        "stop_reason": "stop_sequence", "terminal_reason": "api_error"});
    let first = s.world.dir.join("first");
    let background = json!([{"delta": "bg"}, {"wait": "set_model"}]);
    let steps = json!([{"once": [first, [{"background": background}, {"result": overloaded}]]}, {"say": "good"}]);
    let params = json!({"message": steps.to_string(), "retry": true});
    let id = s.send("session/prompt", &params);
    s.await_log(2, |line| line["got"]["type"] == "user");
    s.call("session/setModel", &json!({"model": "haiku"}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["text"], "good");
    assert_eq!(turn.summary["attempts"], 2);
    assert_eq!(turn.summary["isError"], false);
    assert_eq!(text(&s.unprompted("default")), "bg");
    let log = s.finish().log;
    let sent: Vec<_> = log.iter().filter(|l| l["got"]["type"] == "user").collect();
    assert_ne!(sent[0]["got"]["uuid"], sent[1]["got"]["uuid"]);
}
