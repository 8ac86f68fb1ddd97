//! Situations that every face has to show.

use crate::harness::steps::{ask, end, resumable, say, think, tool, tool_change};
use serde_json::{Value, json};

/// One prompt to an agent, and how the agent behaves.
#[derive(Clone)]
pub struct Situation {
    /// Name, as in the heading of the page.
    pub name: &'static str,
    /// Script of the agent; `None` for an agent whose program does not exist.
    pub script: Option<Value>,
    /// Value of `--permissions`.
    pub permissions: &'static str,
    /// `true` if the agent starts and opens a session.
    pub starts: bool,
    /// Texts that a terminal shows when it asks, and the keys that answer.
    pub questions: &'static [(&'static str, &'static str)],
    /// `true` if the session has had a turn, in a process of acpipe that has ended.
    pub is_stored: bool,
}

impl Situation {
    /// Returns this situation with an agent that waits for a second session before it answers.
    pub fn held(&self) -> Self {
        let mut held = self.clone();
        let script = held.script.as_mut();
        let runs = script.and_then(|script| script.get_mut("session/prompt")?.as_array_mut());
        for steps in runs.into_iter().flatten() {
            let steps = steps.as_array_mut().unwrap();
            steps.insert(0, json!({"wait": "session/new"}));
        }
        held
    }
}

fn situation(name: &'static str, script: Value) -> Situation {
    Situation {
        name,
        script: Some(script),
        permissions: "approve",
        starts: true,
        questions: &[],
        is_stored: false,
    }
}

fn failing(name: &'static str, script: Value) -> Situation {
    Situation {
        starts: false,
        ..situation(name, script)
    }
}

/// Returns the situation of an agent that answers a prompt with these steps.
fn turn(name: &'static str, steps: &Value) -> Situation {
    situation(name, json!({"session/prompt": [steps]}))
}

/// Returns the situation of a session that has had a turn; the agent behaves so when it is opened again.
fn stored(name: &'static str, script: Value) -> Situation {
    let mut script = script;
    script["session/prompt"] = json!([[say("Hello again."), end("end_turn")]]);
    Situation {
        is_stored: true,
        ..situation(name, script)
    }
}

/// Returns the script of an agent that can load sessions, and does it with these steps.
fn loading(steps: &Value) -> Value {
    let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}});
    json!({"initialize": [[{"reply": can}]], "session/load": [steps]})
}

/// Returns a request for a permission.
pub fn edit_question() -> Value {
    let call = json!({"toolCallId": "c", "title": "Edit a.txt", "kind": "edit"});
    ask(&call, &[("yes", "allow_once"), ("no", "reject_once")])
}

fn asking(name: &'static str, permissions: &'static str) -> Situation {
    let steps = json!([say("before "), edit_question(), {"echoAnswer": true}, say("after"), end("end_turn")]);
    let is_asked = permissions == "ask";
    Situation {
        permissions,
        questions: if is_asked {
            &[("Enter refuses", "y\n")]
        } else {
            &[]
        },
        ..turn(name, &steps)
    }
}

fn update(update: &Value) -> Value {
    json!({ "update": update })
}

fn content(content: &Value) -> Value {
    update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}))
}

