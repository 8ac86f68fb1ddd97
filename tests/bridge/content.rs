//! Content of a turn, known or unknown, and the chunks that carry it.

use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool, tool_change};
use crate::turn::play;
use serde_json::{Value, json};

#[test]
fn plans_notices_and_user_text_have_chunks() {
    let update = |u: Value| json!({"update": u});
    let entries =
        json!([{"content": "a", "priority": "high", "status": "pending"}, {"content": "b"}]);
    let turn = play(&[
        say("x"),
        update(json!({"sessionUpdate": "plan", "entries": entries})),
        update(json!({"sessionUpdate": "plan", "entries": []})),
        update(json!({"sessionUpdate": "notice", "severity": "warning", "title": "careful"})),
        update(
            json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "mine"}}),
        ),
        update(
            json!({"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "completed"}),
        ),
        say("y"),
        end("end_turn"),
    ]);
    let plans = turn.of("data-plan");
    assert_eq!(plans[0]["id"], "plan");
    assert_eq!(plans[0]["data"], json!({"entries": entries}));
    assert_eq!(plans[1]["data"], json!({"entries": []}));
    let notice = turn.one("data-notice");
    assert_eq!(notice["transient"], true);
    assert_eq!(notice["data"]["title"], "careful");
    assert_eq!(
        turn.one("data-user-message")["data"]["content"]["text"],
        "mine"
    );
    assert_eq!(turn.one("data-compaction")["id"], "c1");
    // The user's text is not part of the answer.
    assert_eq!(turn.summary["text"], "xy");
}

#[test]
fn update_without_a_chunk_type_is_carried_verbatim() {
    let odd = [
        json!({"sessionUpdate": "brand_new", "deep": {"x": [1, null]}, "n": 1.50}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": 1}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": "text"}),
        json!({"sessionUpdate": "agent_message_chunk"}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 5}}),
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}),
        json!({"sessionUpdate": 7}),
        json!({"no": "kind"}),
        json!([1, 2]),
        json!("text"),
    ];
    let mut steps: Vec<Value> = odd.iter().map(|u| json!({"update": u})).collect();
    steps.extend([say("still here"), end("end_turn")]);
    let turn = play(&steps);
    let carried: Vec<&Value> = turn
        .of("data-acp")
        .iter()
        .map(|c| &c["data"]["update"])
        .collect();
    assert_eq!(carried, odd.iter().collect::<Vec<_>>());
    assert_eq!(turn.summary["text"], "still here");
}

#[test]
fn update_with_one_invalid_field_keeps_the_others() {
    let text = json!({"type": "text", "text": "kept"});
    let turn = play(&[
        json!({"update": {"sessionUpdate": "agent_message_chunk", "content": text, "messageId": 5, "_meta": null}}),
        tool(
            "t",
            &json!({"title": 7, "kind": {"x": 1}, "status": "paused", "rawInput": "text", "locations": "here", "content": {}}),
        ),
        tool_change(
            "t",
            &json!({"status": "completed", "content": [{"type": "content", "content": {"type": "text", "text": "out"}}, 5, {"type": "odd"}]}),
        ),
        json!({"update": {"sessionUpdate": "plan", "entries": "none"}}),
        json!({"line": r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"text":"last wins","text":"!","type":"text"},"sessionUpdate":"agent_message_chunk"},"sessionId":"{session}"},"x":1}"#}),
        end("end_turn"),
    ]);
    assert_eq!(turn.summary["text"], "kept!");
    assert_eq!(turn.summary["toolCalls"][0]["arguments"], "text");
    assert_eq!(turn.summary["toolResults"][0]["result"], "out");
}

