//! Turns and runs that fail without an explicit error of the agent.

use crate::harness::FAKE_AGENT;
use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say};
use acpipe_core::output_schema::OutputSchema;
use serde_json::{Value, json};

fn info(meta: &Value) -> Value {
    json!({"update": {"sessionUpdate": "session_info_update", "_meta": meta}})
}

fn codex(status: &str) -> Value {
    info(&json!({"codex": {"threadStatus": {"type": status}}}))
}

/// Script of an agent that reports this name, with these runs of `session/prompt`.
fn named(name: &str, prompts: &Value) -> Value {
    let hello = json!({"protocolVersion": 1, "agentInfo": {"name": name, "version": "1"}});
    json!({"initialize": [[{ "reply": hello }]], "session/prompt": prompts})
}

fn send(s: &mut Server, params: &Value) -> Turn {
    let id = s.send("session/prompt", params);
    s.turn(&id)
}

#[test]
fn failure_reported_with_the_answer_fails_the_turn() {
    let error = "unexpected status 529: Overloaded, url: http://127.0.0.1/v1";
    let failed = json!([
        codex("systemError"),
        say(&format!("{error}\n\n")),
        codex("idle"),
        end("end_turn")
    ]);
    let good = json!([codex("active"), say("hello"), end("end_turn")]);
    // The agent had failed, but continued.
    let went_on = json!([
        codex("systemError"),
        say("no"),
        codex("active"),
        say("hello"),
        end("end_turn")
    ]);
    let mute = json!([codex("systemError"), end("end_turn")]);
    let agent = "@agentclientprotocol/codex-acp";
    let mut s = Server::ready(&named(agent, &json!([failed, failed, good, went_on, mute])));
    s.waive("session/state");
    let turn = s.prompt("go");
    let told = &turn.summary["errors"][0];
    assert_eq!(
        (&told["kind"], &told["message"]),
        (&json!("session"), &json!(error))
    );
    assert_eq!(turn.last()["errorText"], error);
    assert_eq!(turn.summary["text"], format!("{error}\n\n"));

    let turn = send(&mut s, &json!({"message": "go", "retry": true}));
    let summary = &turn.summary;
    assert_eq!(
        (&summary["text"], &summary["attempts"], &summary["isError"]),
        (&json!("hello"), &json!(2), &json!(false))
    );
    assert_eq!(s.prompt("go").summary["isError"], false);
    let turn = s.prompt("go");
    let message = turn.summary["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("without a reason"), "{message}");

    // For another agent the same status has no meaning.
    let mut s = Server::ready(&named("another", &json!([failed])));
    s.waive("session/state");
    assert_eq!(s.prompt("go").summary["isError"], false);
}

#[test]
fn an_error_that_the_agent_prints_fails_a_turn_without_usage() {
    let usage = json!({"reply": {"stopReason": "end_turn", "usage": {"inputTokens": 1, "outputTokens": 1}}});
    for (agent, error, kind) in [
        (
            "Copilot",
            "Error: Failed to get response; Last error: 529 mock",
            "session",
        ),
        ("hermes-agent", "HTTP 500: mock", "session"),
        ("hermes-agent", "HTTP 502: connect ECONNREFUSED", "network"),
    ] {
        let before = say("Info: Request failed. Retrying...");
        let runs = json!([
            [before, say(error), end("end_turn")],
            [before, say(error), usage],
            [say("fine"), end("end_turn")]
        ]);
        let mut s = Server::ready(&named(agent, &runs));
        let told = s.prompt("go").summary["errors"][0].clone();
        assert_eq!(
            (&told["kind"], &told["message"]),
            (&json!(kind), &json!(error))
        );
        for _ in 0..2 {
            assert_eq!(s.prompt("go").summary["isError"], false, "{error}");
        }
    }
}

#[test]
fn a_run_that_fails_before_its_turn_prints_a_summary_like_any_other() {
    let schema = include_str!("../../schemas/turn-summary.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let schema = OutputSchema::compile(&schema).unwrap();
    let ended = json!({"start": [{"exit": 3}]});
    let refused = json!({"session/new": [[{"error": {"code": -32603, "message": "no"}}]]});
    let good = Run::new(&["run", "-o", "json", "go"])
        .agent(&[FAKE_AGENT])
        .go()
        .expect(0)
        .json();
    let runs = [
        (
            Run::new(&["run", "-o", "json", "go"]).script(&ended).go(),
            "agentStart",
        ),
        (
            Run::new(&["run", "-o", "json", "go"]).script(&refused).go(),
            "session",
        ),
        (
            Run::new(&["run", "-o", "json", "go"])
                .agent(&["no-such-agent"])
                .go(),
            "agentNotFound",
        ),
        (
            Run::new(&["run", "-o", "json", "-c", "go"])
                .agent(&[FAKE_AGENT])
                .go(),
            "sessionNotFound",
        ),
    ];
    for (outcome, kind) in runs {
        let summary = outcome.json();
        assert_eq!(schema.violations(&summary), []);
        let names = |summary: &Value| {
            let names = summary.as_object().unwrap().keys().cloned();
            names.collect::<Vec<String>>()
        };
        assert_eq!(names(&summary), names(&good));
        let error = &summary["errors"][0];
        assert_eq!(
            (&error["kind"], &summary["text"]),
            (&json!(kind), &json!(""))
        );
        assert!(
            error["data"].is_object() && summary["usage"].is_null(),
            "{summary}"
        );
    }
}
