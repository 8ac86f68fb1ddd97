//! Agents of each kind that understand the same words.

use super::endpoint;
use crate::harness::steps::{ask, end, resumable, say};
use crate::harness::{FAKE_AGENT, LIBRARY_AGENT, World};
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
    Subject {
        name: "library",
        begin: library,
        asks: true,
        program: Some("library-agent"),
    },
    Subject {
        name: "openai",
        begin: openai,
        asks: false,
        program: None,
    },
    Subject {
        name: "ui-stream",
        begin: ui_stream,
        asks: false,
        program: None,
    },
];

fn library(_: &World) -> (String, Guard) {
    let definition = format!("command = '{LIBRARY_AGENT}'\npermissions = 'ask'");
    (definition, None)
}

fn openai(_: &World) -> (String, Guard) {
    let piece = |text: &str| {
        let delta = json!({"role": "assistant", "content": text});
        json!({"choices": [{"index": 0, "delta": delta}]})
    };
    let word = |body: &Value| {
        body["messages"].as_array()?.last()?["content"]
            .as_str()
            .map(str::to_owned)
    };
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let url = endpoint::start(word, Vec::new(), piece, vec![end]);
    (format!("url = '{url}'\nprotocol = 'openai'"), None)
}

fn ui_stream(_: &World) -> (String, Guard) {
    let piece = |text: &str| json!({"type": "text-delta", "id": "1", "delta": text});
    let word = |body: &Value| {
        let parts = &body["messages"].as_array()?.last()?["parts"];
        parts[0]["text"].as_str().map(str::to_owned)
    };
    let begin = [
        json!({"type": "start"}),
        json!({"type": "text-start", "id": "1"}),
    ];
    let end = [
        json!({"type": "text-end", "id": "1"}),
        json!({"type": "finish"}),
    ];
    let url = endpoint::start(word, begin.to_vec(), piece, end.to_vec());
    (format!("url = '{url}'\nprotocol = 'ui-stream'"), None)
}

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
    let script = world.script(&resumable(json!({ "session/prompt": [steps] })));
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
