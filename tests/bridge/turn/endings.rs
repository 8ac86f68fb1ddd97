//! Endings of turns: stop reasons, unusual answers and errors.

use super::play_all;
use crate::harness::steps::{end, say, tool, tool_change};
use serde_json::{Value, json};

#[test]
fn every_stop_reason_has_a_final_chunk() {
    /// (stop reason, `finishReason`, type of the last chunk, `errorReason`, kind of the error)
    type Case = (
        Value,
        &'static str,
        &'static str,
        Option<&'static str>,
        Option<&'static str>,
    );
    let cases: &[Case] = &[
        (json!("end_turn"), "stop", "finish", None, None),
        (json!("max_tokens"), "length", "finish", None, None),
        (
            json!("max_turn_requests"),
            "length",
            "finish",
            Some("max_turns limit reached"),
            Some("maxTurns"),
        ),
        (json!("refusal"), "content-filter", "finish", None, None),
        (json!("cancelled"), "other", "abort", None, None),
        (json!("tired"), "other", "finish", None, None),
        (json!(""), "other", "finish", None, None),
        (json!("error"), "error", "error", None, Some("session")),
        (json!("Failed"), "error", "error", None, Some("session")),
        (json!(5), "error", "error", None, Some("malformed")),
        (json!(null), "error", "error", None, Some("malformed")),
    ];
    let runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(reason, ..)| vec![say("x"), json!({"reply": {"stopReason": reason}})])
        .collect();
    for (turn, (reason, finish, last, error_reason, kind)) in play_all(&runs).iter().zip(cases) {
        let s = &turn.summary;
        assert_eq!(s["finishReason"], *finish, "{reason}");
        let told = reason.as_str().filter(|_| *finish != "error");
        assert_eq!(s["stopReason"], told.unwrap_or("error"), "{reason}");
        assert_eq!(turn.last()["type"], *last, "{reason}");
        assert_eq!(s["errorReason"], json!(error_reason), "{reason}");
        assert_eq!(s["isError"], kind.is_some(), "{reason}");
        assert_eq!(s["errors"][0]["kind"], json!(kind), "{reason}");
        assert_eq!(s["text"], "x", "{reason}");
    }
}

#[test]
fn unusual_prompt_answers_end_the_turn() {
    let cases = [
        r#"{"jsonrpc":"2.0","id":{id},"error":null,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn"},"extra":[1]}"#,
        r#"{"id":{id},"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":"{id}","result":{"stopReason":"end_turn"}}"#,
        r#"{"result":{"stopReason":"end_turn"},"jsonrpc":"1.0","id":{id}}"#,
    ];
    let runs = cases.map(|line| vec![say("x"), json!({"line": line})]);
    for (turn, run) in play_all(&runs).iter().zip(&runs) {
        assert_eq!(turn.summary["stopReason"], "end_turn", "{run:?}");
        assert_eq!(turn.summary["isError"], false, "{run:?}");
        assert_eq!(turn.last()["type"], "finish", "{run:?}");
    }
}

#[test]
fn an_answer_without_a_stop_reason_fails_the_turn() {
    let results = [
        "null",
        "{}",
        "[]",
        "5",
        "true",
        r#""nonsense""#,
        r#"{"stop":"end_turn"}"#,
    ];
    let runs = results.map(|result| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{{id}},"result":{result}}}"#);
        vec![say("kept"), json!({ "line": line })]
    });
    for (turn, result) in play_all(&runs).iter().zip(results) {
        let summary = &turn.summary;
        let error = &summary["errors"][0];
        assert_eq!(error["kind"], "malformed", "{result}");
        assert_eq!(error["data"]["raw"], result);
        assert_eq!(
            (&summary["isError"], &summary["stopReason"]),
            (&json!(true), &json!("error"))
        );
        assert_eq!(summary["text"], "kept", "{result}");
        assert_eq!(turn.last()["type"], "error", "{result}");
    }
}

#[test]
fn agent_errors_end_the_turn_after_its_text() {
    // (error, kind, part of the message)
    let cases = [
        (
            json!({"code": -32603, "message": "Internal error"}),
            "session",
            "Internal error",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": {"details": "rate limit of org x"}}),
            "session",
            "rate limit of org x",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": {"message": "deep reason"}}),
            "session",
            "deep reason",
        ),
        (
            json!({"code": -32603, "message": "Internal error", "data": "just text"}),
            "session",
            "just text",
        ),
        (
            json!({"code": -32603, "message": "connect ECONNREFUSED 127.0.0.1:443"}),
            "network",
            "ECONNREFUSED",
        ),
        (
            json!({"code": -32603, "message": "x", "data": {"details": "fetch failed"}}),
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
    ];
    let runs: Vec<Vec<Value>> = cases
        .iter()
        .map(|(error, ..)| vec![say("partial"), json!({"error": error})])
        .collect();
    for (turn, (error, kind, part)) in play_all(&runs).iter().zip(&cases) {
        let s = &turn.summary;
        assert_eq!(s["errors"][0]["kind"], *kind, "{error}");
        assert_eq!(s["errors"][0]["data"]["kind"], Value::Null, "{error}");
        let message = s["errors"][0]["message"].as_str().unwrap();
        assert!(message.contains(part), "{error}: {message}");
        assert_eq!(s["text"], "partial", "{error}");
        assert_eq!(s["stopReason"], "error", "{error}");
        assert_eq!(s["errorReason"], Value::Null, "{error}");
        assert_eq!(turn.last()["type"], "error", "{error}");
        assert_eq!(turn.last()["errorText"], message);
        let metadata = turn.one("message-metadata");
        assert_eq!(
            metadata["messageMetadata"]["acp"]["error"]["kind"], *kind,
            "{error}"
        );
    }
}

#[test]
fn error_reason_depends_on_the_failure() {
    let failed = [
        tool(
            "t",
            &json!({"title": "Run", "name": "bash", "status": "in_progress", "rawInput": {}}),
        ),
        tool_change("t", &json!({"status": "failed"})),
    ];
    let error = json!({"error": {"code": -32603, "message": "x"}});
    let with = |more: &[Value]| [&failed[..], more].concat();
    let runs = [
        with(std::slice::from_ref(&error)),
        // The agent continued after the failed tool, so that was not the reason.
        with(&[say("never mind"), error.clone()]),
        with(&[end("end_turn")]),
        with(&[end("max_turn_requests")]),
    ];
    let wanted = [
        json!("tool execution failed: bash"),
        Value::Null,
        Value::Null,
        json!("max_turns limit reached"),
    ];
    for (turn, wanted) in play_all(&runs).iter().zip(wanted) {
        assert_eq!(turn.summary["errorReason"], wanted, "{}", turn.summary);
    }
}
