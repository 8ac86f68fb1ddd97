//! Tests of the content of a turn, known or unknown, and of the chunks that carry it.

use super::fixture::{A, Fixture};
use crate::hub::HubCx;
use crate::store::MemoryStore;
use crate::testing::{SettingsBuilder, line};
use acpipe_model::answer_file::ReceivedFile;
use acpipe_policy::Mode;
use serde_json::{Value, json};
use std::time::Instant;

/// Finished turn.
struct Played {
    chunks: Vec<Value>,
    summary: Value,
    /// Messages that the agent received.
    received: Vec<Value>,
}

impl Played {
    fn of(&self, kind: &str) -> Vec<&Value> {
        let chunks = self.chunks.iter();
        chunks.filter(|chunk| chunk["type"] == kind).collect()
    }

    #[track_caller]
    fn one(&self, kind: &str) -> &Value {
        let [chunk] = self.of(kind)[..] else {
            panic!("not one {kind} in {:?}", self.chunks);
        };
        chunk
    }
}

/// Plays a turn in which the agent writes these lines and ends with this result. `SESSION` in a line is the agent's
/// session.
fn play_to(lines: &[String], result: &Value) -> Played {
    let settings = SettingsBuilder::new(Instant::now());
    let mut t = Fixture::under(Mode::Approve, Box::new(MemoryStore), settings, &[A]);
    let call = t.prompt(A, "s");
    let session = t.prompted();
    let agent = t.agents[0];
    let prompt = t.requests.pop().unwrap();
    let end = json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}).to_string();
    for text in lines.iter().chain([&end]) {
        let input = line(&text.replace("SESSION", &session));
        let mut cx = HubCx::new(t.now, &mut t.sinks);
        assert!(t.hub.agent(agent, input, &mut cx).is_none());
        t.settle();
    }
    let chunks = t.sinks.0[&A].chunks.iter();
    Played {
        chunks: chunks.map(|given| given.chunk.clone()).collect(),
        summary: t.result(A, call),
        received: t.received,
    }
}

fn play(lines: &[String]) -> Played {
    play_to(lines, &json!({"stopReason": "end_turn"}))
}

/// Line with an update of this session.
fn of(session: &str, update: &Value) -> String {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params}).to_string()
}

fn update(update: &Value) -> String {
    of("SESSION", update)
}

/// Returns a piece of the answer.
fn piece(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn say(text: &str) -> String {
    update(&piece(text))
}

/// Line with a permission request for call `t`.
fn ask(session: &str) -> String {
    let options = json!([{"optionId": "y", "name": "Y", "kind": "allow_once"}]);
    let params = json!({"sessionId": session, "toolCall": {"toolCallId": "t"}, "options": options});
    let request = json!({"jsonrpc": "2.0", "id": format!("q-{session}"), "params": params,
        "method": "session/request_permission"});
    request.to_string()
}

#[test]
fn plans_notices_and_user_text_have_chunks() {
    let entries =
        json!([{"content": "a", "priority": "high", "status": "pending"}, {"content": "b"}]);
    let turn = play(&[
        say("x"),
        update(&json!({"sessionUpdate": "plan", "entries": entries})),
        update(&json!({"sessionUpdate": "plan", "entries": []})),
        update(&json!({"sessionUpdate": "notice", "severity": "warning", "title": "careful"})),
        update(
            &json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "mine"}}),
        ),
        update(
            &json!({"sessionUpdate": "compaction_update", "compactionId": "c1", "status": "completed"}),
        ),
        say("y"),
    ]);
    let plans = turn.of("data-plan");
    assert_eq!(plans[0]["id"], "plan");
    assert_eq!(plans[0]["data"], json!({"entries": entries}));
    assert_eq!(plans[1]["data"], json!({"entries": []}));
    let notice = turn.one("data-notice");
    assert_eq!(notice["transient"], true);
    assert_eq!(notice["data"]["title"], "careful");
    let text = &turn.one("data-user-message")["data"]["content"]["text"];
    assert_eq!(text, "mine");
    assert_eq!(turn.one("data-compaction")["id"], "c1");
    // The user's text is not part of the answer.
    assert_eq!(turn.summary["text"], "xy");
}

