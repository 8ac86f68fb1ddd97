//! Prompts to the Claude Code CLI that overlap with its background turns.

use crate::harness::claude;
use serde_json::{Value, json};

fn text(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|c| c["delta"].as_str()).collect()
}

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
