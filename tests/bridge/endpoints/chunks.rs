//! AI SDK endpoints: the message that acpipe's stream builds is the one that the endpoint's stream builds.

use super::server::Endpoint;
use super::{connected, request};
use crate::harness::run::Run;
use crate::harness::server::Server;
use acpipe_core::fold::Fold;
use serde_json::{Value, json};

/// A turn whose chunks are those of an endpoint: the rules for acpipe's own chunks do not hold for them.
struct PassedTurn {
    summary: Value,
    chunks: Vec<Value>,
}

impl PassedTurn {
    fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks
            .iter()
            .filter(|chunk| chunk["type"] == kind)
            .collect()
    }
}

fn prompt(s: &mut Server, text: &str) -> PassedTurn {
    let id = s.send_prompt("default", text);
    let summary = s.result(&id);
    let chunks = s.take_chunks("default");
    PassedTurn { summary, chunks }
}

fn events(chunks: &[Value]) -> String {
    let events = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    events.collect::<String>() + "data: [DONE]\n\n"
}

/// Folds chunks, without what acpipe adds to each message: its id, its own metadata and the first step.
fn folded(chunks: &[Value]) -> Value {
    let mut fold = Fold::default();
    for chunk in chunks {
        fold.push(chunk);
    }
    let mut message = fold.message();
    message["id"] = json!("");
    if let Some(metadata) = message["metadata"].as_object_mut() {
        metadata.remove("ui-stream");
    }
    if message["metadata"] == json!({}) {
        message["metadata"] = Value::Null;
    }
    let parts = message["parts"].as_array_mut().unwrap();
    if parts
        .first()
        .is_some_and(|part| part["type"] == "step-start")
    {
        parts.remove(0);
    }
    message
}

fn major_5() -> Vec<Value> {
    vec![
        json!({"type": "start", "messageId": "e1", "messageMetadata": {"a": 1}}),
        json!({"type": "start-step"}),
        json!({"type": "reasoning-start", "id": "0", "providerMetadata": {"p": {"x": 1}}}),
        json!({"type": "reasoning-delta", "id": "0", "delta": "hm"}),
        json!({"type": "reasoning-end", "id": "0", "providerMetadata": {"p": {"signature": "s"}}}),
        json!({"type": "text-start", "id": "0"}),
        json!({"type": "text-delta", "id": "0", "delta": "let me "}),
        json!({"type": "text-delta", "id": "0", "delta": "look", "providerMetadata": {"p": {"y": 2}}}),
        json!({"type": "text-end", "id": "0"}),
        json!({"type": "tool-input-start", "toolCallId": "t1", "toolName": "look"}),
        json!({"type": "tool-input-delta", "toolCallId": "t1", "inputTextDelta": "{\"q\":"}),
        json!({"type": "tool-input-delta", "toolCallId": "t1", "inputTextDelta": "1}"}),
        json!({"type": "tool-input-available", "toolCallId": "t1", "toolName": "look", "input": {"q": 1},
               "providerMetadata": {"p": {"c": 1}}}),
        json!({"type": "tool-output-available", "toolCallId": "t1", "output": {"n": 1}, "preliminary": true}),
        json!({"type": "tool-output-available", "toolCallId": "t1", "output": {"n": 2}}),
        json!({"type": "tool-input-available", "toolCallId": "t2", "toolName": "d", "input": null, "dynamic": true}),
        json!({"type": "tool-output-error", "toolCallId": "t2", "errorText": "bad", "dynamic": true}),
        json!({"type": "tool-input-error", "toolCallId": "t3", "toolName": "look", "input": "x", "errorText": "no"}),
        json!({"type": "source-url", "sourceId": "s", "url": "https://h/", "title": "H"}),
        json!({"type": "source-document", "sourceId": "d", "mediaType": "text/plain", "title": "D", "filename": "d.txt"}),
        json!({"type": "file", "url": "data:text/plain,x", "mediaType": "text/plain"}),
        json!({"type": "data-weather", "id": "w", "data": {"t": 1}}),
        json!({"type": "data-weather", "id": "w", "data": {"t": 2}}),
        json!({"type": "data-note", "data": "n"}),
        json!({"type": "data-progress", "data": 5, "transient": true}),
        json!({"type": "finish-step"}),
        json!({"type": "start-step"}),
        json!({"type": "text-start", "id": "0"}),
        json!({"type": "text-delta", "id": "0", "delta": "done"}),
        json!({"type": "message-metadata", "messageMetadata": {"b": {"c": [1]}}}),
        json!({"type": "text-end", "id": "0"}),
        json!({"type": "finish-step"}),
        json!({"type": "finish", "messageMetadata": {"b": {"d": 2}}}),
    ]
}