/// The files of an answer without text are its output, and the summary describes them as its chunks do.
#[test]
fn answer_without_text_has_its_files_in_the_summary() {
    let file =
        |role: &str, block: &Value| update(&json!({"sessionUpdate": role, "content": block}));
    let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
    let blocks = [
        image.clone(),
        json!({"type": "image", "mimeType": "image/png", "data": "aGk=", "uri": "file:///tmp/shot.png"}),
        json!({"type": "resource", "resource": {"uri": "mem:///a/x.bin", "blob": "AAAA"}}),
        json!({"type": "resource", "resource": {"uri": "file:///a/n.txt", "mimeType": "text/x", "text": "h\u{e9}"}}),
        json!({"type": "resource_link", "uri": "file:///data/out.pdf", "name": "Report", "size": 12, "mimeType": "a/b"}),
        json!({"type": "resource_link", "uri": "https://x.org/page", "name": "Page", "mimeType": "text/html"}),
        json!({"type": "resource_link", "uri": "data:text/x,a%20b", "name": "n"}),
    ];
    let shown = blocks
        .iter()
        .map(|block| file("agent_message_chunk", block));
    let others = ["agent_thought_chunk", "user_message_chunk"];
    let others = others.map(|role| file(role, &image));
    let turn = play(&shown.chain(others).collect::<Vec<_>>());
    assert_eq!(turn.summary["errors"], json!([]));
    let files = turn.summary["files"].as_array().unwrap();
    let facts = |file: &Value| {
        let facts = ["mediaType", "name", "uri", "isLink", "size"];
        Value::from(facts.map(|fact| file[fact].clone()).to_vec())
    };
    assert_eq!(
        Value::from(files.iter().map(facts).collect::<Vec<_>>()),
        json!([
            ["image/png", null, null, false, 5],
            ["image/png", "shot.png", "file:///tmp/shot.png", false, 2],
            [
                "application/octet-stream",
                "x.bin",
                "mem:///a/x.bin",
                false,
                3
            ],
            ["text/x", "n.txt", "file:///a/n.txt", false, 3],
            ["a/b", "Report", "file:///data/out.pdf", true, 12],
            ["text/html", "Page", "https://x.org/page", true, null],
            ["text/x", "n", null, false, 3],
        ])
    );
    let chunks = turn.chunks.iter().filter_map(ReceivedFile::of_chunk);
    let chunks: Vec<_> = chunks.map(|file| json!(file.about)).collect();
    assert_eq!(chunks, *files);
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
    let lines = odd.iter().map(update).chain([say("still here")]);
    let turn = play(&lines.collect::<Vec<_>>());
    let carried = turn.of("data-acp").into_iter();
    let carried: Vec<&Value> = carried.map(|chunk| &chunk["data"]["update"]).collect();
    assert_eq!(carried, odd.iter().collect::<Vec<_>>());
    assert_eq!(turn.summary["text"], "still here");
}

#[test]
fn update_with_one_invalid_field_keeps_the_others() {
    let text = json!({"type": "text", "text": "kept"});
    let output = json!([{"type": "content", "content": {"type": "text", "text": "out"}}, 5, {"type": "odd"}]);
    let turn = play(&[
        update(
            &json!({"sessionUpdate": "agent_message_chunk", "content": text, "messageId": 5, "_meta": null}),
        ),
        update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": 7, "kind": {"x": 1},
            "status": "paused", "rawInput": "text", "locations": "here", "content": {}}),
        ),
        update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed",
            "content": output}),
        ),
        update(&json!({"sessionUpdate": "plan", "entries": "none"})),
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"text":"last wins","text":"!","type":"text"},"sessionUpdate":"agent_message_chunk"},"sessionId":"SESSION"},"x":1}"#.to_owned(),
    ]);
    assert_eq!(turn.summary["text"], "kept!");
    assert_eq!(turn.summary["toolCalls"][0]["arguments"], "text");
    assert_eq!(turn.summary["toolResults"][0]["result"], "out");
}

/// Agents written in JavaScript cut texts anywhere, and strict readers (such as this test's) reject half a
/// surrogate pair.
#[test]
fn lone_surrogate_keeps_the_stream_valid() {
    let escaped = |text: &str| say("HERE").replace("HERE", text);
    let turn = play(&[escaped(r"a \ud83d b"), escaped(r"\u00e9 \ud83d\ude00")]);
    assert_eq!(turn.summary["text"], "a \u{fffd} b\u{e9} \u{1F600}");
}

#[test]
fn meta_of_a_piece_is_kept() {
    let mut first = piece("x");
    first["_meta"] = json!({"a": 1});
    let mut second = piece("y");
    second["content"]["_meta"] = json!({"b": 2});
    second["content"]["annotations"] = json!({"priority": 1});
    let result = json!({"stopReason": "end_turn", "_meta": {"c": 3}});
    let turn = play_to(&[update(&first), update(&second)], &result);
    let about = &turn.one("text-start")["providerMetadata"]["acp"];
    assert_eq!(about["_meta"], json!({"a": 1}));
    assert_eq!(
        turn.of("text-delta")[1]["providerMetadata"]["acp"],
        // Readers replace a block's metadata, so all of it is repeated.
        json!({"_meta": {"a": 1}, "annotations": {"priority": 1}, "contentMeta": {"b": 2}})
    );
    assert_eq!(turn.summary["metadata"]["agent"], json!({"c": 3}));
}

