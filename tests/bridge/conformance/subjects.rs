//! Agents of each kind that understand the same words.

use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::any::Any;

/// Resource that an agent needs beside its process, such as a server.
pub type Guard = Option<Box<dyn Any>>;

/// Agent of one kind.
pub struct Subject {
    /// Name in failure messages.
    pub name: &'static str,
    /// Prepares the agent; returns the keys of its definition.
    pub begin: fn(&World) -> (String, Guard),
    /// Whether it asks for permission.
    pub asks: bool,
    /// Text in the command line of its process during a turn; `None` if it has no process.
    pub program: Option<&'static str>,
}

/// All kinds of agents.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "acp",
        begin: acp,
        asks: true,
        program: Some("fake-agent"),
    },
    Subject {
        name: "command",
        begin: command,
        asks: false,
        program: Some("subject.sh"),
    },
];

/// Steps of the fake agent for one word.
fn when(word: &str, steps: &Value, otherwise: &Value) -> Value {
    let word = format!("\"text\":\"{word}\"");
    json!([{"if": {"params": word, "then": steps, "else": otherwise}}])
}

fn acp(world: &World) -> (String, Guard) {
    let tool = json!({"toolCallId": "t", "title": "Write a file", "kind": "edit"});
    let asked = [
        ask(
            &tool,
            &[("allowed", "allow_once"), ("refused", "reject_once")],
        ),
        json!({"echoAnswer": true}),
        end("end_turn"),
    ];
    let count = json!([say("1 "), say("2 "), say("3"), end("end_turn")]);
    let hang = json!([say("half"), {"wait": "session/cancel"}, end("cancelled")]);
    let crash = json!([say("half"), {"exit": 3}]);
    let steps = json!([say("hi"), end("end_turn")]);
    let steps = when("ask", &json!(asked), &steps);
    let steps = when("count", &count, &steps);
    let steps = when("hang", &hang, &steps);
    let steps = when("crash", &crash, &steps);
    let can =
        json!({"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}});
    let script = world.script(&json!({
        "initialize": [[{"reply": can}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [steps],
    }));
    let definition = format!("command = '{FAKE_AGENT}'\nargs = ['{script}']\npermissions = 'ask'");
    (definition, None)
}

fn command(world: &World) -> (String, Guard) {
    let script = world.executable(
        "subject.sh",
        r#"#!/bin/sh
read -r line
case "${line%%,\"history\":*}" in
*'"text":"hello"'*) echo hi ;;
*'"text":"count"'*) for i in 1 2 3; do echo $i; done ;;
*'"text":"crash"'*) echo half; echo "out of paper" >&2; exit 3 ;;
*'"text":"hang"'*) echo half; while :; do sleep 1; done ;;
esac
"#,
    );
    let definition = format!(
        "command = '{script}'\nprotocol = 'command'\ninput = 'json'\nhistory = {{ messages = 4 }}"
    );
    (definition, None)
}