fn refused(code: i32, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

/// Returns all situations, in the order of the page.
pub fn all() -> Vec<Situation> {
    let read = json!({"name": "Read", "title": "Read a.txt", "kind": "read", "status": "pending",
        "rawInput": {"path": "a.txt"}});
    let shown = json!([{"type": "content", "content": {"type": "text", "text": "one"}}]);
    let mut of_subagent = read.clone();
    of_subagent["_meta"] = json!({"claudeCode": {"parentToolUseId": "t"}});
    let done = tool_change("c", &json!({"status": "completed", "content": shown}));
    let failed = json!([{"type": "content", "content": {"type": "text", "text": "no such file"}}]);
    let failed = tool_change("c", &json!({"status": "failed", "content": failed}));
    let plan = update(&json!({"sessionUpdate": "plan", "entries": [
        {"content": "Look", "priority": "high", "status": "completed"},
        {"content": "Mend", "priority": "medium", "status": "in_progress"},
        {"content": "Test", "priority": "low", "status": "pending"}]}));
    let form = json!({"ask": {"method": "elicitation/create", "params": {"mode": "form",
        "message": "Which name?", "requestedSchema": {"type": "object",
        "properties": {"name": {"type": "string"}}}}}});
    let diff = json!([{"type": "diff", "path": "/a.txt", "oldText": "one\n", "newText": "two\n"}]);
    let diff = tool_change("c", &json!({"status": "completed", "content": diff}));
    let starts = |steps: Value| json!({"initialize": [steps]});
    vec![
        turn(
            "Text",
            &json!([say("Hello, "), say("world."), end("end_turn")]),
        ),
        turn(
            "Thoughts before the text",
            &json!([think("Hm."), say("Hello."), end("end_turn")]),
        ),
        turn(
            "Tool call",
            &json!([tool("c", &read), done, say("It says one."), end("end_turn")]),
        ),
        turn(
            "Failed tool call",
            &json!([
                tool("c", &read),
                failed,
                say("It is missing."),
                end("end_turn")
            ]),
        ),
        turn(
            "Tool call with a diff",
            &json!([tool("c", &read), diff, say("Done."), end("end_turn")]),
        ),
        turn(
            "Tool call that never ends",
            &json!([tool("c", &read), say("Bye."), end("end_turn")]),
        ),
        turn("Plan", &json!([plan, say("Planned."), end("end_turn")])),
        turn(
            "Image in the answer",
            &json!([
                content(&json!({"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="})),
                end("end_turn")
            ]),
        ),
        turn(
            "Link to a file in the answer",
            &json!([
                content(
                    &json!({"type": "resource_link", "uri": "file:///w/a.pdf", "name": "a.pdf"})
                ),
                end("end_turn")
            ]),
        ),
        turn(
            "Changed mode",
            &json!([
                update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"})),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Usage",
            &json!([
                update(&json!({"sessionUpdate": "usage_update", "used": 100, "size": 1000})),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Repeated message of the user",
            &json!([
                update(
                    &json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "go"}})
                ),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Notice of the agent",
            &json!([
                {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Slow today."},
                    "_meta": {"claudeCode": {"kind": "informational", "level": "warning"}}}},
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Title of the session",
            &json!([
                update(&json!({"sessionUpdate": "session_info_update", "title": "A title"})),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Update of an unknown kind",
            &json!([
                update(&json!({"sessionUpdate": "weather", "sun": true})),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn(
            "Text and tool call of a subagent",
            &json!([
                tool("t", &json!({"title": "Task", "kind": "other", "status": "in_progress"})),
                {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Aside."},
                    "_meta": {"claudeCode": {"parentToolUseId": "t"}}}},
                tool("c", &of_subagent),
                done,
                tool_change("t", &json!({"status": "completed"})),
                say("Ok."),
                end("end_turn")
            ]),
        ),
        turn("No output", &json!([end("end_turn")])),
        turn(
            "Refusal",
            &json!([say("I cannot do that."), end("refusal")]),
        ),
        turn(
            "Limit of tokens",
            &json!([say("And so"), end("max_tokens")]),
        ),
        turn(
            "Limit of requests",
            &json!([say("And so"), end("max_turn_requests")]),
        ),
        turn(
            "Turn that the agent cancels",
            &json!([say("And so"), end("cancelled")]),
        ),
        turn("Stop reason `error`", &json!([say("And so"), end("error")])),
        turn(
            "Unknown stop reason",
            &json!([say("And so"), end("paused")]),
        ),
        turn(
            "Error of the agent",
            &json!([say("And so"), refused(-32603, "the model is gone")]),
        ),
        turn(
            "Rate limit",
            &json!([refused(-32603, "429 Too Many Requests: rate limit reached")]),
        ),
        turn(
            "Sign-in needed",
            &json!([refused(-32000, "Authentication required")]),
        ),
        turn(
            "Crash in a turn",
            &json!([say("And so"), {"stderr": "boom: out of memory\n"}, {"exit": 3}]),
        ),
        turn(
            "Line that is no message",
            &json!([{"line": "Loading..."}, say("Ok."), end("end_turn")]),
        ),
        failing(
            "Agent that exits at its start",
            json!({"start": [{"stderr": "no license found\n"}, {"exit": 2}]}),
        ),
        failing(
            "Agent that refuses to start",
            starts(json!([refused(-32603, "upgrade me")])),
        ),
        Situation {
            script: None,
            ..failing("Program that does not exist", Value::Null)
        },
        failing(
            "Session that cannot be opened",
            json!({"session/new": [[refused(-32603, "disk is full")]]}),
        ),
        asking("Permission, allowed by the policy", "approve"),
        asking("Permission, denied by the policy", "deny"),
        asking("Permission, asked of the user", "ask"),
        stored("Restored session, resumed", resumable(json!({}))),
        stored(
            "Restored session, loaded with its history",
            loading(&json!([
                update(&json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "first"}})),
                say("Hello."),
                {"reply": {}}
            ])),
        ),
        stored(
            "Restored session that the agent refuses to load",
            loading(&json!([refused(-32603, "no such session")])),
        ),
        stored("Restored session of an agent without a memory", json!({})),
        Situation {
            questions: &[("Which name?", "Ada\n")],
            ..turn("Question", &json!([form, say("Thanks."), end("end_turn")]))
        },
    ]
}