/// A block's metadata is repeated when it changes, but its size is bounded.
#[test]
fn repeated_block_metadata_stays_bounded() {
    let pieces = (0..2000).map(|n| {
        let mut piece = piece("x");
        piece["_meta"] = json!({format!("at {n}"): n});
        update(&piece)
    });
    let turn = play(&pieces.collect::<Vec<_>>());
    assert_eq!(turn.summary["text"].as_str().unwrap().len(), 2000);
    let size: usize = turn.chunks.iter().map(|c| c.to_string().len()).sum();
    assert!(size < 3_000_000, "{size}");
    let last = turn.of("text-delta").last().unwrap().to_string();
    assert!(last.contains("at 1999"), "{last}");
}

/// An agent runs a subagent, whose output arrives under a session id that acpipe did not open.
#[test]
fn subagent_output_is_separate_and_may_request_permission() {
    let turn = play(&[
        say("main"),
        update(
            &json!({"sessionUpdate": "subagent_update", "sessionId": "child", "title": "helps",
            "state": {"state": "running"}}),
        ),
        update(
            &json!({"sessionUpdate": "session_message", "messageId": "l", "senderSessionId": "SESSION",
            "recipientSessionId": "child", "content": [{"type": "text", "text": "do"}]}),
        ),
        of("child", &piece("apart")),
        of(
            "child",
            &json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "kind": "edit",
            "rawInput": {}}),
        ),
        ask("child"),
        update(
            &json!({"sessionUpdate": "subagent_update", "sessionId": "child", "state": {"state": "idle"}}),
        ),
    ]);
    let answer = turn.received.iter().find(|m| m["id"] == "q-child").unwrap();
    assert_eq!(answer["result"]["outcome"]["outcome"], "selected");
    assert_eq!(turn.summary["text"], "main");
    assert_eq!(turn.summary["toolCalls"], json!([]));
    let shown = turn.of("data-subagent");
    assert!(shown.iter().all(|c| c["id"] == "child"));
    let last = &shown.last().unwrap()["data"];
    let info = json!({"title": "helps", "state": {"state": "idle"}});
    assert_eq!(last["info"], info);
    let message = &turn.one("data-session-message")["data"];
    assert_eq!(message["content"][0]["text"], "do");
    let parts = last["message"]["parts"].as_array().unwrap().iter();
    let parts: Vec<_> = parts
        .map(|p| (p["type"].as_str().unwrap(), p["state"].clone()))
        .collect();
    assert_eq!(parts[1], ("text", json!("done")));
    assert!(parts.contains(&("data-permission", Value::Null)));
    // The agent ended its turn without a result of this tool call.
    assert!(parts.contains(&("dynamic-tool", json!("output-available"))));
}

/// Nested subagents are reported beside their parent, and a permission request belongs to the session whose
/// call it concerns.
#[test]
fn nested_subagents_are_separate() {
    let begun = |id: &str, title: &str| json!({"sessionUpdate": "subagent_update", "sessionId": id, "title": title});
    let turn = play(&[
        update(&begun("one", "first")),
        of("one", &begun("two", "second")),
        of("two", &piece("deep")),
        ask("two"),
        update(&json!({"sessionUpdate": "tool_call", "toolCallId": "t", "name": "Main"})),
        ask("SESSION"),
    ]);
    let shown = turn.of("data-subagent");
    let last = |id: &str| &shown.iter().rfind(|c| c["id"] == id).unwrap()["data"];
    assert_eq!(last("one")["info"]["title"], "first");
    assert_eq!(last("two")["info"]["title"], "second");
    let questions = |id: &str| {
        let parts = last(id)["message"]["parts"].as_array().unwrap().iter();
        parts.filter(|p| p["type"] == "data-permission").count()
    };
    assert_eq!((questions("one"), questions("two")), (0, 1));
    // The first call of that id is the subagent's.
    assert_eq!(turn.one("tool-approval-request")["toolCallId"], "t#2");
    assert_eq!(turn.summary["toolsUsed"], json!(["Main"]));
}

#[test]
fn a_new_message_id_begins_a_new_block() {
    let of_message = |id: Option<&str>, text: &str| {
        let mut piece = piece(text);
        if let Some(id) = id {
            piece["messageId"] = id.into();
        }
        update(&piece)
    };
    let turn = play(&[
        of_message(Some("a"), "1"),
        of_message(Some("a"), "2"),
        of_message(Some("b"), "3"),
        of_message(None, "4"),
    ]);
    let starts = turn.of("text-start").into_iter();
    let ids: Vec<&Value> = starts
        .map(|c| &c["providerMetadata"]["acp"]["messageId"])
        .collect();
    assert_eq!(ids, [&json!("a"), &json!("b"), &Value::Null]);
    assert_eq!(turn.summary["text"], "1234");
}
