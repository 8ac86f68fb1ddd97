//! Turns as chunks and as a summary; the tests of tool calls are in `tools`, and tables of all ends, errors and results
//! beside the hub (`crates/core/src/hub/tests/summaries.rs`).

mod background;

use crate::harness::server::{Server, Turn};
use crate::harness::steps::{end, say, think};
use serde_json::{Value, json};

/// Plays one run of `session/prompt`.
pub fn play(steps: &[Value]) -> Turn {
    let mut s = Server::ready(&json!({"session/prompt": [steps]}));
    s.waive("session/state");
    s.prompt("go")
}

#[test]
fn text_and_thought_come_as_blocks() {
    let turn = play(&[
        think("hm"),
        think("m"),
        say("Hel"),
        say("lo \"w\"\n\u{1F600}"),
        say(""),
        think("ok"),
        say("."),
        end("end_turn"),
    ]);
    assert_eq!(
        turn.types().join(" "),
        "start start-step reasoning-start reasoning-delta reasoning-delta reasoning-end \
         text-start text-delta text-delta text-delta text-end \
         reasoning-start reasoning-delta reasoning-end text-start text-delta text-end \
         finish-step finish"
    );
    let s = &turn.summary;
    assert_eq!(s["text"], "Hello \"w\"\n\u{1F600}.");
    assert_eq!(s["sessionId"], "default");
    assert_eq!(s["stopReason"], "end_turn");
    assert_eq!(s["finishReason"], "stop");
    assert_eq!(s["isError"], false);
    assert_eq!(s["attempts"], 1);
    for unknown in [
        "usage",
        "cost",
        "numTurns",
        "errorReason",
        "structuredOutput",
    ] {
        assert_eq!(s[unknown], Value::Null, "{unknown}");
    }
    for empty in ["files", "errors", "toolCalls", "toolResults", "toolsUsed"] {
        assert_eq!(s[empty], json!([]), "{empty}");
    }
    let start = &turn.chunks[0];
    assert_eq!(start["messageMetadata"]["acp"]["sessionId"], "fake-1");
    assert_eq!(
        turn.last()["messageMetadata"]["acp"]["stopReason"],
        "end_turn"
    );
}

#[test]
fn the_prompt_reaches_the_agent_and_its_echo_the_client() {
    let mut s = Server::ready(&json!({}));
    let text = "line one\n\"two\" \\ \u{1F600} \u{0} end";
    let turn = s.prompt(text);
    assert_eq!(turn.summary["text"], text);
    let message = json!({"id": "m1", "role": "user", "parts": [
        {"type": "text", "text": "a"},
        {"type": "step-start"},
        {"type": "file", "url": "https://x.org/a.pdf", "mediaType": "application/pdf", "filename": "a.pdf"},
        {"type": "file", "url": "data:image/png;base64,QUJD", "mediaType": "image/png"},
        {"type": "text", "text": "b"},
    ]});
    // The agent accepts no images: the prompt is refused, unless `degrade` allows a link instead.
    let refused = s.call_error("session/prompt", &json!({"message": message}));
    assert_eq!(refused["data"]["kind"], "invalidParams");
    assert_eq!(refused["data"]["field"], "message.parts");
    let id = s.send(
        "session/prompt",
        &json!({"message": message, "turnId": "my turn", "degrade": true}),
    );
    let turn = s.turn(&id);
    assert_eq!(turn.summary["turnId"], "my turn");
    let notice = turn.one("data-notice");
    assert_eq!(notice["data"]["severity"], "warning");
    assert_eq!(notice["transient"], true);
    assert_eq!(turn.summary["text"], "ab");
    assert_eq!(
        turn.summary["metadata"]["skippedParts"],
        json!(["step-start"])
    );
    let log = s.finish().log;
    let prompts = crate::harness::calls(&log, "session/prompt");
    assert_eq!(
        prompts[0]["params"],
        json!({"sessionId": "fake-1", "prompt": [{"type": "text", "text": text}]})
    );
    let blocks = &prompts[1]["params"]["prompt"];
    assert_eq!(blocks.as_array().unwrap().len(), 4);
    assert_eq!(blocks[1]["type"], "resource_link");
    assert_eq!(blocks[1]["uri"], "https://x.org/a.pdf");
    assert_eq!(blocks[1]["name"], "a.pdf");
    assert_eq!(blocks[1]["mimeType"], "application/pdf");
    assert_eq!(blocks[2]["type"], "resource_link");
}

#[test]
fn overhead_excludes_the_time_of_the_agent() {
    let turn = play(&[say("a"), json!({"sleep": 300}), end("end_turn")]);
    let overhead = turn.summary["overheadMs"].as_f64().unwrap();
    let duration = turn.summary["durationMs"].as_f64().unwrap();
    assert!(duration >= 300.0, "{duration}");
    assert!(overhead <= duration - 250.0, "{overhead} of {duration}");
}