fn major_6() -> Vec<Value> {
    vec![
        json!({"type": "start"}),
        json!({"type": "start-step"}),
        json!({"type": "tool-input-start", "toolCallId": "t", "toolName": "run", "title": "Run",
               "providerExecuted": true, "toolMetadata": {"m": 1}, "dynamic": true}),
        json!({"type": "tool-input-available", "toolCallId": "t", "toolName": "run", "input": {}, "title": "Run",
               "providerExecuted": true, "dynamic": true}),
        json!({"type": "tool-output-available", "toolCallId": "t", "output": "o", "dynamic": true,
               "providerMetadata": {"p": {"r": 1}}}),
        json!({"type": "finish-step"}),
        json!({"type": "finish", "finishReason": "stop"}),
    ]
}

fn major_7() -> Vec<Value> {
    vec![
        json!({"type": "start", "messageId": "e7"}),
        json!({"type": "start-step"}),
        json!({"type": "text-start", "id": "x"}),
        json!({"type": "text-delta", "id": "x", "delta": "gone"}),
        json!({"type": "text-end", "id": "x"}),
        json!({"type": "reset-step"}),
        json!({"type": "text-start", "id": "x"}),
        json!({"type": "text-delta", "id": "x", "delta": "kept"}),
        json!({"type": "text-end", "id": "x", "citations": [{"url": "https://h/"}]}),
        json!({"type": "tool-input-available", "toolCallId": "t", "toolName": "rm", "input": {"p": "/"}}),
        json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "t", "reason": "why",
               "isAutomatic": true, "signature": "sig", "approvalDescriptor": {"o": 1}, "inputSchemaInput": {"s": 1}}),
        json!({"type": "tool-approval-response", "approvalId": "q", "approved": false, "reason": "no"}),
        json!({"type": "tool-output-denied", "toolCallId": "t"}),
        json!({"type": "reasoning-file", "url": "data:text/plain,x", "mediaType": "text/plain"}),
        json!({"type": "custom", "kind": "a.b", "providerMetadata": {"p": {"k": 1}}}),
        json!({"type": "steering-message", "id": "m", "parts": [{"type": "text", "text": "also"}]}),
        json!({"type": "finish-step"}),
        json!({"type": "finish", "finishReason": "stop"}),
    ]
}

#[test]
fn message_equals_that_of_the_endpoint_s_own_stream() {
    for chunks in [major_5(), major_6(), major_7()] {
        let endpoint = Endpoint::of_streams(&[&events(&chunks)]);
        let mut s = connected(&endpoint, "ui-stream", &[], &[]);
        let turn = prompt(&mut s, "go");
        assert_eq!(turn.summary["isError"], false, "{}", turn.summary);
        assert_eq!(folded(&turn.chunks), folded(&chunks));
        if chunks == major_5() {
            let transient = json!({"type": "data-progress", "data": 5, "transient": true});
            assert_eq!(turn.of("data-progress"), [&transient]);
            assert_eq!(turn.summary["text"], "let me lookdone");
            let files = turn.summary["files"].as_array().unwrap().iter();
            let files: Vec<Value> = files
                .map(|file| json!([file["name"], file["uri"], file["size"]]))
                .collect();
            let wanted = [
                json!(["H", "https://h/", null]),
                json!(["d.txt", "d", null]),
                json!([null, null, 1]),
            ];
            assert_eq!(files, wanted);
            let calls = turn.summary["toolCalls"].as_array().unwrap().iter();
            let names: Vec<&Value> = calls.map(|call| &call["name"]).collect();
            assert_eq!(names, ["look", "d", "look"]);
            assert_eq!(turn.summary["toolResults"][0]["result"], "{\"n\":2}");
        }
        let list = s.call("message/list", &json!({"sessionId": "default"}));
        let mut stored = list["messages"].as_array().unwrap().last().unwrap().clone();
        stored["id"] = json!("");
        let mut want = folded(&turn.chunks);
        let parts = want["parts"].as_array_mut().unwrap();
        parts.insert(0, json!({"type": "step-start"}));
        assert_eq!(stored["parts"], want["parts"]);
    }
}

/// A reader of the answer sees the text of a chunk that has members which acpipe does not know.
#[test]
fn text_with_unknown_members_is_part_of_the_answer() {
    let chunks = [
        json!({"type": "text-start", "id": "x"}),
        json!({"type": "text-delta", "id": "x", "delta": "one ", "trace": 1}),
        json!({"type": "text-delta", "id": "x", "delta": "two"}),
        json!({"type": "text-end", "id": "x"}),
    ];
    let endpoint = Endpoint::of_streams(&[&events(&chunks)]);
    let run = Run::new(&["run", "--protocol", "ui-stream", "hi"]);
    let outcome = run.agent(&[&endpoint.url()]).go().expect(0);
    assert_eq!(outcome.text(), "one two\n");
}

