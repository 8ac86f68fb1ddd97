//! One-shot calls of the real binary: `execute`, and the options of `acpipe run` that scripts use.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server, Turn};
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};

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
    let mut s = Server::initialized(&[]);
    s.connect(&script);
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
fn limit_of_an_agent_in_the_configuration_applies_to_execute() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [until_cancelled()]}));
    world.configure(&format!(
        "[agents.slow]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\ntimeout = \"300ms\"\n"
    ));
    let mut s = Server::launch(world, &[], Framing::Lines, &[]);
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
fn run_takes_context_and_a_schema_from_a_file() {
    let world = World::new();
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let file = world.file("schema.json", &schema.to_string());
    let run = |answer: &str| {
        let script = json!({"session/prompt": [[say(answer), end("end_turn")]]});
        let line = format!("run -o json --output-schema {file} go");
        Run::of(&line).script(&script).go()
    };
    let summary = run("{\"a\": 1}").expect(0).json();
    assert_eq!(summary["structuredOutput"], json!({"a": 1}));
    let failed = run("{\"a\": \"x\"}").expect(65);
    assert_eq!(failed.json()["errors"][0]["kind"], "schemaMismatch");
    let why = "/a: value is not of type";
    assert!(failed.stderr.contains(why), "{}", failed.stderr);
    // An agent without a script echoes the prompt.
    let echo = Run::of("run --context branch=main --context ticket=7 go");
    let text = echo.script(&json!({})).go().expect(0).text();
    let context = "\"branch\": \"main\",\n  \"ticket\": \"7\"";
    assert!(text.contains(context), "{text}");
    let wrong = Run::of("run --context branch go").go().expect(2);
    assert!(wrong.stderr.contains("branch=VALUE"), "{}", wrong.stderr);
}
