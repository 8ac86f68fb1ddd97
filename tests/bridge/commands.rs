//! Programs that answer one prompt as agents.

use crate::harness::run::Run;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// Returns a server with the agent `own`, a shell script with the conversation as JSON in `$line`.
fn server(script: &str, keys: &str) -> Server {
    let world = World::new();
    configure(&world, script, keys);
    let mut server = Server::launch(world, &[], Framing::Lines, &[]);
    server.waive("agent/state");
    server.waive("session/state");
    server.initialize();
    server
}

fn configure(world: &World, script: &str, keys: &str) {
    let text =
        format!("#!/bin/sh\nread -r line\nprintf '%s\\n' \"$line\" >> \"$0.log\"\n{script}\n");
    let file = world.executable("own.sh", &text);
    world.configure(&format!(
        "[agents.own]\ncommand = '{file}'\nprotocol = 'command'\ninput = 'json'\n{keys}\n"
    ));
}

/// Returns what the command received, prompt by prompt.
fn received(world: &World) -> Vec<Value> {
    let log = std::fs::read_to_string(world.dir.join("own.sh.log")).unwrap_or_default();
    log.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn texts(messages: &Value) -> Vec<&str> {
    let messages = messages.as_array().unwrap().iter();
    let parts = messages.flat_map(|message| message["parts"].as_array().unwrap());
    parts.filter_map(|part| part["text"].as_str()).collect()
}

#[test]
fn run_pipes_a_prompt_through_a_program() {
    for (line, prompt, want) in [
        (&["tr", "a-z", "A-Z"][..], "hello", "HELLO\n"),
        (&["echo", "you said {prompt}!"], "a b", "you said a b!\n"),
    ] {
        let out = Run::new(&["run", "--protocol", "command", prompt])
            .agent(line)
            .go();
        assert_eq!(out.expect(0).text(), want);
    }
}

#[test]
fn session_that_is_handed_over_to_a_command_keeps_its_memory() {
    let mut server = server("echo ok", "");
    let script = json!({"session/prompt": [[say("first answer"), end("end_turn")]]});
    let script = server.world.script(&script);
    let agent = json!({"agent": "other", "command": FAKE_AGENT, "args": [script]});
    server.call("agent/register", &agent);
    server.call(
        "session/ensure",
        &json!({"sessionId": "s", "agent": "other"}),
    );
    let id = server.send_prompt("s", "first");
    server.turn(&id);
    let ensured = server.call("session/ensure", &json!({"sessionId": "s", "agent": "own"}));
    let receipt = &ensured["recovery"];
    assert_eq!(
        (
            &receipt["memory"],
            &receipt["handedOverFrom"],
            &receipt["reinjected"]
        ),
        (&json!("kept"), &json!("other"), &json!(0))
    );
    let id = server.send_prompt("s", "second");
    server.turn(&id);
    let received = received(&server.world);
    assert_eq!(texts(&received[0]["history"]), ["first", "first answer"]);
    assert_eq!(received[0]["prompt"], "second");
    server.finish();
}

#[test]
fn correction_contains_the_prompt_and_the_wrong_answer() {
    let right =
        r#"case "$line" in *'Your answer was:'*) echo '{"a":1}' ;; *) echo '{"a":"x"}' ;; esac"#;
    let mut server = server(right, "");
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    let summary = server.call(
        "execute",
        &json!({"agent": "own", "message": "count", "outputSchema": schema}),
    );
    assert_eq!(summary["structuredOutput"], json!({"a": 1}), "{summary}");
    let received = received(&server.world);
    assert_eq!(received.len(), 2);
    let correction = received[1]["prompt"].as_str().unwrap();
    for text in [
        "count",
        "\"required\"",
        "Your answer was:\n\n{\"a\":\"x\"}",
        "/a",
    ] {
        assert!(correction.contains(text), "{text} is not in {correction}");
    }
    server.claim_turn(&summary);
    server.finish();
}

#[test]
fn command_that_does_not_exist_fails_the_turn_with_advice() {
    let out = Run::new(&["run", "--protocol", "command", "hi"])
        .agent(&["no-such-program-of-acpipe"])
        .go()
        .expect(127);
    assert!(
        out.show().contains("install it, or pass its path"),
        "{}",
        out.show()
    );
}

#[test]
fn run_continues_a_session_with_the_agent_that_is_named() {
    let world = World::new();
    configure(&world, "echo own", "");
    let text = |args: &[&str]| {
        let args = [&["run", "--session", "s"], args, &["hi"]].concat();
        let output = world.acpipe(&args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text(&["--agent", "demo"]).contains("demo agent"));
    assert_eq!(text(&["--agent", "own"]), "own\n");
    assert_eq!(text(&[]), "own\n");
    assert!(text(&["--agent", "demo"]).contains("demo agent"));
}
