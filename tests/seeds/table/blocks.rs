//! Cases of text, reasoning, other content, and ends of turns.

use crate::words::{
    Case, begun, call, change, input, none, output, reasoning, same, say, text, think,
};
use serde_json::{Value, json};

fn finish() -> Value {
    json!({ "type": "finish" })
}

fn delta(id: &str, delta: &str) -> Value {
    json!({ "type": "text-delta", "id": id, "delta": delta })
}

pub fn cases() -> Vec<Case> {
    let mut cases = text_and_reasoning();
    cases.extend(other_kinds());
    cases.extend(ends());
    cases
}

fn text_and_reasoning() -> Vec<Case> {
    let said = |id: &str, text: &str| {
        let mut piece = say(text);
        piece["messageId"] = id.into();
        piece
    };
    let [text_start, one, text_end] = text("#1", "one");
    let [reasoning_start, thought, reasoning_end] = reasoning("#1", "one");
    let two = delta("#1", "two");
    let thought_two = json!({ "type": "reasoning-delta", "id": "#1", "delta": "two" });
    vec![
        same(
            &["DA-X12", "DA-T3"],
            "the first delta of a text opens its block, the next does not",
            [say("one"), say("two")],
            [&text_start, &one, &two, &text_end].map(Value::clone),
        ),
        same(
            &["DA-X13", "DA-T3"],
            "the same with reasoning",
            [think("one"), think("two")],
            [&reasoning_start, &thought, &thought_two, &reasoning_end].map(Value::clone),
        ),
        same(
            &["DA-X12", "DA-T4"],
            "text closes reasoning",
            [think("hm"), say("one")],
            [reasoning("#r", "hm"), text("#t", "one")].concat(),
        ),
        same(
            &["DA-X13", "DA-T4"],
            "reasoning closes text",
            [say("one"), think("hm")],
            [text("#t", "one"), reasoning("#r", "hm")].concat(),
        ),
        same(
            &["DA-T5"],
            "every block has an id of its own",
            [think("a"), say("b"), think("c"), say("d")],
            [
                reasoning("#1", "a"),
                text("#2", "b"),
                reasoning("#3", "c"),
                text("#4", "d"),
            ]
            .concat(),
        ),
        same(
            &["DA-X21", "DA-T1"],
            "the form of the ids",
            [think("a"), say("b"), think("c")],
            [
                reasoning("reasoning-<msg>-1", "a"),
                text("text-<msg>-1", "b"),
                reasoning("reasoning-<msg>-2", "c"),
            ]
            .concat(),
        )
        .but(
            &["block-ids"],
            [
                reasoning("<msg>.1", "a"),
                text("<msg>.2", "b"),
                reasoning("<msg>.3", "c"),
            ]
            .concat(),
        ),
        same(
            &["DA-X12"],
            "a text of another message of the agent",
            [said("A", "one"), said("B", "two")],
            [&text_start, &one, &two, &text_end].map(Value::clone),
        )
        .but(
            &["message-ids"],
            [text("#1", "one"), text("#2", "two")].concat(),
        ),
        same(
            &["DA-X12"],
            "a text that is empty",
            [think("hm"), say("")],
            [reasoning("#1", "hm"), text("#2", "")].concat(),
        )
        .but(&["empty-text"], reasoning("#1", "hm")),
    ]
}

/// Appends the chunks of the text "one".
fn with_text(chunks: &[Value]) -> Vec<Value> {
    [chunks, &text("#1", "one")[..]].concat()
}

