//! Tests of frames as they are in recordings.

#![expect(
    clippy::needless_pass_by_value,
    clippy::format_push_string,
    reason = "frames are written in place"
)]

mod beside;
mod once;
mod runs;

use super::*;
use acpipe_json::JsonStr;
use acpipe_model::event::{Content, MessageRole};
use serde_json::{Value, json};

/// Returns the updates of these lines in short form.
fn told(frames: &mut Frames, lines: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for line in lines {
        let line = line.as_str();
        let frame = Frame::read(line).unwrap();
        let mut events = Vec::new();
        frames.read(&frame, line, "s", &mut events);
        for event in events {
            let AgentEvent::Update {
                session, update, ..
            } = event
            else {
                panic!("{event:?}");
            };
            assert_eq!(session, "s");
            // The start of a message is passed through unchanged.
            if matches!(update, Update::TransientUpdate) && line.contains("message_start") {
                continue;
            }
            all.push(words(&update));
        }
    }
    all
}

fn words(update: &Update<'_>) -> String {
    match update {
        Update::Message(piece) => {
            let role = match piece.role {
                MessageRole::Answer => "text",
                MessageRole::Thought => "thought",
                MessageRole::User => "user",
            };
            let id = piece.message_id.as_deref().unwrap_or("-");
            let about = if piece.about.is_empty() {
                String::new()
            } else {
                format!(" {}", serde_json::to_string(&piece.about).unwrap())
            };
            let said = match &piece.content {
                Content::Text(text) => text.decode().into_owned(),
                Content::Rest(text) => format!("+{}", text.get()),
                other => panic!("{other:?}"),
            };
            format!("{role} {id} {said}{about}")
        }
        Update::TextEnd { provider: None } => "end".to_owned(),
        Update::TextEnd {
            provider: Some((name, members)),
        } => format!("end {name} {}", serde_json::to_string(members).unwrap()),
        Update::Tool(tool) => {
            let mut all = format!(
                "tool {}{}",
                tool.id,
                if tool.begins { " begins" } else { "" }
            );
            for word in [&tool.name, &tool.kind, &tool.title, &tool.status]
                .into_iter()
                .flatten()
            {
                all += &format!(" {word}");
            }
            if let Some(delta) = tool.input_delta {
                all += &format!(" delta {}", delta.decode());
            }
            for (name, raw) in [
                ("input", tool.input.as_deref()),
                ("output", tool.output),
                ("content", tool.content.as_deref()),
                ("at", tool.locations.as_deref()),
            ] {
                if let Some(raw) = raw {
                    all += &format!(" {name} {}", raw.get());
                }
            }
            if !tool.other.is_empty() {
                all += &format!(" other {}", serde_json::to_string(&tool.other).unwrap());
            }
            all
        }
        Update::Plan { data, .. } => format!("plan {}", serde_json::to_string(data).unwrap()),
        Update::Session(news) => format!("session {}", serde_json::to_string(news).unwrap()),
        Update::Compaction { id } => format!("compaction {id}"),
        Update::Subagent { id } => format!("subagent {id}"),
        Update::FromSubagent { id, update } => format!("[{id}] {}", words(update)),
        Update::Refused { tool, reason } => format!("refused {tool} {reason}"),
        Update::Step => "step".to_owned(),
        Update::Notice => "notice".to_owned(),
        Update::TransientUpdate => "passing".to_owned(),
        Update::Other => "other".to_owned(),
        update => panic!("{update:?}"),
    }
}

/// Returns a frame with an event of a message's stream.
fn stream(id: &str, parent: Value, event: Value) -> String {
    let mut frame = json!({
        "type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": parent,
        "uuid": "786fb590-a462-4b78-bb7a-f366915c13db", "api_message_id": id,
    });
    if frame["event"]["type"] == "message_stop" && frame["event"]["broken"] == true {
        frame["event"] = json!({"type": "message_stop"});
        frame["abandoned_blocks"] = json!({"api_message_id": id, "from_block_index": 0});
    }
    frame.to_string()
}

fn start(id: &str) -> String {
    let message = json!({"id": id, "role": "assistant", "model": "m", "content": []});
    stream(
        id,
        Value::Null,
        json!({"type": "message_start", "message": message}),
    )
}

fn block(id: &str, index: u64, block: Value) -> String {
    let event = json!({"type": "content_block_start", "index": index, "content_block": block});
    stream(id, Value::Null, event)
}

fn delta(id: &str, index: u64, delta: Value) -> String {
    let event = json!({"type": "content_block_delta", "index": index, "delta": delta});
    stream(id, Value::Null, event)
}

fn text_delta(id: &str, index: u64, text: &str) -> String {
    delta(id, index, json!({"type": "text_delta", "text": text}))
}

fn stop(id: &str, index: u64) -> String {
    stream(
        id,
        Value::Null,
        json!({"type": "content_block_stop", "index": index}),
    )
}

