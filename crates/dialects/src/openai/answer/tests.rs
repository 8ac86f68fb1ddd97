//! Answers in the forms of the common servers.

use super::*;

/// Content of an answer, and its end.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    text: String,
    thoughts: String,
    /// Id, name and input of each tool call.
    calls: Vec<(String, String, Value)>,
    others: usize,
    end: String,
}

fn note(seen: &mut Seen, update: &Update<'_>) {
    match update {
        Update::Message(piece) => {
            let text = piece.content.text().unwrap().decode().into_owned();
            match piece.role {
                MessageRole::Thought => seen.thoughts.push_str(&text),
                _ => seen.text.push_str(&text),
            }
        }
        Update::Tool(tool) if tool.begins => {
            let name = tool.name.as_deref().unwrap_or_default().to_owned();
            seen.calls
                .push((tool.id.clone().into_owned(), name, Value::Null));
        }
        Update::Tool(tool) => {
            let call = seen.calls.iter_mut().find(|(id, ..)| *id == tool.id);
            if let (Some(input), Some((.., known))) = (&tool.input, call) {
                *known = value(input);
            }
        }
        _ => seen.others += 1,
    }
}

fn finish(mut body: CompletionBody, mut seen: Seen) -> Seen {
    let mut updates = Vec::new();
    let end = body.end(&mut updates);
    for update in &updates {
        note(&mut seen, update);
    }
    seen.end = match end {
        Ok(end) => format!("{:?} {}", end.stop_reason, end.reported),
        Err(error) => error.kind.name().to_owned(),
    };
    seen
}

/// Reads a stream of these events.
fn stream(events: &[Value]) -> Seen {
    let mut body = CompletionBody::new(Caller::default(), false);
    let mut seen = Seen::default();
    for event in events {
        let line = match event {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let mut updates = Vec::new();
        assert!(body.read(&line, &mut updates).is_ok(), "{line}");
        for (update, _) in &updates {
            note(&mut seen, update);
        }
    }
    finish(body, seen)
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn stop(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn texts_and_reasoning_of_the_common_servers_are_read() {
    let cases = [
        (json!({"content": "a"}), "a", ""),
        (
            json!({"role": "assistant", "content": null, "refusal": null}),
            "",
            "",
        ),
        (json!({"reasoning_content": "t"}), "", "t"),
        (json!({"reasoning": "t", "content": ""}), "", "t"),
        (json!({"reasoning_text": "t"}), "", "t"),
        (json!({"reasoning": "t", "reasoning_content": "t"}), "", "t"),
        (json!({"content": [{"type": "text", "text": "a"}]}), "a", ""),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}]}),
            "a",
            "t",
        ),
        (json!({"refusal": "no"}), "no", ""),
    ];
    for (piece, text, thoughts) in cases {
        let seen = stream(&[delta(&piece), stop("stop"), json!("[DONE]")]);
        assert_eq!(
            (seen.text.as_str(), seen.thoughts.as_str()),
            (text, thoughts),
            "{piece}"
        );
    }
}

#[test]
fn members_of_the_end_do_not_repeat_the_key() {
    let caller = Caller::default();
    caller.secrets.add_values(["topsecret"]);
    let mut body = CompletionBody::new(caller, false);
    let mut completion = stop("topsecret");
    completion["model"] = json!("topsecret");
    completion["other"] = json!({"topsecret": ["dG9wc2VjcmV0", 1]});
    completion["usage"] = json!({"prompt_tokens": 7, "topsecret": "topsecret"});
    let line = completion.to_string();
    assert!(body.read(&line, &mut Vec::new()).is_ok());
    let Ok(end) = body.end(&mut Vec::new()) else {
        panic!("an end");
    };
    let others = serde_json::to_string(&end.other).unwrap();
    assert_eq!(end.reported, "[hidden]");
    assert_eq!(end.usage.unwrap().input_tokens, Some(7));
    assert!(
        !others.contains("topsecret") && !others.contains("dG9wc2VjcmV0"),
        "{others}"
    );
}