fn other_kinds() -> Vec<Case> {
    let image = json!({ "type": "image", "mimeType": "image/png", "data": "QUJD" });
    let of = |kind: &str, content: &Value| json!({ "sessionUpdate": kind, "content": content });
    let hi = json!({ "type": "text", "text": "hi" });
    let user = of("user_message_chunk", &hi);
    let usage = json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2 });
    let unheard_of = json!({ "sessionUpdate": "unheard_of", "n": 1 });
    let plan = |what: &str| {
        let entry = json!({ "content": what, "priority": "high", "status": "pending" });
        json!({ "sessionUpdate": "plan", "entries": [entry] })
    };
    let url = "data:image/png;base64,QUJD";
    let todo = |entry: &Value| {
        let title = json!({ "toolCallId": "#p", "toolName": "TodoWrite", "title": "Plan" });
        let mut chunks = [begun(title.clone()), input(title), output(none())];
        for chunk in &mut chunks {
            chunk["toolCallId"] = "#p".into();
        }
        chunks[2]["output"] = entry["entries"].clone();
        chunks
    };
    let shown = |plan: &Value| json!({ "type": "data-plan", "id": "plan", "data": { "entries": plan["entries"] } });
    vec![
        same(
            &["DA-X14", "DA-T18"],
            "an image of the answer",
            [of("agent_message_chunk", &image)],
            [],
        )
        .but(
            &["nothing-lost"],
            [json!({ "type": "file", "mediaType": "image/png", "url": url })],
        ),
        same(
            &["DA-X14"],
            "an image of a thought",
            [of("agent_thought_chunk", &image)],
            [],
        )
        .but(
            &["nothing-lost"],
            [json!({ "type": "reasoning-file", "mediaType": "image/png", "url": url })],
        ),
        same(
            &["DA-X14", "DA-T18"],
            "a message of the user",
            [user.clone(), say("one")],
            text("#1", "one"),
        )
        .but(
            &["nothing-lost"],
            with_text(&[
                json!({ "type": "data-user-message", "data": { "content": user["content"] } }),
            ]),
        ),
        same(
            &["DA-X14"],
            "figures and kinds that nobody knows",
            [usage, unheard_of.clone(), say("one")],
            text("#1", "one"),
        )
        .but(
            &["nothing-lost"],
            with_text(&[
                json!({
                    "type": "message-metadata",
                    "messageMetadata": { "acp": { "context": { "used": 1, "size": 2 } } },
                }),
                json!({ "type": "data-acp", "data": { "update": unheard_of } }),
            ]),
        ),
        same(
            &["DA-X20", "DA-T18"],
            "a plan",
            [plan("a")],
            todo(&plan("a")),
        )
        .but(&["plan"], [shown(&plan("a"))]),
        same(
            &["DA-X20"],
            "a plan amid a text",
            [say("one"), plan("a"), say("two")],
            [
                &text("#1", "one")[..],
                &todo(&plan("a")),
                &text("#2", "two"),
            ]
            .concat(),
        )
        .but(
            &["plan"],
            [
                json!({ "type": "text-start", "id": "#1" }),
                delta("#1", "one"),
                shown(&plan("a")),
                delta("#1", "two"),
                json!({ "type": "text-end", "id": "#1" }),
            ],
        ),
    ]
}

/// Chunks of a turn that ends without any output.
fn empty_turn() -> [Value; 2] {
    let words = "The agent ended its turn without any output.";
    let facts = json!({ "acp": { "error": { "message": words } } });
    [
        json!({ "type": "message-metadata", "messageMetadata": facts }),
        json!({ "type": "error", "errorText": words }),
    ]
}

fn ends() -> Vec<Case> {
    let start = json!({ "type": "start", "messageId": "<msg>" });
    let open_tool = "The agent ended its turn without reporting a result of this tool call";
    let abort = json!({ "type": "abort", "reason": "cancelled" });
    let metadata = json!({ "type": "message-metadata" });
    let refused = json!({ "error": { "code": -32603, "message": "no model" } });
    let error = json!({ "type": "error", "errorText": "no model" });
    let words = "the agent answered session/prompt with an error: no model (-32603)";
    let own_error = json!({ "type": "error", "errorText": words });
    let facts = json!({ "acp": { "error": { "message": words } } });
    let told = json!({ "type": "message-metadata", "messageMetadata": facts });
    let all = [
        start.clone(),
        json!({ "type": "start-step" }),
        json!({ "type": "finish-step" }),
        json!({ "type": "finish", "finishReason": "stop" }),
    ];
    vec![
        same(
            &["DA-T2"],
            "the start holds the id of the message",
            [say("one")],
            with_text(std::slice::from_ref(&start)),
        ),
        same(
            &["DA-T16", "DA-T23"],
            "an end with nothing open, of a message with nothing in it",
            [],
            [start.clone(), finish()],
        )
        .but(
            &["empty-turn"],
            [std::slice::from_ref(&start), &empty_turn()[..]].concat(),
        ),
        same(
            &["DA-T16"],
            "what else stands around a message",
            [say("one")],
            [with_text(std::slice::from_ref(&start)), vec![finish()]].concat(),
        )
        .but(
            &["steps"],
            [&all[..2], &text("#1", "one")[..], &all[2..]].concat(),
        ),
        same(
            &["DA-X25", "DA-T16"],
            "the end closes text",
            [say("one")],
            [&text("#1", "one")[..], &[finish()]].concat(),
        ),
        same(
            &["DA-X25", "DA-T16"],
            "the end closes reasoning",
            [think("hm")],
            [&reasoning("#1", "hm")[..], &[finish()]].concat(),
        ),
        same(
            &["DA-X25"],
            "a tool is open at the end",
            [
                call(none()),
                change(json!({ "status": "in_progress", "rawInput": { "a": 1 } })),
            ],
            [begun(none()), input(none()), finish()],
        )
        .but(
            &["settled"],
            [
                begun(none()),
                input(none()),
                output(json!({ "output": { "note": open_tool } })),
                finish(),
            ],
        ),
        same(
            &["DA-X25"],
            "the turn was cancelled",
            [say("one")],
            [&text("#1", "one")[..], &[finish()]].concat(),
        )
        .answer(json!({ "result": { "stopReason": "cancelled" } }))
        .but(
            &["abort"],
            [&text("#1", "one")[..], &[metadata, abort]].concat(),
        ),
        same(
            &["DA-T17"],
            "an error ends the message",
            [say("one")],
            [&text("#1", "one")[..], &[error]].concat(),
        )
        .answer(refused)
        .but(
            &["turn-error"],
            [&text("#1", "one")[..], &[told, own_error]].concat(),
        ),
    ]
}
