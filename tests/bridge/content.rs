//! Content of a turn, known or unknown, and the chunks that carry it.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say, tool, tool_change};
use crate::turn::play;
use serde_json::{Value, json};

#[test]
fn images_resources_and_links_have_chunks() {
    let piece = |kind: &str, content: &Value| json!({"update": {"sessionUpdate": kind, "content": content}});
    let image =
        json!({"type": "image", "mimeType": "image/png", "data": "QUJD", "uri": "file:///a.png"});
    let turn = play(&[
        say("see"),
        piece("agent_message_chunk", &image),
        piece("agent_thought_chunk", &image),
        piece(
            "agent_message_chunk",
            &json!({"type": "audio", "mimeType": "audio/wav", "data": "QQ=="}),
        ),
        piece(
            "agent_message_chunk",
            &json!({"type": "resource_link", "uri": "https://x.org/a", "name": "A"}),
        ),
        piece(
            "agent_message_chunk",
            &json!({"type": "resource_link", "uri": "file:///d/b.md", "name": "b.md", "mimeType": "text/markdown"}),
        ),
        piece(
            "agent_message_chunk",
            &json!({"type": "resource", "resource": {"uri": "file:///d/c.txt", "text": "whole text"}}),
        ),
        piece(
            "agent_message_chunk",
            &json!({"type": "resource", "resource": {"uri": "file:///d/d.bin", "blob": "QUJD", "mimeType": "application/x"}}),
        ),
        say("done"),
        end("end_turn"),
    ]);
    let files = turn.of("file");
    assert_eq!(files.len(), 3);
    assert_eq!(files[0]["url"], "data:image/png;base64,QUJD");
    assert_eq!(files[0]["mediaType"], "image/png");
    assert_eq!(files[0]["providerMetadata"]["acp"]["uri"], "file:///a.png");
    assert_eq!(files[1]["url"], "data:audio/wav;base64,QQ==");
    assert_eq!(files[2]["url"], "data:application/x;base64,QUJD");
    assert_eq!(
        turn.one("reasoning-file")["url"],
        "data:image/png;base64,QUJD"
    );
    let link = turn.one("source-url");
    assert_eq!(
        (&link["url"], &link["title"]),
        (&json!("https://x.org/a"), &json!("A"))
    );
    let documents = turn.of("source-document");
    assert_eq!(documents[0]["sourceId"], "file:///d/b.md");
    assert_eq!(documents[0]["mediaType"], "text/markdown");
    assert_eq!(documents[1]["title"], "c.txt");
    assert_eq!(
        documents[1]["providerMetadata"]["acp"]["resource"]["text"],
        "whole text"
    );
    assert_eq!(turn.summary["text"], "seedone");
    assert_eq!(turn.of("text-start").len(), 2);
}

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