#[test]
fn finish_reasons_are_stop_reasons() {
    for (reason, want) in [
        ("stop", "EndTurn end_turn"),
        ("length", "MaxTokens max_tokens"),
        ("content_filter", "Refusal refusal"),
        ("tool_calls", "Unknown tool_calls"),
    ] {
        assert_eq!(
            stream(&[delta(&json!({"content": "a"})), stop(reason)]).end,
            want
        );
    }
    let refused = stream(&[delta(&json!({"refusal": "no"})), stop("stop")]);
    assert_eq!(refused.end, "Refusal refusal");
    let done = stream(&[delta(&json!({"content": "a"})), json!("[DONE]")]);
    assert_eq!(done.end, "EndTurn end_turn");
    assert_eq!(stream(&[delta(&json!({"content": "a"}))]).end, "streaming");
    assert_eq!(stream(&[json!("[DONE]")]).end, "malformed");
    assert_eq!(stream(&[json!({"error": "boom"})]).end, "session");
    let limited = json!({"error": {"message": "slow", "type": "rate_limit_error"}});
    assert_eq!(stream(&[limited]).end, "overloaded");
}

#[test]
fn pieces_of_tool_calls_are_joined_by_index_and_id() {
    let piece = |index: Value, id: Value, name: Value, arguments: &str| {
        delta(
            &json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let none = Value::Null;
    let seen = stream(&[
        piece(json!(0), json!("a"), json!("f"), "{\"x\""),
        piece(json!(1), json!("b"), json!("g"), ""),
        piece(json!(0), none.clone(), none.clone(), ":1}"),
        // Another id at the same index is another call.
        piece(json!(0), json!("c"), json!("h"), "not json"),
        stop("tool_calls"),
    ]);
    let want = [
        ("a", "f", json!({"x": 1})),
        ("b", "g", json!({})),
        ("c", "h", json!("not json")),
    ];
    let want = want.map(|(id, name, input)| (id.to_owned(), name.to_owned(), input));
    assert_eq!(seen.calls, want);
}

#[test]
fn whole_answer_is_read_like_a_stream() {
    let body = json!({"choices": [{"index": 0, "finish_reason": "stop", "message": {
        "content": "a", "reasoning": "t",
        "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}]
    }}]});
    let mut reader = CompletionBody::new(Caller::default(), false);
    let (mut seen, mut updates) = (Seen::default(), Vec::new());
    reader.read_whole(&body.to_string(), &mut updates).unwrap();
    for update in &updates {
        note(&mut seen, update);
    }
    let seen = finish(reader, seen);
    assert_eq!((seen.text.as_str(), seen.thoughts.as_str()), ("a", "t"));
    assert_eq!(seen.calls[0].2, json!({"x": 1}));
    let mut reader = CompletionBody::new(Caller::default(), false);
    let error = reader.read_whole("{\"error\":{\"message\":\"boom\"}}", &mut Vec::new());
    assert!(error.unwrap_err().message.contains("boom"));
}

#[test]
fn structured_answer_and_usage_are_in_the_end() {
    let mut body = CompletionBody::new(Caller::default(), true);
    let lines = [
        delta(&json!({"content": "{\"a\":"})),
        delta(&json!({"content": "1}"})),
        stop("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "prompt_cache_hit_tokens": 1}}),
    ];
    for line in lines {
        let line = line.to_string();
        assert!(body.read(&line, &mut Vec::new()).is_ok());
    }
    let end = body.end(&mut Vec::new()).unwrap();
    assert_eq!(end.structured_output.unwrap().get(), "{\"a\":1}");
    let usage = end.usage.unwrap();
    assert_eq!(
        (
            usage.input_tokens,
            usage.output_tokens,
            usage.total_tokens,
            usage.cached_read_tokens
        ),
        (Some(2), Some(3), Some(5), Some(1))
    );
}

#[test]
fn calls_of_one_id_are_several_calls() {
    let piece = |index: u64, id: &str, arguments: &str| {
        json!({"choices": [{"delta": {"tool_calls": [{"index": index, "id": id,
            "function": {"name": "f", "arguments": arguments}}]}}]})
    };
    let seen = stream(&[
        piece(0, "a", "{\"n\":"),
        piece(0, "a", "1}"),
        piece(1, "a", "{\"n\":2}"),
        json!("[DONE]"),
    ]);
    let call = |id: &str, n: u64| (id.to_owned(), "f".to_owned(), json!({"n": n}));
    assert_eq!(seen.calls, [call("a", 1), call("a#2", 2)]);
}