fn message_delta(id: &str) -> String {
    let event = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}});
    stream(id, Value::Null, event)
}

fn broken(id: &str) -> String {
    stream(
        id,
        Value::Null,
        json!({"type": "message_stop", "broken": true}),
    )
}

fn whole(id: &str, content: Value) -> String {
    json!({
        "type": "assistant", "message": {"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": content, "stop_reason": null}, "parent_tool_use_id": null, "session_id": "s",
        "uuid": "u", "timestamp": "t", "request_id": "r",
    })
    .to_string()
}

fn frame(mut frame: Value) -> String {
    frame["session_id"] = "s".into();
    frame.to_string()
}

fn all(lines: &[String]) -> Vec<String> {
    told(&mut Frames::default(), lines)
}

#[test]
fn a_delta_is_read_without_a_copy() {
    let line = r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"about \n"}},"session_id":"58410230-3224-4bfb-b07f-84e3792241e0","parent_tool_use_id":null,"uuid":"786fb590-a462-4b78-bb7a-f366915c13db","api_message_id":"msg_mock000112"}"#;
    let frame = Frame::read(line).unwrap();
    let mut events = Vec::new();
    let session = "58410230-3224-4bfb-b07f-84e3792241e0";
    Frames::default().read(&frame, line, session, &mut events);
    let [
        AgentEvent::Update {
            session: Cow::Borrowed(_),
            update: Update::Message(piece),
            original,
        },
    ] = events.as_slice()
    else {
        panic!("{events:?}");
    };
    assert!(matches!(
        piece.message_id,
        Some(Cow::Borrowed("msg_mock000112"))
    ));
    assert!(matches!(piece.content, Content::Text(text) if text.raw().get() == r#""about \n""#));
    assert!(piece.about.is_empty());
    assert_eq!(original.json().get(), line);
    let fields: Vec<_> = original
        .fields()
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    assert_eq!(fields, ["event", "api_message_id"]);
}

#[test]
fn streamed_blocks_are_reported_once() {
    let lines = [
        start("m"),
        block(
            "m",
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(
            "m",
            0,
            json!({"type": "thinking_delta", "thinking": "Let "}),
        ),
        delta(
            "m",
            0,
            json!({"type": "signature_delta", "signature": "bW9j"}),
        ),
        whole(
            "m",
            json!([{"type": "thinking", "thinking": "Let ", "signature": "bW9j"}]),
        ),
        stop("m", 0),
        block("m", 1, json!({"type": "redacted_thinking", "data": "xyz"})),
        whole("m", json!([{"type": "redacted_thinking", "data": "xyz"}])),
        stop("m", 1),
        block("m", 2, json!({"type": "text", "text": ""})),
        text_delta("m", 2, "Hi "),
        delta(
            "m",
            2,
            json!({"type": "citations_delta", "citation": {"url": "u"}}),
        ),
        whole(
            "m",
            json!([{"type": "text", "text": "Hi ", "citations": [{"url": "u"}]}]),
        ),
        stop("m", 2),
        block(
            "m",
            3,
            json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}}),
        ),
        delta(
            "m",
            3,
            json!({"type": "input_json_delta", "partial_json": ""}),
        ),
        delta(
            "m",
            3,
            json!({"type": "input_json_delta", "partial_json": "{\"file_path\": \"/a\"}"}),
        ),
        whole(
            "m",
            json!([{"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/a"}}]),
        ),
        stop("m", 3),
        message_delta("m"),
        stream("m", Value::Null, json!({"type": "message_stop"})),
    ];
    let want = [
        "step",
        "thought m Let ",
        r#"end anthropic {"signature":"bW9j"}"#,
        r#"thought m +"" {"redacted":true}"#,
        r#"end anthropic {"redactedData":"xyz"}"#,
        "text m Hi ",
        r#"text m +"" {"citations":[{"url":"u"}]}"#,
        "end",
        "tool t begins Read read Read pending",
        r#"tool t delta {"file_path": "/a"}"#,
        r#"tool t Read read Read /a input {"file_path":"/a"} at [{"path":"/a"}]"#,
        "passing",
    ];
    assert_eq!(all(&lines), want);
    // If only whole blocks are received, text that was sent in pieces above is reported at once.
    let is_whole = |line: &&String| line.contains(r#""type":"assistant""#);
    let blocks: Vec<String> = lines.iter().filter(is_whole).cloned().collect();
    let want = [
        "step",
        "thought m Let ",
        r#"end anthropic {"signature":"bW9j"}"#,
        r#"thought m +"" {"redacted":true}"#,
        r#"end anthropic {"redactedData":"xyz"}"#,
        r#"text m Hi  {"citations":[{"url":"u"}]}"#,
        "end",
        r#"tool t begins Read read Read /a pending input {"file_path":"/a"} at [{"path":"/a"}]"#,
    ];
    assert_eq!(all(&blocks), want);
    // If no whole block is received.
    let bits: Vec<String> = lines.iter().filter(|l| !is_whole(l)).cloned().collect();
    assert!(all(&bits).contains(
        &r#"tool t Read read Read /a input {"file_path": "/a"} at [{"path":"/a"}]"#.to_owned()
    ));
}

