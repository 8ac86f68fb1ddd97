//! Tests of the AG-UI events of a turn.

use super::*;
use serde_json::{Value, json};

/// Translates the chunks of a turn; the events have no `metadata` if it is not compared.
fn events(chunks: &[Value]) -> Vec<Value> {
    let mut run = RunEvents::new("s", "t");
    let mut events = Vec::new();
    for chunk in chunks {
        run.chunk(chunk.to_string().as_bytes(), &mut |event| {
            events.push(json!(event));
        });
    }
    events
}

/// Translates chunks after `start`, without the event of that.
fn within(chunks: &[Value]) -> Vec<Value> {
    let start = [json!({"type": "start", "messageId": "m"})];
    events(&[&start, chunks].concat()).split_off(1)
}

#[test]
fn run_begins_and_ends_with_its_ids_and_metadata() {
    let about = json!({"acp": {"sessionId": "a"}});
    let got = events(&[
        json!({"type": "start", "messageId": "m", "messageMetadata": about}),
        json!({"type": "start-step"}),
        json!({"type": "finish-step"}),
        json!({"type": "start-step"}),
        json!({"type": "finish-step"}),
        json!({"type": "data-structured-output", "id": "structured-output", "data": [1]}),
        json!({"type": "finish", "finishReason": "stop", "messageMetadata": {"acp": {"usage": 1}}}),
    ]);
    let want = json!([
        {"type": "RUN_STARTED", "threadId": "s", "runId": "t", "protocolVersion": "1.0",
            "metadata": {"acp": {"sessionId": "a"}, "acpipe": {"messageId": "m"}}},
        {"type": "STEP_STARTED", "stepName": "step1"},
        {"type": "STEP_FINISHED", "stepName": "step1"},
        {"type": "STEP_STARTED", "stepName": "step2"},
        {"type": "STEP_FINISHED", "stepName": "step2"},
        {"type": "CUSTOM", "name": "data-structured-output", "value": {"id": "structured-output", "data": [1]}},
        {"type": "RUN_FINISHED", "threadId": "s", "runId": "t", "outcome": {"type": "success"},
            "result": {"finishReason": "stop", "structuredOutput": [1]}, "metadata": {"acp": {"usage": 1}}},
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn cancelled_run_finishes_and_failed_run_has_the_kind_of_its_error() {
    let got = within(&[json!({"type": "abort", "reason": "cancelled"})]);
    let want = json!([{"type": "RUN_FINISHED", "threadId": "s", "runId": "t", "outcome": {"type": "cancelled"},
        "metadata": {"acpipe": {"reason": "cancelled"}}}]);
    assert_eq!(json!(got), want);
    let metadata = json!({"acp": {"error": {"kind": "agentExited", "message": "x"}}});
    let got = within(&[
        json!({"type": "message-metadata", "messageMetadata": metadata}),
        json!({"type": "error", "errorText": "x"}),
    ]);
    let want = json!([
        {"type": "CUSTOM", "name": "message-metadata", "value": {"messageMetadata": metadata}},
        {"type": "RUN_ERROR", "message": "x", "code": "agentExited"},
    ]);
    assert_eq!(json!(got), want);
    // A turn that never began.
    let got = events(&[json!({"type": "error", "errorText": "x"})]);
    assert_eq!(json!(got), json!([{"type": "RUN_ERROR", "message": "x"}]));
}

#[test]
fn texts_and_reasoning_are_messages_of_their_block() {
    let anthropic = json!({"anthropic": {"signature": "s"}});
    let got = within(&[
        json!({"type": "reasoning-start", "id": "m.1"}),
        json!({"type": "reasoning-delta", "id": "m.1", "delta": "hm"}),
        json!({"type": "reasoning-end", "id": "m.1", "providerMetadata": anthropic}),
        json!({"type": "text-start", "id": "m.2", "providerMetadata": {"acp": {"messageId": "x"}}}),
        json!({"type": "text-delta", "id": "m.2", "delta": ""}),
        json!({"type": "text-delta", "id": "m.2", "delta": "\u{1f600}\n"}),
        json!({"type": "text-end", "id": "m.2"}),
    ]);
    let want = json!([
        {"type": "REASONING_START", "messageId": "m.1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m.1", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m.1", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "m.1", "metadata": anthropic},
        {"type": "REASONING_END", "messageId": "m.1"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m.2", "role": "assistant",
            "metadata": {"acp": {"messageId": "x"}}},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m.2", "delta": "\u{1f600}\n"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m.2"},
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn ids_of_an_endpoint_become_unique() {
    let block = |kind: &str| json!({"type": format!("{kind}-start"), "id": "0"});
    let end = |kind: &str| json!({"type": format!("{kind}-end"), "id": "0"});
    let got = within(&[
        block("text"),
        end("text"),
        block("reasoning"),
        end("reasoning"),
        block("text"),
        end("text"),
    ]);
    let starts = got.iter().filter(|event| event["role"].is_string());
    let ids: Vec<&Value> = starts.map(|event| &event["messageId"]).collect();
    assert_eq!(ids, ["m.text.0", "m.reasoning.0", "m.text.0.2"]);
}

fn available(input: &Value) -> Value {
    json!({"type": "tool-input-available", "toolCallId": "c", "toolName": "read", "input": input,
        "dynamic": true, "providerExecuted": true, "title": "Read", "toolMetadata": {"acp": {"kind": "read"}}})
}

fn output(output: &Value) -> Value {
    json!({"type": "tool-output-available", "toolCallId": "c", "output": output,
        "dynamic": true, "providerExecuted": true, "toolMetadata": {"acp": {"status": "completed"}}})
}

#[test]
fn call_has_its_input_and_one_result() {
    let whole = json!({"content": [{"type": "content", "content": {"type": "text", "text": "a"}}], "rawOutput": 1});
    let got = within(&[
        json!({"type": "text-start", "id": "m.1"}),
        json!({"type": "text-end", "id": "m.1"}),
        available(&json!({"path": "\"a\""})),
        available(&json!({"path": "b"})),
        output(&whole),
        output(&json!(null)),
    ]);
    let want = json!([
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "read", "parentMessageId": "m.1",
            "metadata": {"acp": {"kind": "read"}, "acpipe": {"title": "Read"}}},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"path\":\"\\\"a\\\"\"}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m.tool-call.c", "activityType": "tool-call",
            "content": {"toolCallId": "c", "toolName": "read", "input": {"path": "b"}, "title": "Read",
                "toolMetadata": {"acp": {"kind": "read"}}}},
        {"type": "TOOL_CALL_RESULT", "messageId": "m.result.c", "toolCallId": "c", "content": "a", "role": "tool",
            "metadata": {"acp": {"status": "completed"}, "acpipe": {"output": whole}}},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m.tool-call.c", "activityType": "tool-call",
            "content": {"toolCallId": "c", "output": null, "toolMetadata": {"acp": {"status": "completed"}}}},
    ]);
    assert_eq!(json!(got[2..]), want);
}

#[test]
fn input_in_pieces_is_sent_as_it_comes() {
    let got = within(&[
        json!({"type": "tool-input-start", "toolCallId": "c", "toolName": "Read", "dynamic": true,
            "providerExecuted": true}),
        json!({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{}"}),
        available(&json!({})),
        json!({"type": "tool-output-denied", "toolCallId": "c"}),
    ]);
    let want = json!([
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "Read"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{}"},
        {"type": "TOOL_CALL_END", "toolCallId": "c",
            "metadata": {"acp": {"kind": "read"}, "acpipe": {"input": {}, "title": "Read"}}},
        {"type": "TOOL_CALL_RESULT", "messageId": "m.result.c", "toolCallId": "c",
            "content": "Permission refused", "role": "tool", "metadata": {"acpipe": {"denied": true}}},
    ]);
    assert_eq!(json!(got), want);
}

#[test]
fn failed_call_has_its_error_as_result() {
    let error = |kind: &str| {
        json!({"type": kind, "toolCallId": "c", "toolName": "Read", "input": "{\"a", "errorText": "no",
            "dynamic": true, "providerExecuted": true})
    };
    let got = within(&[error("tool-input-error")]);
    let types: Vec<&Value> = got.iter().map(|event| &event["type"]).collect();
    let want = [
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
    ];
    assert_eq!(types, want);
    let result = json!({"type": "TOOL_CALL_RESULT", "messageId": "m.result.c", "toolCallId": "c", "content": "no",
        "role": "tool", "metadata": {"acpipe": {"isError": true}}});
    assert_eq!(got[3], result);
    let got = within(&[available(&json!({})), error("tool-output-error")]);
    assert_eq!(got[3], result);
}

#[test]
fn text_of_a_result_is_the_first_that_there_is() {
    let text = |text: &str| json!({"type": "content", "content": {"type": "text", "text": text}});
    let diff = json!({"type": "diff", "path": "/a", "newText": "x"});
    let cases = [
        (
            json!({"content": [text("a"), diff, text("b")], "rawOutput": "r"}),
            "a\nb",
        ),
        (
            json!({"content": [], "terminalOutput": "t", "rawOutput": {"a": 1}}),
            "t",
        ),
        (json!({"rawOutput": "r", "note": "n"}), "r"),
        (json!({"rawOutput": {"a": 1}}), "{\"a\":1}"),
        (json!({"rawOutput": null, "note": "n"}), "n"),
        (
            json!({"content": [diff]}),
            "{\"content\":[{\"type\":\"diff\",\"path\":\"/a\",\"newText\":\"x\"}]}",
        ),
        (json!("plain"), "plain"),
        (json!([1]), "[1]"),
        (json!(null), ""),
    ];
    for (whole, want) in cases {
        let got = within(&[available(&json!({})), output(&whole)]);
        assert_eq!(got[3]["content"], want, "{whole}");
        assert_eq!(got[3]["metadata"]["acpipe"]["output"], whole);
    }
}

#[test]
fn parts_are_activities_and_all_else_is_custom() {
    let plan = json!({"entries": []});
    let got = within(&[
        json!({"type": "data-plan", "id": "plan", "data": plan}),
        json!({"type": "file", "url": "data:,", "mediaType": "text/plain"}),
        json!({"type": "source-url", "sourceId": "u", "url": "u"}),
        json!({"type": "data-session", "id": "session", "data": {"modes": 1}, "transient": true}),
        json!({"type": "data-notice", "data": {"title": "x"}, "transient": true}),
        json!({"type": "data-x", "id": "x", "data": 1}),
        json!({"type": "tool-approval-response", "approvalId": "a", "approved": true, "reason": "r"}),
        json!({"type": "unheard-of", "x": 1}),
    ]);
    let want = json!([
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m.data-plan.plan", "activityType": "data-plan", "content": plan},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m.file.1", "activityType": "file",
            "content": {"url": "data:,", "mediaType": "text/plain"}},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m.source-url.2", "activityType": "source-url",
            "content": {"sourceId": "u", "url": "u"}},
        {"type": "STATE_SNAPSHOT", "snapshot": {"modes": 1}},
        {"type": "CUSTOM", "name": "data-notice", "value": {"data": {"title": "x"}, "transient": true}},
        {"type": "CUSTOM", "name": "data-x", "value": {"id": "x", "data": 1}},
        {"type": "CUSTOM", "name": "tool-approval-response",
            "value": {"approvalId": "a", "approved": true, "reason": "r"}},
        {"type": "CUSTOM", "name": "unheard-of", "value": {"x": 1}},
    ]);
    assert_eq!(json!(got), want);
}

/// A client that attaches in the middle of a turn, and chunks of an endpoint that leave something open.
#[test]
fn stream_opens_unopened_blocks_and_ends_open_ones() {
    let got = events(&[
        json!({"type": "text-delta", "id": "m.1", "delta": "a"}),
        json!({"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": "{"}),
        json!({"type": "start-step"}),
        json!({"type": "finish", "finishReason": "stop"}),
    ]);
    let types: Vec<&str> = got
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let want = [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "STEP_STARTED",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_END",
        "STEP_FINISHED",
        "RUN_FINISHED",
    ];
    assert_eq!(types, want);
}

#[test]
fn chunks_between_turns_have_events_without_a_run() {
    let of = |chunk: Value| {
        let mut got = Vec::new();
        event_between_turns(chunk.to_string().as_bytes(), &mut |event| {
            got.push(json!(event));
        });
        json!(got)
    };
    let session = json!({"type": "data-session", "id": "session", "data": {}, "transient": true});
    assert_eq!(
        of(session),
        json!([{"type": "STATE_SNAPSHOT", "snapshot": {}}])
    );
    let notice = json!({"type": "data-notice", "data": 1, "transient": true});
    let want =
        json!([{"type": "CUSTOM", "name": "data-notice", "value": {"data": 1, "transient": true}}]);
    assert_eq!(of(notice), want);
}
