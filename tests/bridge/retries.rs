//! Prompts that are sent again: after a transient error, and after a restored session turns out to be
//! missing.

use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, think, tool};
use crate::harness::{FAKE_AGENT, LIMIT, calls};
use serde_json::{Value, json};
use std::time::Instant;

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
fn lasting_transient_error_has_a_message_for_users() {
    let mut s = Server::ready(&json!({"session/prompt": [overloaded()]}));
    let turn = send(&mut s, &json!({"retry": true}));
    let summary = &turn.summary;
    assert_eq!((prompts(&s), &summary["attempts"]), (2, &json!(2)));
    assert_eq!(summary["text"], UNAVAILABLE);
    assert_eq!(turn.last()["errorText"], UNAVAILABLE);
    let error = &summary["errors"][0];
    assert_eq!(
        (&error["kind"], &error["message"]),
        (&json!("session"), &json!(UNAVAILABLE))
    );
    let cause = &error["data"]["cause"];
    assert_eq!(cause["kind"], "session");
    assert!(cause["message"].as_str().unwrap().contains("529 mock"));
    assert!(
        cause["data"]["raw"].as_str().unwrap().contains("-32603"),
        "{error}"
    );
}

#[test]
fn turn_is_not_retried_without_consent_or_a_transient_error() {
    let used = tool("t", &json!({"title": "x", "status": "in_progress"}));
    let error = fails("Overloaded");
    let half = say("The capital of France is");
    let lasting = fails("500 authentication_error");
    let yes = json!({"retry": true});
    // (steps of the agent, permissions of the client, part of the message, text of the summary)
    let cases = [
        (vec![error.clone()], json!({}), "Overloaded", ""),
        (
            vec![error.clone()],
            json!({"retryAfterOutput": true}),
            "Overloaded",
            "",
        ),
        (vec![used, error.clone()], yes.clone(), UNAVAILABLE, ""),
        (
            vec![half, error],
            yes.clone(),
            UNAVAILABLE,
            "The capital of France is",
        ),
        (vec![lasting], yes.clone(), "authentication_error", ""),
        (vec![fails("took 1500 ms")], yes, "took 1500 ms", ""),
    ];
    for (steps, allowed, message, text) in cases {
        let mut s = Server::ready(&json!({"session/prompt": [steps]}));
        let turn = send(&mut s, &allowed);
        assert_eq!((prompts(&s), &turn.summary["attempts"]), (1, &json!(1)));
        let told = turn.summary["errors"][0]["message"].as_str().unwrap();
        assert!(told.contains(message), "{told}");
        assert_eq!(turn.summary["text"], text);
        assert!(turn.of("data-notice").is_empty());
    }
    // The text of a successful answer is not examined.
    let mut s =
        Server::ready(&json!({"session/prompt": [[say("529 overloaded"), end("end_turn")]]}));
    let turn = send(&mut s, &json!({"retry": true}));
    assert_eq!(turn.summary["text"], "529 overloaded");
    assert_eq!(turn.summary["attempts"], 1);
}

#[test]
fn only_service_errors_are_retried() {
    let broken = r#"{"jsonrpc":"2.0","id":{id},"result":{"note":"overloaded""#;
    let sign_in = json!({"error": {"code": -32000, "message": "overloaded"}});
    // (steps of the agent, kind of the error, number of prompts)
    for (steps, kind, sent) in [
        (vec![fails("overloaded")], "session", 2),
        (
            vec![fails("overloaded: connect ECONNREFUSED")],
            "network",
            2,
        ),
        (vec![sign_in], "authRequired", 1),
        (vec![json!({"line": broken})], "malformed", 1),
        (
            vec![json!({"stderr": "overloaded"}), json!({"exit": 1})],
            "agentExited",
            1,
        ),
    ] {
        let mut s = Server::ready(&json!({"session/prompt": [steps]}));
        let turn = send(&mut s, &json!({"retry": true}));
        let error = &turn.summary["errors"][0];
        assert_eq!(error["kind"], kind, "{error}");
        assert!(error.to_string().contains("overloaded"), "{error}");
        assert_eq!(prompts(&s), sent, "{kind}");
        if kind == "agentExited" {
            s.agent_states(&["disconnected"]);
        }
    }
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
fn cancel_ends_a_retry_pause_at_once() {
    let mut s = Server::ready(
        &json!({"session/prompt": [[fails("Overloaded")], [say("back"), end("end_turn")]]}),
    );
    let id = s.send("session/prompt", &json!({"message": "go", "retry": true}));
    s.await_chunk("default", |c| c["type"] == "data-notice");
    let other = s.call("session/cancel", &json!({"turnId": "another"}));
    assert_eq!(other["cancelled"], false);
    assert_eq!(s.call("session/cancel", &json!({}))["cancelled"], true);
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["metadata"]["cancelRequested"], true);
    assert_eq!((prompts(&s), &turn.summary["attempts"]), (1, &json!(1)));
    // The agent has nothing to cancel, and would apply a cancel to the next prompt.
    assert_eq!(s.prompt("again").summary["text"], "back");
    assert!(calls(&s.world.log(), "session/cancel").is_empty());
}