#[test]
fn repeated_stream_is_reported_once() {
    // As in the recordings "error-midstream" and "error-hangup".
    let begun = [
        start("a"),
        block("a", 0, json!({"type": "text", "text": ""})),
        text_delta("a", 0, "about "),
        text_delta("a", 0, "to break "),
        stop("a", 0),
        broken("a"),
    ];
    let shown = [
        "step",
        "text a about ",
        "text a to break ",
        "end",
        "passing",
    ];
    let again = |text: &str| whole("b", json!([{"type": "text", "text": text}]));
    for (repeats, want) in [
        (vec![again("about to break ")], vec![]),
        (vec![again("about to")], vec![]),
        (
            vec![again("about to break it")],
            vec!["text b +\"it\"", "end"],
        ),
        (vec![again("another")], vec!["text b another", "end"]),
        (
            // Streamed again, and continued.
            vec![
                start("b"),
                block("b", 0, json!({"type": "text", "text": ""})),
                text_delta("b", 0, "about"),
                text_delta("b", 0, " to break it"),
                text_delta("b", 0, " all"),
                again("about to break it all"),
                stop("b", 0),
            ],
            vec!["text b +\"it\"", "text b  all", "end"],
        ),
        (
            // Streamed again with different text.
            vec![
                start("b"),
                text_delta("b", 0, "about"),
                text_delta("b", 0, " us"),
                stop("b", 0),
            ],
            vec!["text b +\"about us\"", "end"],
        ),
        (
            // Broken again before the end of the shown text.
            vec![
                start("b"),
                text_delta("b", 0, "about"),
                broken("b"),
                whole("c", json!([{"type": "text", "text": "about to break in"}])),
            ],
            vec!["passing", "text c +\"in\"", "end"],
        ),
    ] {
        let lines = [begun.to_vec(), repeats].concat();
        let want = [shown.to_vec(), want].concat();
        assert_eq!(all(&lines), want);
    }
    // Equal text in two messages is shown twice if no stream broke.
    let mut lines = begun[..5].to_vec();
    lines.extend([message_delta("a"), again("about to break ")]);
    assert_eq!(
        all(&lines)[4..],
        ["passing", "step", "text b about to break ", "end"]
    );
}

#[test]
fn partial_stream_is_completed_by_the_full_message() {
    let begun = [start("m"), text_delta("m", 0, "one ")];
    for (said, want) in [
        ("one two", vec!["text m +\"two\"", "end"]),
        ("one ", vec!["end"]),
        ("on", vec!["end"]),
        ("other", vec!["end", "text m other", "end"]),
    ] {
        let mut lines = begun.to_vec();
        lines.extend([
            whole("m", json!([{"type": "text", "text": said}])),
            stop("m", 0),
        ]);
        assert_eq!(all(&lines)[2..], want, "{said}");
    }
    // A call with incomplete input was not made.
    let lines = [
        start("m"),
        block(
            "m",
            0,
            json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}}),
        ),
        delta(
            "m",
            0,
            json!({"type": "input_json_delta", "partial_json": "{\"com"}),
        ),
        stop("m", 0),
        broken("m"),
    ];
    let said = all(&lines);
    assert!(
        said[3].starts_with("tool t Bash failed content"),
        "{said:?}"
    );
    // Some versions repeat all blocks with each new one.
    let lines = [
        whole("m", json!([{"type": "text", "text": "a"}])),
        whole(
            "m",
            json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ),
    ];
    assert_eq!(all(&lines), ["step", "text m a", "end", "text m b", "end"]);
}

#[test]
fn unknown_blocks_are_forwarded() {
    let lines = [
        block("m", 0, json!({"type": "novel", "x": 1})),
        delta("m", 0, json!({"type": "novel_delta", "x": 1})),
        stop("m", 0),
        delta("m", 1, json!({"type": "text_delta", "text": 7})),
        delta("m", 1, json!({"type": "text_delta", "text": "t", "new": 1})),
        stream("m", Value::Null, json!("odd")),
        stream("m", Value::Null, json!({"type": "novel"})),
        frame(json!({"type": "assistant", "message": {"id": "n", "content": "odd"}})),
        frame(json!({"type": "system", "subtype": "novel"})),
        frame(json!({"type": "novel"})),
        frame(json!({"no": "type"})),
        frame(json!({"type": "user", "message": {"content": "who says this?"}})),
    ];
    let said = all(&lines);
    assert_eq!(
        said.iter().filter(|said| *said == "other").count(),
        10,
        "{said:?}"
    );
    assert_eq!(said.len(), 11, "{said:?}");
    assert!(Frame::read("[]").is_none());
}
