//! Cases of whole turns.

use crate::words::{
    Case, begun, call, change, failed, input, none, output, reasoning, same, say, status, text,
    think,
};
use serde_json::{Value, json};

pub fn cases() -> Vec<Case> {
    let start = || [json!({ "type": "start", "messageId": "<msg>" })];
    let finish = || [json!({ "type": "finish" })];
    let whole = |parts: &[&[Value]]| [&start()[..], &parts.concat(), &finish()].concat();
    let announced = || {
        let meta = json!({ "claudeCode": { "toolName": "Read" } });
        call(json!({ "title": "Read", "status": "pending", "_meta": meta }))
    };
    let path = json!({ "path": "/a" });
    let progress = || change(json!({ "status": "in_progress", "rawInput": path }));
    let shown = || {
        [
            begun(json!({ "toolName": "Read", "title": "Read" })),
            input(json!({ "toolName": "Read", "title": "Read", "input": path })),
        ]
    };
    let said = content("said");
    vec![
        same(
            &["DA-T19", "DA-T25"],
            "text",
            [say("one")],
            whole(&[&text("#1", "one")]),
        ),
        same(
            &["DA-T25"],
            "reasoning",
            [think("hm")],
            whole(&[&reasoning("#1", "hm")]),
        ),
        same(
            &["DA-T20"],
            "reasoning, then text",
            [think("hm"), say("one")],
            whole(&[&reasoning("#1", "hm"), &text("#2", "one")]),
        ),
        same(
            &["DA-T25"],
            "a tool",
            [announced(), progress(), status("completed")],
            whole(&[&shown(), &[output(none())]]),
        ),
        same(
            &["DA-T21", "DA-T25"],
            "text, a tool, text",
            [
                say("one"),
                announced(),
                progress(),
                change(json!({ "status": "completed", "content": said })),
                say("two"),
            ],
            whole(&[
                &text("#1", "one"),
                &shown(),
                &[output(none())],
                &text("#2", "two"),
            ]),
        ),
        same(
            &["DA-T25"],
            "reasoning, a tool, text",
            [
                think("hm"),
                announced(),
                progress(),
                status("completed"),
                say("one"),
            ],
            whole(&[
                &reasoning("#1", "hm"),
                &shown(),
                &[output(none())],
                &text("#2", "one"),
            ]),
        ),
        same(
            &["DA-T22"],
            "a tool that fails, and text",
            [
                announced(),
                progress(),
                change(json!({ "status": "failed", "content": said })),
                say("one"),
            ],
            whole(&[&shown(), &[failed("said")], &text("#1", "one")]),
        ),
        claude(),
    ]
}

fn content(text: &str) -> Value {
    json!([{ "type": "content", "content": { "type": "text", "text": text } }])
}

/// The four updates with which claude-agent-acp reports a call.
fn claude() -> Case {
    let meta = json!({ "claudeCode": { "toolName": "Bash" } });
    let response = json!({ "claudeCode": { "toolName": "Bash", "toolResponse": "x" } });
    let command = json!({ "command": "ls" });
    let said = content("x");
    let announced = begun(json!({ "toolName": "Bash", "title": "Terminal" }));
    let known = json!({ "toolName": "Bash", "title": "ls", "input": command });
    same(
        &["DA-T24"],
        "announced empty, called again, answered in _meta, completed",
        [
            call(json!({
                "title": "Terminal", "status": "pending", "rawInput": {}, "_meta": meta,
            })),
            call(json!({ "title": "ls", "rawInput": command, "_meta": meta })),
            change(json!({ "_meta": response })),
            change(json!({ "status": "completed", "content": said, "_meta": meta })),
        ],
        [
            announced.clone(),
            input(known.clone()),
            output(json!({ "output": "x" })),
        ],
    )
    .but(
        &["input-at-once", "shown-again", "tool-output"],
        [
            announced,
            input(known.clone()),
            input(known),
            output(json!({ "output": { "content": said } })),
        ],
    )
}