#[test]
fn agent_exit_during_a_retry_pause_ends_the_turn() {
    let mut s = Server::ready(&json!({
        "session/prompt": [[fails("Overloaded")]],
        "session/new": [[{"default": true}], [{"exit": 3}]],
    }));
    let id = s.send("session/prompt", &json!({"message": "go", "retry": true}));
    s.await_chunk("default", |c| c["type"] == "data-notice");
    s.call_error("session/ensure", &json!({"sessionId": "other"}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["errors"][0]["kind"], "agentExited");
    s.agent_states(&["disconnected"]);
}

#[test]
fn run_retries_unless_disabled() {
    let script = json!({"session/prompt": [overloaded(), [say("hello"), end("end_turn")]]});
    let run = |args: &[&str]| Run::new(&[&["run"], args, &["go"]].concat()).script(&script);
    let outcome = run(&["-o", "json"]).go().expect(0);
    assert_eq!(outcome.json()["text"], "hello");
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

/// Starts an agent whose session is restored after a reconnection. It then has these runs of
/// `session/prompt`, and `more` replaces parts of its script.
fn restored_session(prompts: &Value, list: Option<Value>, more: &Value) -> Server {
    let mut script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}, "list": list.as_ref().map(|_| json!({}))},
        }}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[say("first"), end("end_turn")]],
    });
    let mut s = Server::initialized(&[]);
    let path = s.world.file("agent.json", &script.to_string());
    let agent = json!({"command": FAKE_AGENT, "args": [path]});
    s.call("agent/connect", &agent);
    s.ensure("default");
    assert_eq!(s.prompt("one").summary["text"], "first");
    s.call("agent/disconnect", &json!({}));
    script["session/prompt"] = prompts.clone();
    script["session/new"] = json!([[{"reply": {"sessionId": "fresh"}}]]);
    script["session/list"] = list.unwrap_or(json!([[{"reply": {"sessions": []}}]]));
    for (method, runs) in more.as_object().unwrap() {
        script[method] = runs.clone();
    }
    s.world.file("agent.json", &script.to_string());
    s.call("agent/connect", &agent);
    s.agent_states(&[
        "starting",
        "ready",
        "stopping",
        "disconnected",
        "starting",
        "ready",
    ]);
    s
}

fn gone() -> Value {
    json!([{"error": {"code": -32002, "message": "Resource not found"}}])
}

fn hello() -> Value {
    json!([say("hello"), end("end_turn")])
}

#[test]
fn missing_session_is_replaced_within_the_turn() {
    let missing = json!([[{"reply": {"sessions": [{"sessionId": "a"}], "nextCursor": "2"}}],
        [{"reply": {"sessions": [{"sessionId": "b"}]}}]]);
    let refusal = json!([end("refusal")]);
    let cases = [
        (gone(), None, "Resource not found"),
        (
            refusal,
            Some(missing),
            "its list of sessions does not contain the session",
        ),
    ];
    for (answer, list, why) in cases {
        let mut s = restored_session(&json!([answer, hello(), hello()]), list, &json!({}));
        assert_eq!(s.ensure("default")["recovery"]["rung"], "resume");
        let turn = s.prompt("two");
        let summary = &turn.summary;
        assert_eq!(
            (&summary["text"], &summary["attempts"], &summary["isError"]),
            (&json!("hello"), &json!(2), &json!(false))
        );
        let recovery = &summary["metadata"]["recovery"];
        assert_eq!(
            (
                &recovery["rung"],
                &recovery["memory"],
                &recovery["failed"][0]["rung"]
            ),
            (&json!("new"), &json!("lost"), &json!("resume"))
        );
        let failed = recovery["failed"][0]["message"].as_str().unwrap();
        assert!(failed.contains(why), "{failed}");
        // The first receipt reports the resume, the second one its failure.
        let told = turn.of("data-recovery");
        assert_eq!(
            (&told[0]["data"]["rung"], &told[1]["data"]),
            (&json!("resume"), recovery)
        );
        let moved = turn.of("message-metadata");
        assert_eq!(moved[0]["messageMetadata"]["acp"]["sessionId"], "fresh");
        let next = s.prompt("three");
        assert!(next.of("data-recovery").is_empty());
        assert_eq!(next.summary["attempts"], 1);
        let log = s.world.log();
        let sent: Vec<&Value> = calls(&log, "session/prompt")
            .iter()
            .map(|call| &call["params"]["sessionId"])
            .collect();
        assert_eq!(sent[2..], ["fresh", "fresh"]);
    }
}

