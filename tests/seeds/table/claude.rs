//! Cases of the model's output as the Claude Code CLI streams it.

use crate::words::{Case, begun, failed, input, none, output, reasoning, same, text};
use serde_json::{Value, json};

fn event(event: &Value) -> Value {
    json!({ "type": "stream_event", "event": event, "parent_tool_use_id": null, "api_message_id": "m" })
}

/// Assigns the frame to another message.
fn of(message: &str, mut frame: Value) -> Value {
    frame["api_message_id"] = message.into();
    frame
}

fn message_start(id: &str) -> Value {
    of(
        id,
        event(&json!({ "type": "message_start", "message": { "id": id } })),
    )
}

fn message_stop(id: &str) -> [Value; 2] {
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } });
    [
        of(id, event(&delta)),
        of(id, event(&json!({ "type": "message_stop" }))),
    ]
}

fn start(index: u64, block: &Value) -> Value {
    event(&json!({ "type": "content_block_start", "index": index, "content_block": block }))
}

fn delta(index: u64, delta: &Value) -> Value {
    event(&json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn stop(index: u64) -> Value {
    event(&json!({ "type": "content_block_stop", "index": index }))
}

fn say(index: u64, text: &str) -> [Value; 3] {
    [
        start(index, &json!({ "type": "text", "text": "" })),
        delta(index, &json!({ "type": "text_delta", "text": text })),
        stop(index),
    ]
}

fn think(index: u64, text: &str) -> [Value; 3] {
    [
        start(index, &json!({ "type": "thinking", "thinking": "" })),
        delta(
            index,
            &json!({ "type": "thinking_delta", "thinking": text }),
        ),
        stop(index),
    ]
}

/// A call of the tool `Read` with the id `t`, its input in two deltas.
fn call(index: u64) -> [Value; 4] {
    let piece = |json: &str| {
        delta(
            index,
            &json!({ "type": "input_json_delta", "partial_json": json }),
        )
    };
    [
        start(
            index,
            &json!({ "type": "tool_use", "id": "t", "name": "Read", "input": {} }),
        ),
        piece("{\"file_pa"),
        piece("th\": \"/a\"}"),
        stop(index),
    ]
}

fn answered(is_error: bool, content: &str) -> Value {
    let result = json!({ "type": "tool_result", "tool_use_id": "t", "content": content, "is_error": is_error });
    json!({ "type": "user", "message": { "role": "user", "content": [result] }, "parent_tool_use_id": null })
}

/// The frame that repeats a streamed block as a whole.
fn whole(block: &Value) -> Value {
    let message = json!({ "id": "m", "role": "assistant", "model": "x", "content": [block] });
    json!({ "type": "assistant", "message": message, "parent_tool_use_id": null })
}

fn kind(kind: &str) -> Value {
    json!({ "type": kind })
}

fn subagent() -> Value {
    kind("data-subagent")
}

fn piece(delta: &str) -> Value {
    json!({ "type": "tool-input-delta", "toolCallId": "t", "inputTextDelta": delta })
}

/// The chunks of [`call`].
fn called() -> [Value; 4] {
    [
        begun(json!({ "toolName": "Read" })),
        piece("{\"file_pa"),
        piece("th\": \"/a\"}"),
        input(json!({ "toolName": "Read", "input": { "file_path": "/a" } })),
    ]
}

/// Returns the cases that the hub plays, with the chunks of both systems.
pub fn cases() -> Vec<Case> {
    let all = [events(), results(), steps(), beside(), ends()];
    all.into_iter().flatten().collect()
}

/// Rows of the earlier system's table of events.
fn events() -> Vec<Case> {
    let m = || message_start("m");
    vec![
        same(
            &["DS-28"],
            "a message begins",
            [&[m()][..], &say(0, "one")].concat(),
            [&[kind("start")][..], &text("#1", "one")].concat(),
        ),
        same(
            &["DS-29", "DS-30", "DS-31"],
            "text",
            [&[m()][..], &say(0, "one")].concat(),
            text("#1", "one"),
        ),
        same(
            &["DS-29", "DS-31"],
            "text without any",
            [
                &[
                    m(),
                    start(0, &json!({ "type": "text", "text": "" })),
                    stop(0),
                ][..],
                &say(1, "one"),
            ]
            .concat(),
            [
                &[
                    json!({ "type": "text-start", "id": "#1" }),
                    json!({ "type": "text-end", "id": "#1" }),
                ][..],
                &text("#2", "one"),
            ]
            .concat(),
        )
        .but(&["empty-text"], text("#1", "one")),
        same(
            &["DS-32", "DS-33", "DS-34"],
            "thinking, then text",
            [&[m()][..], &think(0, "hm"), &say(1, "one")].concat(),
            [&reasoning("#1", "hm")[..], &text("#2", "one")].concat(),
        ),
        same(
            &["DS-35", "DS-36", "DS-37"],
            "a call",
            [
                &[m()][..],
                &call(0),
                &message_stop("m"),
                &[answered(false, "x")],
            ]
            .concat(),
            [&called()[..], &[output(none())]].concat(),
        ),
    ]
}

/// Tool results and ends of messages.
fn results() -> Vec<Case> {
    let m = || message_start("m");
    vec![
        same(
            &["DS-38"],
            "a failure",
            [
                &[m()][..],
                &call(0),
                &message_stop("m"),
                &[answered(true, "no such file")],
            ]
            .concat(),
            [&called()[..], &[failed("no such file")]].concat(),
        ),
        same(
            &["DS-38"],
            "what a tool gave",
            [&[m()][..], &call(0), &[answered(false, "x")]].concat(),
            [&called()[..], &[output(json!({ "output": "x" }))]].concat(),
        )
        .but(
            &["tool-output"],
            [
                &called()[..],
                &[output(json!({
                    "output": { "content": [{ "type": "content", "content": { "type": "text", "text": "x" } }] }
                }))],
            ]
            .concat(),
        ),
        same(
            &["DS-28", "DS-39"],
            "two messages, after each of which that table has an end",
            [
                &[m()][..],
                &say(0, "one"),
                &message_stop("m"),
                &[message_start("n")],
                &say(0, "two").map(|frame| of("n", frame)),
                &message_stop("n"),
            ]
            .concat(),
            [
                &[kind("start")][..],
                &text("#1", "one"),
                &[kind("finish"), kind("start")],
                &text("#2", "two"),
                &[kind("finish")],
            ]
            .concat(),
        )
        .but(
            &["one-turn"],
            [
                &[kind("start")][..],
                &text("#1", "one"),
                &text("#2", "two"),
                &[kind("finish")],
            ]
            .concat(),
        ),
    ]
}

/// Behaviour of the earlier system that its table does not list.
fn steps() -> Vec<Case> {
    let m = || message_start("m");
    let n = || say(0, "two").map(|frame| of("n", frame));
    vec![
        same(
            &["DS-X6"],
            "one start, a step a message, the step's end after the results",
            [
                &[m()][..],
                &call(0),
                &message_stop("m"),
                &[answered(false, "x"), message_start("n")],
                &n(),
            ]
            .concat(),
            [
                &[kind("start"), kind("start-step")][..],
                &called(),
                &[output(none()), kind("finish-step"), kind("start-step")],
                &text("#1", "two"),
                &[kind("finish-step"), kind("finish")],
            ]
            .concat(),
        ),
        same(
            &["DS-X6"],
            "what was streamed and comes again whole",
            [
                &[m()][..],
                &say(0, "one"),
                &[whole(&json!({ "type": "text", "text": "one" }))],
            ]
            .concat(),
            text("#1", "one"),
        ),
        same(
            &["DS-X6"],
            "the result closes what is open",
            [
                m(),
                start(0, &json!({ "type": "text", "text": "" })),
                delta(0, &json!({ "type": "text_delta", "text": "one" })),
            ],
            [&text("#1", "one")[..], &[kind("finish")]].concat(),
        ),
        same(
            &["DS-X6"],
            "ids of blocks",
            [&[m()][..], &think(0, "hm"), &say(1, "one")].concat(),
            [
                &reasoning("reasoning-m-0", "hm")[..],
                &text("text-m-1", "one"),
            ]
            .concat(),
        )
        .but(
            &["block-ids"],
            [&reasoning("<msg>.1", "hm")[..], &text("<msg>.2", "one")].concat(),
        ),
    ]
}

/// Events that the earlier system left out.
fn beside() -> Vec<Case> {
    let m = || message_start("m");
    let signed = |chunk: Value, signature: &Value| {
        let mut chunk = chunk;
        chunk["providerMetadata"] = signature.clone();
        chunk
    };
    let [begins, says, ends] = reasoning("#1", "hm");
    let with_signature = |signature: &Value| {
        vec![
            begins.clone(),
            says.clone(),
            signed(ends.clone(), signature),
        ]
    };
    let mut signs = think(0, "hm").to_vec();
    signs.insert(
        2,
        delta(
            0,
            &json!({ "type": "signature_delta", "signature": "c2ln" }),
        ),
    );
    let child = |mut frame: Value| {
        frame["parent_tool_use_id"] = "t".into();
        of("c", frame)
    };
    vec![
        same(
            &["DS-X6"],
            "a signature",
            [vec![m()], signs].concat(),
            with_signature(&Value::Null),
        )
        .but(
            &["nothing-lost"],
            with_signature(&json!({ "anthropic": { "signature": "c2ln" } })),
        ),
        same(
            &["DS-X6"],
            "a subagent's words stay out of the answer",
            [
                &[m()][..],
                &call(0),
                &message_stop("m"),
                &[child(message_start("c"))],
                &say(0, "mine").map(child),
                &[answered(false, "x")],
            ]
            .concat(),
            [&called()[..], &[output(none())]].concat(),
        )
        .but(
            &["nothing-lost"],
            [
                &called()[..],
                &[
                    subagent(),
                    subagent(),
                    subagent(),
                    output(none()),
                    subagent(),
                ],
            ]
            .concat(),
        ),
    ]
}

fn ends() -> Vec<Case> {
    let finish = |reason: &str| [json!({ "type": "finish", "finishReason": reason })];
    let said = || [&[message_start("m")][..], &say(0, "one")].concat();
    let ending = |reason: &str| [&text("#1", "one")[..], &finish(reason)].concat();
    let case = |row: &'static [&'static str], what: &'static str, result: Value, reason: &str| {
        same(row, what, said(), ending(reason)).answer(result)
    };
    let broken = json!({
        "subtype": "success", "is_error": true, "stop_reason": "stop_sequence", "terminal_reason": "api_error",
        "api_error_status": 400, "result": "API Error: 400 no",
    });
    let error = json!({ "type": "error", "errorText": "API Error: 400 no" });
    let stopped = json!({
        "subtype": "error_during_execution", "is_error": true, "stop_reason": null,
        "terminal_reason": "aborted_streaming",
    });
    vec![
        case(&["DS-39", "DS-X6"], "an end", json!({}), "stop"),
        case(
            &["DS-X6"],
            "the model's limit of tokens",
            json!({ "stop_reason": "max_tokens" }),
            "length",
        ),
        case(
            &["DS-X6"],
            "a refusal",
            json!({ "stop_reason": "refusal", "is_error": true }),
            "other",
        )
        .but(&["finish-reasons"], ending("content-filter")),
        case(
            &["DS-X6"],
            "the limit of turns, reached with a call",
            json!({
                "subtype": "error_max_turns", "is_error": true, "stop_reason": "tool_use",
                "terminal_reason": "max_turns",
            }),
            "tool-calls",
        )
        .but(&["finish-reasons"], ending("length")),
        same(
            &["DS-X8"],
            "an error",
            said(),
            [
                &text("#1", "one")[..],
                std::slice::from_ref(&error),
                &finish("error"),
            ]
            .concat(),
        )
        .answer(broken)
        .but(
            &["turn-error"],
            [&text("#1", "one")[..], &[kind("message-metadata"), error]].concat(),
        ),
        same(&["DS-X8"], "a cancel", said(), ending("stop"))
            .answer(stopped)
            .but(
                &["abort"],
                [
                    &text("#1", "one")[..],
                    &[kind("message-metadata"), kind("abort")],
                ]
                .concat(),
            ),
    ]
}
