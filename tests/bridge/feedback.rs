//! Feedback that the user gives with an answer, for agents whose protocol has no field for it.

use crate::harness::server::Server;
use crate::harness::steps::{ask, end, say};
use serde_json::{Value, json};

const OPTIONS: &[(&str, &str)] = &[("y", "allow_once"), ("n", "reject_once")];

fn server() -> Server {
    let call = json!({"toolCallId": "t", "title": "npm test", "kind": "execute", "rawInput": {"command": "npm test"}});
    let first = json!([ask(&call, OPTIONS), end("end_turn")]);
    let next = json!([say("ok"), end("end_turn")]);
    let mut server = Server::start(&["--permissions", "ask"]);
    server.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"permissions": true, "questions": true}}),
    );
    server.connect(&json!({"session/prompt": [first, next]}));
    server.ensure("default");
    server
}

/// Returns the texts of each prompt that the agent received.
fn prompts(log: &[Value]) -> Vec<Vec<&str>> {
    let prompts = log.iter().filter(|m| m["method"] == "session/prompt");
    prompts
        .map(|m| {
            let parts = m["params"]["prompt"].as_array().unwrap();
            parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect()
        })
        .collect()
}

#[test]
fn undelivered_feedback_is_stored_and_shown() {
    let refused = json!({"outcome": "selected", "optionId": "n", "message": "only the unit tests"});
    let cancelled = json!({"outcome": "cancelled", "message": "not now"});
    for outcome in [refused, cancelled] {
        let mut server = server();
        let prompt = server.send_prompt("default", "go");
        let (id, _) = server.asked("permission/request");
        server.reply(&id, &json!({ "outcome": outcome }));
        let turn = server.turn(&prompt);
        let data = &turn.of("data-permission").last().unwrap()["data"];
        assert_eq!(data["feedback"], outcome["message"]);
        assert_eq!(data["feedbackDelivered"], false);
        let response = turn.of("tool-approval-response");
        assert_eq!(response[0]["reason"], outcome["message"]);
        let kept = &turn.summary["metadata"]["undeliveredFeedback"][0];
        assert_eq!(kept["feedback"], outcome["message"]);
        let flags = (&kept["nextPrompt"], &kept["approved"]);
        assert_eq!(flags, (&json!(false), &json!(false)));
        server.prompt("again");
        assert_eq!(prompts(&server.finish().log), [["go"], ["again"]]);
    }
}

#[test]
fn feedback_is_sent_with_the_next_prompt_on_request() {
    let mut server = server();
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    let outcome = json!({"outcome": "selected", "optionId": "n", "message": "only the unit tests",
        "feedbackDelivery": "nextPrompt"});
    server.reply(&id, &json!({ "outcome": outcome }));
    let turn = server.turn(&prompt);
    let kept = &turn.summary["metadata"]["undeliveredFeedback"];
    assert_eq!(kept[0]["nextPrompt"], true);
    let turn = server.prompt("again");
    let notices = turn.of("data-notice");
    let title = "Your messages to earlier answers are sent with this prompt";
    assert_eq!(notices[0]["data"]["title"], title);
    server.prompt("once more");
    let log = server.finish().log;
    let words = "I refused this tool call: npm test\n\nonly the unit tests";
    let want = [vec!["go"], vec![words, "again"], vec!["once more"]];
    assert_eq!(prompts(&log), want);
}
