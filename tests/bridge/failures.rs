//! Turns and runs that fail without an explicit error of the agent.

use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, say, think, tool};
use crate::harness::{FAKE_AGENT, claude};
use acpipe_core::output_schema::OutputSchema;
use serde_json::{Value, json};

const EMPTY: &str = "The agent ended its turn without any output.";

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
fn a_turn_without_any_output_fails() {
    let blank = say(" \n");
    let usage = json!({"update": {"sessionUpdate": "usage_update", "used": 1, "size": 2}});
    let runs = json!([
        [end("end_turn")],
        [blank, usage, info(&json!({"x": 1})), end("end_turn")]
    ]);
    let script = json!({"session/prompt": runs});
    let mut s = Server::ready(&script);
    s.waive("session/state");
    for _ in 0..2 {
        let turn = s.prompt("go");
        let error = &turn.summary["errors"][0];
        assert_eq!(
            (&error["kind"], &error["message"]),
            (&json!("emptyTurn"), &json!(EMPTY))
        );
        assert_eq!(turn.summary["stopReason"], "error");
        assert_eq!(
            (&turn.last()["type"], &turn.last()["errorText"]),
            (&json!("error"), &json!(EMPTY))
        );
    }
    let outcome = Run::new(&["run", "go"]).script(&script).go().expect(1);
    assert!(outcome.stderr.contains(EMPTY), "{}", outcome.stderr);
}

#[test]
fn any_visible_update_counts_as_output() {
    let plan = json!({"update": {"sessionUpdate": "plan", "entries": []}});
    let notice = json!({"update": {"sessionUpdate": "notice", "title": "t"}});
    let image = json!({"update": {"sessionUpdate": "agent_message_chunk",
        "content": {"type": "image", "mimeType": "image/png", "data": "aWNvbg=="}}});
    let done = tool("t", &json!({"title": "x", "status": "completed"}));
    let asks = ask(&json!({"toolCallId": "q"}), &[("y", "allow_once")]);
    let shown = [say("x"), think("x"), plan, notice, image, done, asks];
    let mut runs: Vec<Vec<Value>> = shown
        .iter()
        .map(|step| vec![step.clone(), end("end_turn")])
        .collect();
    // Other stop reasons explain a missing answer.
    let stops = ["max_tokens", "refusal", "cancelled", "novel"];
    runs.extend(stops.map(|stop| vec![end(stop)]));
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    for run in &runs {
        assert_eq!(s.prompt("go").summary["isError"], false, "{run:?}");
    }
}

#[test]
fn slash_command_turn_may_be_empty() {
    let commands = json!({"update": {"sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "compact", "description": ""}]}});
    let listed = [commands, say("listed"), end("end_turn")];
    let runs = json!([[end("end_turn")], listed, [end("end_turn")]]);
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    s.waive("session/state");
    // Until the agent lists its commands, any text in the form of a command counts as one.
    for (prompt, fails) in [
        ("/novel", false),
        ("go", false),
        ("/compact now", false),
        ("/novel", true),
        ("/a/path", true),
    ] {
        assert_eq!(s.prompt(prompt).summary["isError"], fails, "{prompt}");
    }
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
fn a_second_attempt_without_output_fails_too() {
    let overloaded = json!({"error": {"code": -32603, "message": "Overloaded"}});
    let mut s = Server::ready(
        &json!({"session/prompt": [[say("Overloaded"), overloaded], [end("end_turn")]]}),
    );
    let turn = send(&mut s, &json!({"message": "go", "retry": true}));
    assert_eq!(turn.summary["attempts"], 2);
    assert_eq!(turn.summary["errors"][0]["kind"], "emptyTurn");

    // A resumed session of Claude Code behaves likewise.
    let mut s = claude::ready(&json!({}));
    s.prompt("one");
    let mut s = s.restart_in(&[], &[("CLAUDE_CLI_PATH", crate::harness::FAKE_CLAUDE)]);
    s.initialize();
    s.connect_claude(&json!({}));
    s.ensure("default");
    let failed = json!({"is_error": true, "stop_reason": null, "terminal_reason": "api_error",
        "api_error_status": 529, "result": "API Error: 529", "num_turns": 1});
    let turn = s.steps(&json!([{ "result": failed }]));
    assert_eq!(turn.summary["errors"][0]["kind"], "session");
    let turn = s.steps(&json!([{"result": {"num_turns": 0, "result": ""}}]));
    assert_eq!(turn.summary["isError"], true, "{}", turn.summary);
    assert_eq!(turn.summary["errors"][0]["kind"], "emptyTurn");
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
