//! Prompts that are sent again: after a transient error, and after a restored session turns out to be
//! missing.

use crate::harness::calls;
use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, think, tool};
use serde_json::{Value, json};

const UNAVAILABLE: &str =
    "The AI service is temporarily unavailable. Please try again in a moment.";

fn fails(message: &str) -> Value {
    json!({"error": {"code": -32603, "message": message}})
}

/// Steps of a failure in the style of claude-agent-acp, which first prints the error as text.
fn overloaded() -> Vec<Value> {
    let said = "API Error: 529 mock 529.";
    vec![say(said), fails(&format!("Internal error: {said}"))]
}

fn send(s: &mut Server, more: &Value) -> Turn {
    let mut params = json!({"message": "go"});
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    let id = s.send("session/prompt", &params);
    s.turn(&id)
}

fn prompts(s: &Server) -> usize {
    calls(&s.world.log(), "session/prompt").len()
}

#[test]
fn transient_error_is_retried_after_a_pause() {
    let good = vec![say("hello"), end("end_turn")];
    let mut s = Server::ready(&json!({"session/prompt": [overloaded(), good]}));
    let turn = send(&mut s, &json!({"retry": true}));
    let summary = &turn.summary;
    assert_eq!(
        (&summary["text"], &summary["attempts"], &summary["isError"]),
        (&json!("hello"), &json!(2), &json!(false))
    );
    assert!(summary["durationMs"].as_u64().unwrap() >= 2000, "{summary}");
    let notice = &turn.one("data-notice")["data"];
    assert_eq!(
        notice["title"],
        "The AI service failed (529); retrying in 2 s"
    );
    assert!(notice["description"].as_str().unwrap().contains("529 mock"));
    let log = s.world.log();
    let sent = calls(&log, "session/prompt");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0]["params"], sent[1]["params"]);
}

#[test]
fn turn_with_output_is_retried_on_request() {
    let used = tool("t", &json!({"title": "x", "status": "in_progress"}));
    let first = vec![think("hm"), say("Let me look."), used, fails("rate_limit")];
    let good = vec![say("Done."), end("end_turn")];
    let mut s = Server::ready(&json!({"session/prompt": [first, good]}));
    let allowed = json!({"retry": true, "retryAfterOutput": true});
    let turn = send(&mut s, &allowed);
    assert_eq!(turn.summary["attempts"], 2);
    assert_eq!(turn.summary["text"], "Done.");
    assert_eq!(turn.summary["toolResults"][0]["isError"], true);
    assert_eq!(turn.last()["type"], "finish");
}

#[test]
fn printed_error_of_a_failed_turn_is_retried() {
    let bad = vec![say("Overloaded"), end("error")];
    let good = vec![say("fine"), end("end_turn")];
    let mut s = Server::ready(&json!({"session/prompt": [bad, good, bad]}));
    let turn = send(&mut s, &json!({"retry": true}));
    assert_eq!((&turn.summary["text"], prompts(&s)), (&json!("fine"), 2));
    let turn = send(&mut s, &json!({"retry": true}));
    assert_eq!(turn.summary["errors"][0]["message"], UNAVAILABLE);
    assert_eq!(
        turn.summary["errors"][0]["data"]["cause"]["data"]["raw"],
        "Overloaded"
    );
}

#[test]
fn run_retries_unless_disabled() {
    let script = json!({"session/prompt": [overloaded(), [say("hello"), end("end_turn")]]});
    let run = |args: &[&str]| Run::new(&[&["run"], args, &["go"]].concat()).script(&script);
    let outcome = run(&[]).go().expect(0);
    assert!(outcome.text().ends_with("hello\n"), "{}", outcome.text());
    assert!(
        outcome.stderr.contains("retrying in 2 s"),
        "{}",
        outcome.stderr
    );
    let outcome = run(&["--no-retry"]).go().expect(1);
    assert!(outcome.stderr.contains("529 mock"), "{}", outcome.stderr);

    let script = json!({"session/prompt": [[fails("Overloaded")]]});
    let outcome = Run::new(&["run", "go"]).script(&script).go().expect(1);
    assert!(outcome.stderr.contains(UNAVAILABLE), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("(-32603)"), "{}", outcome.stderr);
}
