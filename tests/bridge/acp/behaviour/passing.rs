//! Messages that acpipe does not interpret, in both directions.

use super::editor::Editor;
use crate::acp::peer::Answer;
use crate::harness::calls;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Lines that the agent sends in a turn, and the editor receives with another session id.
const LINES: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"text":"id last","type":"text"},"sessionUpdate":"agent_message_chunk"},"sessionId":"{session}"}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"tool_call","toolCallId":"t1","title":"sum","kind":"unheard_of","status":"weird","content":[{"type":"hologram","angle":1.50}],"locations":[{"path":"/a","line":3,"column":7}],"_meta":{"a":{"b":[1.0]}}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"plan","entries":[{"content":"x","priority":"urgent","status":"pending","_meta":{"k":1e2}}],"more":true}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.10,"currency":"EUR"}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"from_the_future","n":123456789012345678901234567890}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"\ud83d\ude00 \/"}},"unknown":{"list":[null]}}}"#,
    r#"{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "{session}", "update": {"sessionUpdate": "available_commands_update", "availableCommands": []}}, "extra": 1.0}"#,
];

#[test]
fn updates_pass_unchanged_but_for_the_session_id() {
    let mut steps: Vec<Value> = LINES.iter().map(|line| json!({"line": line})).collect();
    steps.push(end("end_turn"));
    // With a policy that restricts, the editor would be notified of the call that never ends, too.
    let approve = ["--permissions", "approve"];
    let mut editor = Editor::ready_with(&approve, &json!({"session/prompt": [steps]}));
    let session = editor.open();
    editor.stop_reason(&session, "go");
    let lines = editor.lines(&session, 0..editor.peer.received.len());
    let want: Vec<String> = LINES
        .iter()
        .map(|line| line.replace("{session}", "SESSION"))
        .collect();
    assert_eq!(lines, want);
    editor.finish();
}

