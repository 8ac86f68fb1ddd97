//! One-shot calls of the real binary: `execute`, and the options of `acpipe run` that scripts use.

use crate::harness::calls;
use crate::harness::run::Run;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, say, tool};
use serde_json::{Value, json};

fn schema() -> Value {
    json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
}

/// Starts a connected server without a session.
fn server(args: &[&str], script: &Value) -> Server {
    let mut s = Server::initialized(args);
    s.connect(script);
    s
}

fn execute(s: &mut Server, params: &Value) -> Turn {
    let id = s.send("execute", params);
    s.turn(&id)
}

/// Returns the names of the files of stored sessions.
fn stored(s: &Server) -> Vec<String> {
    let mut left = vec![s.world.dir.clone()];
    let mut found = Vec::new();
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                left.push(path);
            } else if path.extension().is_some_and(|end| end == "jsonl") {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn execute_streams_its_turn_and_leaves_nothing() {
    let hello =
        json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"close": {}}}});
    let script = json!({"initialize": [[{ "reply": hello }]]});
    let mut s = server(&[], &script);
    let turn = execute(
        &mut s,
        &json!({"message": "go", "context": {"branch": "main"}}),
    );
    let summary = &turn.summary;
    assert!(
        summary["text"].as_str().unwrap().ends_with("go"),
        "{summary}"
    );
    assert!(turn.text().contains("\"branch\": \"main\""), "{summary}");
    let id = summary["sessionId"].as_str().unwrap();
    assert!(id.starts_with("execute-"), "{id}");
    assert_eq!(s.call("session/list", &json!({}))["sessions"], json!([]));
    let gone = s.call_error("session/get", &json!({"sessionId": id}));
    assert_eq!(gone["data"]["kind"], "sessionNotFound");
    s.await_agent_call("session/close");
    assert_eq!(stored(&s), [""; 0]);
    // The process of the agent stays.
    execute(&mut s, &json!({"message": "again"}));
    assert_eq!(calls(&s.world.log(), "initialize").len(), 1);
    assert_eq!(calls(&s.world.log(), "session/new").len(), 2);
}

#[test]
fn execute_asks_for_permissions_like_a_session() {
    let call = json!({"toolCallId": "t", "title": "Write a", "kind": "edit"});
    let pending = json!({"title": "Write a", "kind": "edit", "status": "pending"});
    let options = [("y", "allow_once"), ("n", "reject_once")];
    let steps = json!([
        tool("t", &pending),
        ask(&call, &options),
        say("done"),
        end("end_turn")
    ]);
    let mut s = Server::start(&["--permissions", "ask"]);
    let can = json!({"permissions": true});
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": can}),
    );
    s.connect(&json!({"session/prompt": [steps]}));
    let id = s.send("execute", &json!({"message": "go", "sessionId": "mine"}));
    let (asked, params) = s.asked("permission/request");
    assert_eq!(params["sessionId"], "mine");
    s.reply(
        &asked,
        &json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
    );
    let turn = s.turn(&id);
    assert_eq!(turn.summary["text"], "done");
    let decided = turn.of("data-permission").last().unwrap()["data"].clone();
    assert_eq!(decided["outcome"]["optionId"], "y");
}

#[test]
fn execute_is_tried_again_after_a_crash() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("crashed");
    let crash = json!({"once": {"mark": mark, "steps": [say("half"), {"exit": 3}]}});
    s.connect(&json!({"session/prompt": [[crash, say("whole"), end("end_turn")]]}));
    s.waive("agent/state");
    let turn = execute(&mut s, &json!({"message": "go"}));
    let summary = &turn.summary;
    assert_eq!(
        (&summary["text"], &summary["attempts"], &summary["isError"]),
        (&json!("whole"), &json!(2), &json!(false))
    );
    let notice = &turn.one("data-notice")["data"];
    assert_eq!(
        notice["title"],
        "The agent failed (agentExited); trying again in 1 s"
    );
    assert!(summary["durationMs"].as_u64().unwrap() >= 1000, "{summary}");
}

