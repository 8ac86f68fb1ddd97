//! Prompts that are sent again: after a transient error, and after a restored session turns out to be
//! missing.

use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, think, tool};
use crate::harness::{FAKE_AGENT, calls};
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
fn a_prompt_is_sent_three_times_at_most() {
    let busy = json!([fails("Overloaded")]);
    let mut s = restored_session(&json!([gone(), busy, busy, hello()]), None, &json!({}));
    s.ensure("default");
    let turn = send(&mut s, &json!({"retry": true}));
    assert_eq!(turn.summary["attempts"], 3);
    assert_eq!(turn.summary["errors"][0]["message"], UNAVAILABLE);
    assert_eq!(turn.summary["metadata"]["recovery"]["rung"], "new");
}