#[test]
fn tool_chunk_that_cannot_be_read_is_reported() {
    let text = [
        json!({"type": "text-start", "id": "x"}),
        json!({"type": "text-delta", "id": "x", "delta": "one"}),
        json!({"type": "text-end", "id": "x"}),
    ];
    let cut = "data: {\"type\":\"tool-output-available\",\"toolCallId\":\"a\",\"output\":1\n\n";
    let endpoint = Endpoint::of_streams(&[&format!("{cut}{}", events(&text))]);
    let args = [
        "run",
        "-q",
        "--permissions",
        "deny",
        "--protocol",
        "ui-stream",
        "hi",
    ];
    let outcome = Run::new(&args).agent(&[&endpoint.url()]).go();
    assert!(
        outcome
            .stderr
            .contains("may have run a tool without asking"),
        "{}",
        outcome.show()
    );
}

#[test]
fn request_is_that_of_the_sdk_and_carries_the_history() {
    let endpoint = Endpoint::of_streams(&[&events(&major_7()), &events(&major_6())]);
    let mut s = connected(&endpoint, "ui-stream", &[], &[]);
    prompt(&mut s, "one");
    prompt(&mut s, "two");
    let first = request(&endpoint);
    assert!(
        first.head.starts_with("post /v1 http/1.1"),
        "{}",
        first.head
    );
    assert_eq!(first.body["trigger"], "submit-message");
    let second = request(&endpoint).body;
    assert_eq!(second["id"], first.body["id"]);
    let roles: Vec<&Value> = second["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(
        second["messages"][0]["parts"],
        json!([{"type": "text", "text": "one"}])
    );
    assert_eq!(second["messages"][1]["parts"][1]["text"], "kept");
}

#[test]
fn everything_that_a_broken_stream_leaves_open_is_ended() {
    let open = [
        json!({"type": "start"}),
        json!({"type": "start-step"}),
        json!({"type": "text-start", "id": "a"}),
        json!({"type": "text-delta", "id": "a", "delta": "half"}),
        json!({"type": "reasoning-start", "id": "a"}),
        json!({"type": "tool-input-start", "toolCallId": "t1", "toolName": "n"}),
        json!({"type": "tool-input-delta", "toolCallId": "t1", "inputTextDelta": "{"}),
        json!({"type": "tool-input-available", "toolCallId": "t2", "toolName": "n", "input": 1, "dynamic": true}),
        json!({"type": "tool-input-available", "toolCallId": "t3", "toolName": "n", "input": 1}),
        json!({"type": "tool-approval-request", "approvalId": "q", "toolCallId": "t3"}),
    ];
    let body = events(&open).replace("data: [DONE]\n\n", "");
    let failing = json!({"type": "error", "errorText": "boom"});
    let reported = body.clone() + &events(&[failing]);
    for (body, kind) in [(body, "streaming"), (reported, "session")] {
        let endpoint = Endpoint::of_streams(&[&body]);
        let mut s = connected(&endpoint, "ui-stream", &[], &[]);
        let turn = prompt(&mut s, "go");
        assert_eq!(turn.summary["errors"][0]["kind"], kind, "{}", turn.summary);
        assert_eq!(turn.summary["text"], "half");
        let message = folded(&turn.chunks);
        let states: Vec<&str> = message["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|part| part["state"].as_str())
            .collect();
        assert_eq!(
            states,
            [
                "done",
                "done",
                "output-error",
                "output-error",
                "output-denied"
            ]
        );
    }
}

#[test]
fn chunks_that_readers_would_reject_become_data() {
    let endpoint = Endpoint::of_streams(&[&events(&[
        json!({"type": "text-delta", "id": "none", "delta": "lost?"}),
        json!({"type": "future-chunk", "x": 1}),
        json!({"type": "tool-output-available", "toolCallId": "none", "output": 1}),
        json!({"type": "finish"}),
    ])]);
    let mut s = connected(&endpoint, "ui-stream", &[], &[]);
    let turn = prompt(&mut s, "go");
    let data = turn.of("data-ui-stream");
    let kinds: Vec<&Value> = data
        .iter()
        .map(|chunk| &chunk["data"]["update"]["type"])
        .collect();
    assert_eq!(
        kinds,
        ["text-delta", "future-chunk", "tool-output-available"]
    );
}

#[test]
fn abort_of_the_endpoint_ends_the_turn_as_cancelled() {
    let endpoint = Endpoint::of_streams(&[&events(&[
        json!({"type": "start"}),
        json!({"type": "abort", "reason": "enough"}),
    ])]);
    let mut s = connected(&endpoint, "ui-stream", &[], &[]);
    let turn = prompt(&mut s, "go");
    assert_eq!(turn.chunks.last().unwrap()["type"], "abort");
    assert_eq!(turn.summary["stopReason"], "cancelled");
}