#[test]
fn limit_of_an_agent_in_the_configuration_applies_to_execute() {
    let talks = json!({"repeat": {"times": 800, "until": "session/cancel", "steps": [say("x"), {"sleep": 5}]}});
    let script = json!({"session/prompt": [[talks, {"wait": "session/cancel"}, end("cancelled")]]});
    let world = crate::harness::World::new();
    let script = world.script(&script);
    let agent = crate::harness::FAKE_AGENT;
    let config =
        format!("[agents.slow]\ncommand = {agent:?}\nargs = [{script:?}]\ntimeout = \"300ms\"\n");
    let config = world.file("config.toml", &config);
    let framing = crate::harness::server::Framing::Lines;
    let mut s = Server::launch(world, &["--config", &config], framing, &[]);
    s.initialize();
    s.waive("agent/state");
    let turn = execute(&mut s, &json!({"agent": "slow", "message": "go"}));
    let error = &turn.summary["errors"][0];
    assert_eq!(
        (&error["kind"], &error["data"]["waitedMs"]),
        (&json!("timeout"), &json!(300))
    );
}

#[test]
fn structured_answer_is_validated_and_corrected_once() {
    let answers = json!({"session/prompt": [
        [say("{\"b\": \"wrong\"}"), end("end_turn")],
        [say("Sorry:\n```json\n{\"a\": 1}\n```"), end("end_turn")],
        [say("{\"b\": \"wrong\"}"), end("end_turn")],
    ]});
    let mut s = server(&[], &answers);
    let wish = json!({"message": "go", "outputSchema": schema()});
    let turn = execute(&mut s, &wish);
    assert_eq!(turn.summary["structuredOutput"], json!({"a": 1}));
    assert_eq!(turn.summary["attempts"], 2);
    assert_eq!(turn.one("data-structured-output")["data"], json!({"a": 1}));
    let turn = execute(&mut s, &wish);
    let error = &turn.summary["errors"][0];
    assert_eq!(error["kind"], "schemaMismatch");
    assert_eq!(
        error["data"]["violations"],
        json!([{"path": "", "message": "\"a\" is a required property"}])
    );
    assert_eq!(error["data"]["raw"], "{\"b\":\"wrong\"}");
    assert_eq!(turn.summary["text"], "{\"b\": \"wrong\"}");
}

#[test]
fn invalid_schema_is_refused_before_the_agent_starts() {
    let mut s = Server::initialized(&[]);
    let wrong = json!({"message": "x", "agent": "demo", "outputSchema": {"type": "int"}});
    let error = s.call_error("execute", &wrong);
    assert_eq!(error["data"]["field"], "outputSchema");
    let options =
        json!({"agent": "demo", "options": {"outputSchema": {"$ref": "http://127.0.0.1:9/"}}});
    let error = s.call_error("session/ensure", &options);
    assert_eq!(error["data"]["field"], "options.outputSchema");
}

#[test]
fn run_takes_context_and_a_schema_from_a_file() {
    let world = crate::harness::World::new();
    let file = world.file("schema.json", &schema().to_string());
    let run = |answer: &str| {
        let script = json!({"session/prompt": [[say(answer), end("end_turn")]]});
        let args = [
            "run",
            "-o",
            "json",
            "--output-schema",
            &file,
            "--context",
            "branch=main",
        ];
        Run::new(&[&args[..], &["--context", "ticket=7", "go"]].concat())
            .script(&script)
            .go()
    };
    let summary = run("{\"a\": 1}").expect(0).json();
    assert_eq!(summary["structuredOutput"], json!({"a": 1}));
    let failed = run("{\"a\": \"x\"}").expect(65);
    assert_eq!(failed.json()["errors"][0]["kind"], "schemaMismatch");
    assert!(
        failed.stderr.contains("/a: value is not of type"),
        "{}",
        failed.stderr
    );
    // An agent without a script echoes the prompt.
    let echo = Run::new(&[
        "run",
        "--context",
        "branch=main",
        "--context",
        "ticket=7",
        "go",
    ])
    .script(&json!({}))
    .go()
    .expect(0);
    assert!(
        echo.text()
            .contains("\"branch\": \"main\",\n  \"ticket\": \"7\""),
        "{}",
        echo.text()
    );
    let wrong = Run::new(&["run", "--context", "branch", "go"])
        .go()
        .expect(2);
    assert!(wrong.stderr.contains("branch=VALUE"), "{}", wrong.stderr);
}