/// Lines of almost equal shape are decoded by their own content, not by that of the previous line.
#[test]
fn lines_of_similar_shape_are_decoded_independently() {
    let line = |session: &str, update: &str| json!({"line": format!(r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{{update}}}}}}}"#)});
    let plain = |text: &str| {
        line(
            "{session}",
            &format!(
                r#""sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":{text}}}"#
            ),
        )
    };
    let thought = |text: &str| {
        line(
            "{session}",
            &format!(
                r#""sessionUpdate":"agent_thought_chunk","content":{{"type":"text","text":{text}}}"#
            ),
        )
    };
    let with_id = |id: &str, text: &str| {
        line(
            "{session}",
            &format!(
                r#""sessionUpdate":"agent_message_chunk","messageId":"{id}","content":{{"type":"text","text":{text}}}"#
            ),
        )
    };
    let turn = play(&[
        plain("\"1\""),
        plain("\"2\""),
        thought("\"not me\""),
        plain("\"3\""),
        line(
            "nobody",
            r#""sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not me"}"#,
        ),
        plain(" \"4\" "),
        plain(r#""not me","text":"5""#),
        plain(r#""6"},"x":{"y":"not me""#),
        plain(r#""\u0037\n\"}}}}""#),
        plain(r#""bad \x escape""#),
        plain("\"bad \u{1} control\""),
        plain("8"),
        plain("\"8\""),
        json!({"line": r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"r"}}},"id":"a request"}"#}),
        plain("\"9\""),
        with_id("a", "\"a\""),
        with_id("b", "\"b\""),
        with_id("a", "\"c\""),
        line(
            "{session}",
            r#""sessionUpdate":"user_message_chunk","content":{"type":"text","text":"not me"}"#,
        ),
        with_id("a", "\"d\""),
        plain("\"\""),
        plain("\"e\""),
        end("end_turn"),
    ]);
    assert_eq!(
        turn.summary["text"],
        "1234567\n\"}}}}bad \u{1} control8r9abcde"
    );
    assert_eq!(turn.one("reasoning-delta")["delta"], "not me");
    // Only the number in place of a text is carried unchanged.
    assert_eq!(turn.one("data-acp")["data"]["update"]["content"]["text"], 8);
    assert_eq!(turn.of("data-user-message").len(), 1);
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

/// The size of a subagent's chunks stays in proportion to its text.
#[test]
fn verbose_subagent_is_shown_in_proportion() {
    let turn = play(&[
        json!({"update": {"sessionUpdate": "subagent_update", "sessionId": "child"}}),
        json!({"repeat": {"times": 5000, "steps": [{"notify": {"method": "session/update", "params": {"sessionId": "child",
            "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}}}}}]}}),
        end("end_turn"),
    ]);
    let shown = turn.of("data-subagent");
    // The agent sent about a megabyte.
    let size: usize = shown.iter().map(|c| c.to_string().len()).sum();
    assert!(
        size < 1_500_000 && shown.len() < 500,
        "{size} in {}",
        shown.len()
    );
    let parts = &shown.last().unwrap()["data"]["message"]["parts"];
    assert_eq!(parts[1]["text"].as_str().unwrap().len(), 25_000);
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

/// A summary that arrives in pieces is sent in proportion to its size, and complete at the end.
#[test]
fn compaction_pieces_are_shown_in_proportion() {
    let turn = play(&[
        json!({"repeat": {"times": 3000, "steps": [{"update": {"sessionUpdate": "compaction_summary_chunk",
            "compactionId": "c", "content": {"type": "text", "text": "piece {i}"}}}]}}),
        end("end_turn"),
    ]);
    let shown = turn.of("data-compaction");
    assert!(shown.len() < 100, "{}", shown.len());
    let summary = shown.last().unwrap()["data"]["summary"].as_array().unwrap();
    assert_eq!(summary.len(), 3000);
}

/// Lone surrogates, numbers out of range and very deep nesting: the limits of a parser end no turn.
#[test]
fn values_beyond_parser_limits_do_not_fail_the_turn() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    for odd in [r#""\ud83d""#, "1e999", &deep] {
        let line = |text: String| json!({"line": text});
        let update = |update: String| {
            line(format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{{session}}","_meta":{odd},"update":{update}}}}}"#
            ))
        };
        // The reader of this test may have the same limits, so only a regular end of the turn is checked.
        let steps = [
            update(format!(
                r#"{{"sessionUpdate":"tool_call","toolCallId":"t","rawInput":{odd},"_meta":{{"a":{odd},"terminal_exit":{{"terminal_id":"T","x":{odd}}}}},"odd":{odd},"title":{odd}}}"#
            )),
            line(format!(
                r#"{{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{{"sessionId":"{{session}}","_meta":{odd},"toolCall":{{"toolCallId":"t","rawInput":{odd}}},"options":[{{"optionId":"y","name":"Y","kind":"allow_once","_meta":{odd}}}]}}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"agent_message_chunk","_meta":{odd},"content":{{"type":"text","text":"x","_meta":{odd}}}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"agent_message_chunk","content":{{"type":"resource","resource":{{"uri":"a","text":"x","odd":{odd}}}}}}}"#
            )),
            update(format!(r#"{{"sessionUpdate":"plan","entries":{odd}}}"#)),
            update(format!(
                r#"{{"sessionUpdate":"usage_update","used":{odd}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"compaction_update","compactionId":"c","status":{odd}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"subagent_update","sessionId":"s","state":{odd}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"session_message","messageId":"m","content":{odd}}}"#
            )),
            update(format!(
                r#"{{"sessionUpdate":"current_mode_update","currentModeId":{odd}}}"#
            )),
            update(format!(r#"{{"sessionUpdate":"unheard of","odd":{odd}}}"#)),
            line(format!(
                r#"{{"jsonrpc":"2.0","id":{{id}},"result":{{"stopReason":"end_turn","usage":{odd},"_meta":{odd},"odd":{odd}}}}}"#
            )),
        ];
        let script = json!({"session/prompt": [steps]});
        let outcome = Run::new(&["run", "go"]).script(&script).go().expect(0);
        assert_eq!(outcome.text(), "x\n", "{odd}");
    }
}