#[test]
fn refusal_without_evidence_ends_the_turn() {
    let listed = json!([[{"reply": {"sessions": [{"sessionId": "fake-1"}]}}]]);
    let silent = json!([[{"error": {"code": -32603, "message": "no list"}}]]);
    let absent = json!([[{"reply": {"sessions": []}}]]);
    let refuses = json!([end("refusal")]);
    let talks = json!([say("no"), end("refusal")]);
    for (answer, list) in [
        (&refuses, None),
        (&refuses, Some(listed)),
        (&refuses, Some(silent)),
        (&talks, Some(absent)),
    ] {
        let mut s = restored_session(&json!([answer, hello()]), list, &json!({}));
        s.ensure("default");
        let turn = s.prompt("two");
        assert_eq!(turn.summary["stopReason"], "refusal");
        assert_eq!(turn.summary["attempts"], 1);
        assert_eq!(turn.of("data-recovery").len(), 1);
        assert_eq!(s.ensure("default")["recovery"]["rung"], "live");
    }
}

#[test]
fn missing_session_is_replaced_only_if_allowed() {
    // A requested strategy permits no other.
    let mut s = restored_session(&json!([gone(), hello()]), None, &json!({}));
    s.call("session/ensure", &json!({"strategy": "resume"}));
    let turn = s.prompt("two");
    assert_eq!(turn.summary["errors"][0]["kind"], "sessionNotFound");
    assert_eq!(turn.summary["attempts"], 1);

    // A session that was not restored cannot be stale.
    let mut s = Server::ready(&json!({"session/prompt": [gone(), hello()]}));
    let turn = s.prompt("x");
    assert_eq!(turn.summary["errors"][0]["kind"], "sessionNotFound");

    // The agent began an answer, so the session existed.
    let began = json!([think("hm"), gone()[0]]);
    let mut s = restored_session(&json!([began, hello()]), None, &json!({}));
    s.ensure("default");
    assert_eq!(s.prompt("two").summary["attempts"], 1);
}

#[test]
fn failed_replacement_ends_the_turn() {
    let none = json!({"session/new": [[{"error": {"code": -32603, "message": "no more"}}]]});
    let mut s = restored_session(&json!([gone(), hello()]), None, &none);
    s.ensure("default");
    let error = &s.prompt("two").summary["errors"][0];
    assert!(
        error["message"].as_str().unwrap().contains("no more"),
        "{error}"
    );
    let before = error["data"]["before"].as_str().unwrap();
    assert!(before.contains("Resource not found"), "{error}");

    // A cancel does not wait for the new session.
    let slow =
        json!({"session/new": [[{"wait": "session/list"}, {"reply": {"sessionId": "fresh"}}]]});
    let mut s = restored_session(&json!([gone(), hello()]), None, &slow);
    s.ensure("default");
    let id = s.send_prompt("default", "two");
    s.await_chunk("default", |c| c["type"] == "data-recovery");
    let since = Instant::now();
    while calls(&s.world.log(), "session/new").len() < 2 {
        assert!(since.elapsed() < LIMIT, "no new session was asked for");
        std::thread::yield_now();
    }
    assert_eq!(s.call("session/cancel", &json!({}))["cancelled"], true);
    assert_eq!(s.turn(&id).summary["stopReason"], "cancelled");
    s.call("agent/disconnect", &json!({}));
    s.agent_states(&["stopping", "disconnected"]);
}

#[test]
fn a_prompt_is_sent_three_times_at_most() {
    let busy = json!([fails("Overloaded")]);
    let mut s = restored_session(&json!([gone(), busy, busy, hello()]), None, &json!({}));
    s.ensure("default");
    let turn = send(&mut s, &json!({"retry": true}));
    assert_eq!(turn.summary["attempts"], 3);
    assert_eq!(turn.summary["errors"][0]["message"], UNAVAILABLE);
    assert_eq!(turn.summary["metadata"]["recovery"]["rung"], "new");
}