#[test]
fn result_of_a_prompt_passes_unchanged() {
    let result = r#"{"jsonrpc":"2.0","id":{id},"result":{"stopReason":"end_turn","usage":{"totalTokens":10,"inputTokens":4,"outputTokens":6},"_meta":{"cost":1.50},"more":[]}}"#;
    let mut editor = Editor::ready(&json!({"session/prompt": [[say("x"), {"line": result}]]}));
    let session = editor.open();
    let prompt = editor.send_prompt(&session, "go");
    editor.peer.response(&prompt).unwrap();
    let text = &editor.peer.texts[editor.position(&prompt)];
    let at = result.find(r#""result""#).unwrap();
    assert!(text.ends_with(&result[at..]), "{text}");
    editor.finish();
}

#[test]
fn blocks_and_other_members_of_a_prompt_reach_the_agent_unchanged() {
    let mut editor = Editor::ready(&json!({"initialize": [[{"reply": {"protocolVersion": 1,
        "agentCapabilities": {"promptCapabilities": {"image": true, "audio": true, "embeddedContext": true}}}}]],
        "session/prompt": [[say("x"), end("end_turn")]]}));
    let session = editor.open();
    let blocks = json!([
        {"type": "text", "text": "plain"},
        {"type": "text", "text": "marked", "annotations": {"priority": 0.5}, "_meta": {"k": [1]}},
        {"type": "image", "data": "aWNvbg==", "mimeType": "image/png", "uri": "file:///icon.png", "other": 1},
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt", "size": 3},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "b", "mimeType": "text/plain", "_meta": {"q": 1}}},
    ]);
    let params = json!({"sessionId": session, "prompt": blocks, "_meta": {"trace": "x"}, "messageId": "m-1"});
    editor.peer.result("session/prompt", &params).unwrap();
    let log = editor.finish();
    let sent = &calls(&log, "session/prompt")[0]["params"];
    assert_eq!(sent["prompt"], blocks);
    assert_eq!(sent["_meta"], params["_meta"]);
    assert_eq!(sent["messageId"], "m-1");
}

#[test]
fn extension_requests_and_notifications_of_the_editor_reach_the_agent_in_order() {
    let script = json!({
        "_x/ask": [[{"line": r#"{"jsonrpc":"2.0","id":{id},"result":{"n":1.50,"session":"{session}"}}"#}]],
        "_x/fail": [[{"error": {"code": -32050, "message": "no \u{1f600}", "data": {"long": "x".repeat(3000)}}}]],
    });
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    editor
        .peer
        .notify("_x/note", &json!({"sessionId": session, "n": 1}));
    let params = json!({"sessionId": session, "deep": {"sessionId": session}});
    let asked = editor.peer.request("_x/ask", &params);
    editor.peer.notify("_x/note", &json!({"n": 2}));
    let failed = editor.peer.error("_x/fail", &json!({})).unwrap();
    assert_eq!(failed["code"], -32050);
    assert_eq!(failed["message"], "no \u{1f600}");
    assert_eq!(failed["data"]["long"].as_str().unwrap().len(), 3000);
    editor.peer.response(&asked).unwrap();
    let text = &editor.peer.texts[editor.position(&asked)];
    assert!(
        text.ends_with(r#""result":{"n":1.50,"session":"fake-1"}}"#),
        "{text}"
    );

    let log = editor.finish();
    let sent: Vec<&Value> = log
        .iter()
        .filter(|message| {
            message["method"]
                .as_str()
                .is_some_and(|m| m.starts_with("_x/"))
        })
        .collect();
    let methods: Vec<&Value> = sent.iter().map(|message| &message["method"]).collect();
    assert_eq!(methods, ["_x/note", "_x/ask", "_x/note", "_x/fail"]);
    assert_eq!(sent[0]["params"], json!({"sessionId": "fake-1", "n": 1}));
    assert_eq!(
        sent[1]["params"],
        json!({"sessionId": "fake-1", "deep": {"sessionId": session}})
    );
    assert_eq!(sent[2]["params"], json!({"n": 2}));
}

#[test]
fn unknown_method_of_the_editor_gets_the_error_of_the_agent() {
    let mut editor = Editor::ready(&json!({}));
    let error = editor
        .peer
        .error("session/dance", &json!({"x": 1}))
        .unwrap();
    assert_eq!(error["code"], -32601);
    assert_eq!(error["data"]["method"], "session/dance");
    editor.finish();
}

#[test]
fn extension_requests_and_notifications_of_the_agent_reach_the_editor_in_order() {
    let script = json!({"session/prompt": [[
        say("a"),
        {"notify": {"method": "_y/note", "params": {"sessionId": "{session}", "n": 1}}},
        say("b"),
        {"ask": {"method": "_y/ask", "params": {"q": [1, {"_meta": null}]}, "id": "string id"}},
        {"echoAnswer": true},
        {"ask": {"method": "_y/refused", "id": 77}},
        {"echoAnswer": true},
        {"notify": {"method": "_y/note"}},
        end("end_turn"),
    ]]});
    let mut editor = Editor::ready(&script);
    editor
        .peer
        .answer_with(|request| match request["method"].as_str() {
            Some("_y/ask") => Answer::Result(json!({"a": 1, "_meta": {"b": 2}})),
            _ => Answer::Error(-32077, "the editor refuses"),
        });
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    let a = editor.await_text("a");
    let note = editor
        .peer
        .find(0, |message| message["method"] == "_y/note")
        .unwrap();
    let b = editor.await_text("b");
    assert!(a < note && note < b);
    assert_eq!(
        editor.peer.received[note]["params"],
        json!({"sessionId": session, "n": 1})
    );
    assert!(
        editor
            .peer
            .find(note + 1, |message| message["method"] == "_y/note")
            .is_ok()
    );
    let asked = &editor.asked("_y/ask")[0]["params"];
    assert_eq!(
        *asked,
        json!({"q": [1, {"_meta": null}], "sessionId": session})
    );
    let said = editor.said(&session, "agent_message_chunk", 0);
    assert!(
        said.contains(r#"{"a":1,"_meta":{"b":2}}"#) || said.contains(r#"{"_meta":{"b":2},"a":1}"#),
        "{said}"
    );
    assert!(
        said.contains("-32077") && said.contains("the editor refuses"),
        "{said}"
    );
    let log = editor.finish();
    assert!(log.iter().any(|message| message["id"] == "string id"));
    assert!(
        log.iter()
            .any(|message| message["id"] == 77 && message["error"].is_object())
    );
}

#[test]
fn cancelled_extension_request_is_cancelled_at_the_agent() {
    let script = json!({"_x/slow": [[{"wait": "$/cancel_request"}, {"error": {"code": -32800, "message": "cancelled"}}]]});
    let mut editor = Editor::ready(&script);
    let slow = editor.peer.request("_x/slow", &json!({}));
    editor
        .peer
        .notify("$/cancel_request", &json!({"requestId": slow}));
    let response = editor.peer.response(&slow).unwrap();
    assert_eq!(response["error"]["code"], -32800);
    let log = editor.finish();
    let own = &calls(&log, "_x/slow")[0]["id"];
    assert_eq!(
        calls(&log, "$/cancel_request")[0]["params"]["requestId"],
        *own
    );
}

#[test]
fn request_that_the_agent_cancels_is_cancelled_at_the_editor() {
    let script = json!({"session/prompt": [[
        {"frame": {"jsonrpc": "2.0", "id": "w1", "method": "_y/slow", "params": {"sessionId": "{session}"}}},
        {"wait": "_asked"},
        {"notify": {"method": "$/cancel_request", "params": {"requestId": "w1"}}},
        {"wait": "_answered"},
        end("end_turn"),
    ]]});
    let mut editor = Editor::ready(&script);
    editor.peer.answer_with(|_| Answer::Later);
    let session = editor.open();
    let prompt = editor.send_prompt(&session, "go");
    let at = editor
        .peer
        .find(0, |message| message["method"] == "_y/slow")
        .unwrap();
    let id = editor.peer.received[at]["id"].clone();
    editor.peer.notify("_asked", &json!({"sessionId": session}));
    let at = editor
        .peer
        .find(at, |message| message["method"] == "$/cancel_request")
        .unwrap();
    assert_eq!(editor.peer.received[at]["params"]["requestId"], id);
    editor.peer.send(
        &json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32800, "message": "stopped"}}),
    );
    editor
        .peer
        .notify("_answered", &json!({"sessionId": session}));
    editor.peer.response(&prompt).unwrap();
    let log = editor.finish();
    let answers: Vec<&Value> = log.iter().filter(|message| message["id"] == "w1").collect();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["error"]["code"], -32800);
}

#[test]
fn error_of_a_prompt_keeps_code_message_and_data() {
    let data = json!({"retry": 1.5, "long": "y".repeat(3000)});
    let script = json!({"session/prompt": [[{"error": {"code": 4290, "message": "slow down\nplease", "data": data}}]]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    let error = editor.prompt(&session, "go")["error"].clone();
    assert_eq!(
        error,
        json!({"code": 4290, "message": "slow down\nplease", "data": data})
    );
    editor.finish();
}

#[test]
fn capabilities_are_those_of_the_agent_with_what_acpipe_adds() {
    let own = json!({"protocolVersion": 1, "agentInfo": {"name": "x", "version": "2", "_meta": {"k": 1}},
        "agentCapabilities": {"promptCapabilities": {"image": true}, "unheardOf": {"x": 1},
            "sessionCapabilities": {"fork": {}}},
        "authMethods": [{"id": "m", "name": "M", "more": 1}], "_meta": {"own": true}});
    let mut editor = Editor::of_agent(&[], &json!({"initialize": [[{"reply": own}]]}));
    let mut can = super::editor::everything();
    can["unheardOf"] = json!({"y": [1]});
    let params = json!({"protocolVersion": 1, "clientCapabilities": can, "clientInfo": {"name": "ed", "version": "3"},
        "_meta": {"ed": 1}, "more": true});
    let mut result = editor.peer.result("initialize", &params).unwrap();
    assert!(result["_meta"]["acpipe"]["version"].is_string());
    result["_meta"].as_object_mut().unwrap().remove("acpipe");
    let mut want = own.clone();
    want["agentCapabilities"]["loadSession"] = true.into();
    want["agentCapabilities"]["sessionCapabilities"] =
        json!({"list": {}, "resume": {}, "close": {}, "delete": {}});
    assert_eq!(result, want);
    let log = editor.finish();
    assert_eq!(calls(&log, "initialize")[0]["params"], params);
}