/// Agents written in JavaScript cut texts anywhere, and strict readers (such as this test's) reject half a
/// surrogate pair.
#[test]
fn lone_surrogate_keeps_the_stream_valid() {
    let text = |text: &str| json!({"line": format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#)});
    let turn = play(&[
        text(r"a \ud83d b"),
        text(r"\u00e9 \ud83d\ude00"),
        end("end_turn"),
    ]);
    assert_eq!(turn.summary["text"], "a \u{fffd} b\u{e9} \u{1F600}");
}

#[test]
fn meta_of_a_piece_is_kept() {
    let turn = play(&[
        json!({"update": {"sessionUpdate": "agent_message_chunk", "_meta": {"a": 1}, "content": {"type": "text", "text": "x"}}}),
        json!({"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "y", "_meta": {"b": 2}, "annotations": {"priority": 1}}}}),
        json!({"reply": {"stopReason": "end_turn", "_meta": {"c": 3}}}),
    ]);
    assert_eq!(
        turn.one("text-start")["providerMetadata"]["acp"]["_meta"],
        json!({"a": 1})
    );
    assert_eq!(
        turn.of("text-delta")[1]["providerMetadata"]["acp"],
        // Readers replace a block's metadata, so all of it is repeated.
        json!({"_meta": {"a": 1}, "annotations": {"priority": 1}, "contentMeta": {"b": 2}})
    );
    assert_eq!(turn.summary["metadata"]["agent"], json!({"c": 3}));
}

/// An agent runs a subagent, whose output arrives under a session id that acpipe did not open.
#[test]
fn subagent_output_is_separate_and_may_request_permission() {
    let child = |update: Value| json!({"notify": {"method": "session/update", "params": {"sessionId": "child", "update": update}}});
    let mut s = Server::ready(&json!({"session/prompt": [[
        say("main "),
        {"update": {"sessionUpdate": "subagent_update", "sessionId": "child", "title": "helps", "state": {"state": "running"}}},
        {"update": {"sessionUpdate": "session_message", "messageId": "l", "senderSessionId": "fake-1", "recipientSessionId": "child", "content": [{"type": "text", "text": "do"}]}},
        child(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "apart"}})),
        child(json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "kind": "edit", "rawInput": {}})),
        {"ask": {"method": "session/request_permission", "params": {
            "sessionId": "child", "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}}},
        {"echoAnswer": true},
        {"update": {"sessionUpdate": "subagent_update", "sessionId": "child", "state": {"state": "idle"}}},
        end("end_turn"),
    ]]}));
    let turn = s.prompt("go");
    let text = turn.summary["text"].as_str().unwrap();
    assert!(
        text.starts_with("main {") && text.contains("selected"),
        "{text}"
    );
    assert_eq!(turn.summary["toolCalls"], json!([]));
    let shown = turn.of("data-subagent");
    assert!(shown.iter().all(|c| c["id"] == "child"));
    let last = &shown.last().unwrap()["data"];
    assert_eq!(
        last["info"],
        json!({"title": "helps", "state": {"state": "idle"}})
    );
    assert_eq!(
        turn.one("data-session-message")["data"]["content"][0]["text"],
        "do"
    );
    let parts: Vec<_> = last["message"]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (p["type"].as_str().unwrap(), p["state"].clone()))
        .collect();
    assert_eq!(parts[1], ("text", json!("done")));
    assert!(parts.contains(&("data-permission", Value::Null)));
    // The agent ended its turn without a result of this tool call.
    assert!(parts.contains(&("dynamic-tool", json!("output-available"))));
}

/// A block's metadata is repeated when it changes, but its size is bounded.
#[test]
fn repeated_block_metadata_stays_bounded() {
    let piece = |n: u32| {
        json!({"update": {"sessionUpdate": "agent_message_chunk",
            "_meta": {format!("at {n}"): n}, "content": {"type": "text", "text": "x"}}})
    };
    let turn = play(
        &(0..2000)
            .map(piece)
            .chain([end("end_turn")])
            .collect::<Vec<_>>(),
    );
    assert_eq!(turn.summary["text"].as_str().unwrap().len(), 2000);
    let size: usize = turn.chunks.iter().map(|c| c.to_string().len()).sum();
    assert!(size < 3_000_000, "{size}");
    let last = turn.of("text-delta").last().unwrap().to_string();
    assert!(last.contains("at 1999"), "{last}");
}

/// Nested subagents are reported beside their parent, and a permission request belongs to the session whose
/// call it concerns.
#[test]
fn nested_subagents_are_separate() {
    let of = |session: &str, update: Value| json!({"notify": {"method": "session/update", "params": {"sessionId": session, "update": update}}});
    let ask = |session: &str| {
        json!({"ask": {"method": "session/request_permission", "params": {
            "sessionId": session, "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}}})
    };
    let turn = play(&[
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "one", "title": "first"}}),
        of(
            "one",
            json!({"sessionUpdate": "subagent_update", "sessionId": "two", "title": "second"}),
        ),
        of(
            "two",
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "deep"}}),
        ),
        ask("two"),
        tool("t", &json!({"name": "Main"})),
        ask("{session}"),
        end("end_turn"),
    ]);
    let shown = turn.of("data-subagent");
    let last = |id: &str| &shown.iter().rfind(|c| c["id"] == id).unwrap()["data"];
    assert_eq!(last("one")["info"]["title"], "first");
    assert_eq!(last("two")["info"]["title"], "second");
    let questions = |id: &str| {
        let parts = last(id)["message"]["parts"].as_array().unwrap();
        parts
            .iter()
            .filter(|p| p["type"] == "data-permission")
            .count()
    };
    assert_eq!((questions("one"), questions("two")), (0, 1));
    // The first call of that id is the subagent's.
    assert_eq!(turn.one("tool-approval-request")["toolCallId"], "t#2");
    assert_eq!(turn.summary["toolsUsed"], json!(["Main"]));
}

#[test]
fn a_new_message_id_begins_a_new_block() {
    let piece = |id: Value, text: &str| {
        let mut update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        if !id.is_null() {
            update["messageId"] = id;
        }
        json!({"update": update})
    };
    let turn = play(&[
        piece(json!("a"), "1"),
        piece(json!("a"), "2"),
        piece(json!("b"), "3"),
        piece(json!(null), "4"),
        end("end_turn"),
    ]);
    let starts = turn.of("text-start");
    let ids: Vec<&Value> = starts
        .iter()
        .map(|c| &c["providerMetadata"]["acp"]["messageId"])
        .collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &Value::Null]);
    assert_eq!(turn.summary["text"], "1234");
}
