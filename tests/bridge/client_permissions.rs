//! Permission requests that the client answers: answered, answered too late, withdrawn, cancelled, ended with
//! the agent.

use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, say, tool, tool_change};
use serde_json::{Value, json};

const OPTIONS: &[(&str, &str)] = &[
    ("y", "allow_once"),
    ("ya", "allow_always"),
    ("n", "reject_once"),
];

fn call() -> Value {
    json!({"toolCallId": "t", "title": "Write a", "kind": "edit", "rawInput": {"file_path": "/w/a"},
           "locations": [{"path": "/w/a"}]})
}

fn script(after: &[Value]) -> Value {
    let mut steps = vec![
        tool(
            "t",
            &json!({"title": "Write a", "kind": "edit", "status": "pending"}),
        ),
        ask(&call(), OPTIONS),
    ];
    steps.extend_from_slice(after);
    json!({"session/prompt": [steps]})
}

/// Starts a server whose client declares permissions and questions.
fn server_with_permissions(args: &[&str], script: &Value) -> Server {
    let mut server = Server::start(args);
    server.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"permissions": true, "questions": true}}),
    );
    server.connect(script);
    server.ensure("default");
    server
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Returns the answers that the agent received.
fn agent_answers(log: &[Value]) -> Vec<&Value> {
    let answers = log.iter().filter_map(|m| m.get("result"));
    answers.collect()
}

fn permission(turn: &Turn) -> Value {
    turn.of("data-permission").last().unwrap()["data"].clone()
}

#[test]
fn permission_choice_of_the_client_reaches_the_agent() {
    for (choice, approved) in [("y", true), ("ya", true), ("n", false)] {
        let status = if approved { "completed" } else { "failed" };
        let script = script(&[
            tool_change("t", &json!({"status": status})),
            end("end_turn"),
        ]);
        let mut server = server_with_permissions(&["--permissions", "ask"], &script);
        let prompt = server.send_prompt("default", "go");
        let (id, asked) = server.asked("permission/request");
        assert_eq!(asked["sessionId"], "default");
        assert_eq!(asked["toolCall"]["toolCallId"], "t");
        assert_eq!(asked["toolCall"]["input"], json!({"file_path": "/w/a"}));
        assert_eq!(
            asked["options"][2],
            json!({"optionId": "n", "name": "Do n", "kind": "reject_once"})
        );
        assert_eq!(asked["rule"], "permissions \"ask\"");
        assert_eq!(asked["deadlineMs"], 300_000);
        server.reply(&id, &selected(choice));
        // A second answer is ignored.
        server.reply(&id, &selected("y"));
        let turn = server.turn(&prompt);
        assert_eq!(turn.one("tool-approval-request")["isAutomatic"], false);
        assert_eq!(
            turn.one("tool-approval-request")["approvalId"],
            asked["questionId"]
        );
        assert_eq!(turn.one("tool-approval-response")["approved"], approved);
        assert_eq!(turn.of("tool-output-denied").len(), usize::from(!approved));
        let data = permission(&turn);
        assert_eq!(
            (&data["by"], &data["approved"]),
            (&json!("client"), &json!(approved))
        );
        let end = server.finish();
        assert_eq!(agent_answers(&end.log), [&selected(choice)]);
    }
}

#[test]
fn input_of_a_tool_of_an_acp_agent_cannot_be_changed() {
    let script = script(&[
        tool_change("t", &json!({"status": "failed"})),
        end("end_turn"),
    ]);
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    let outcome =
        json!({"outcome": "selected", "optionId": "y", "updatedInput": {"file_path": "/w/b"}});
    server.reply(&id, &json!({ "outcome": outcome }));
    let turn = server.turn(&prompt);
    let data = permission(&turn);
    assert_eq!(data["approved"], false);
    let reason = data["reason"].as_str().unwrap();
    assert!(reason.contains("updatedInput is not possible"), "{reason}");
    assert_eq!(agent_answers(&server.finish().log), [&selected("n")]);
}

#[test]
fn unanswered_permission_request_is_refused_after_the_timeout() {
    let script = script(&[
        tool_change("t", &json!({"status": "failed"})),
        end("end_turn"),
    ]);
    let mut server = server_with_permissions(
        &["--permissions", "ask", "--timeout", "answer=50ms"],
        &script,
    );
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    let gone = server.notification("$/cancelRequest");
    assert_eq!(gone, json!({"id": id, "by": "timeout"}));
    // This answer is too late.
    server.reply(&id, &selected("y"));
    let turn = server.turn(&prompt);
    assert_eq!(permission(&turn)["by"], "timeout");
    assert_eq!(turn.one("tool-approval-response")["approved"], false);
    assert_eq!(agent_answers(&server.finish().log), [&selected("n")]);
}

#[test]
fn cancel_answers_open_permission_requests() {
    let script = script(&[json!({"wait": "session/cancel"}), end("cancelled")]);
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    server.call("session/cancel", &json!({}));
    assert_eq!(
        server.notification("$/cancelRequest"),
        json!({"id": id, "by": "cancel"})
    );
    let turn = server.turn(&prompt);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(permission(&turn)["by"], "cancel");
    let cancelled = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(agent_answers(&server.finish().log), [&cancelled]);
}

#[test]
fn withdrawn_permission_request_is_closed() {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": {
        "sessionId": "{session}", "toolCall": call(),
        "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}});
    let script = json!({"session/prompt": [[
        {"frame": question},
        {"notify": {"method": "$/cancel_request", "params": {"requestId": "q"}}},
        tool_change("t", &json!({"status": "failed"})),
        end("end_turn"),
    ]]});
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    assert_eq!(
        server.notification("$/cancelRequest"),
        json!({"id": id, "by": "agent"})
    );
    let turn = server.turn(&prompt);
    assert_eq!(permission(&turn)["by"], "agent");
    server.finish();
}

#[test]
fn permission_request_ends_with_its_agent() {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": {
        "sessionId": "{session}", "toolCall": call(),
        "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}});
    let script = json!({"session/prompt": [[{"frame": question}, {"exit": 3}]]});
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    assert_eq!(
        server.notification("$/cancelRequest"),
        json!({"id": id, "by": "end"})
    );
    let turn = server.turn(&prompt);
    assert_eq!(turn.last()["type"], "error");
    assert_eq!(permission(&turn)["by"], "end");
    server.waive("agent/state");
    server.finish();
}

#[test]
fn invalid_permission_answer_refuses() {
    let answers = [
        json!({"outcome": {"outcome": "selected", "optionId": "Y"}}),
        json!({"outcome": "selected", "optionId": "y"}),
        json!("y"),
        Value::Null,
    ];
    for answer in answers {
        let script = script(&[
            tool_change("t", &json!({"status": "failed"})),
            end("end_turn"),
        ]);
        let mut server = server_with_permissions(&["--permissions", "ask"], &script);
        let prompt = server.send_prompt("default", "go");
        let (id, _) = server.asked("permission/request");
        server.reply(&id, &answer);
        let turn = server.turn(&prompt);
        let data = permission(&turn);
        assert_eq!(data["approved"], false, "{answer}");
        let reason = data["reason"].as_str().unwrap();
        assert!(
            reason.contains("the client's response is not valid"),
            "{reason}"
        );
        // The message uses the protocol's terms, not the names of Rust types.
        assert!(!reason.contains("Permission"), "{reason}");
        server.finish();
    }
}

#[test]
fn client_without_the_capability_gets_no_permission_request() {
    let script = script(&[
        tool_change("t", &json!({"status": "failed"})),
        end("end_turn"),
    ]);
    let mut server = Server::ready_with(&["--permissions", "ask"], &script);
    let turn = server.prompt("go");
    let data = permission(&turn);
    assert_eq!(
        (&data["by"], &data["approved"]),
        (&json!("policy"), &json!(false))
    );
    assert_eq!(
        data["rule"],
        "permissions \"ask\", but no client answers permission requests"
    );
    server.finish();
}

#[test]
fn permission_requests_over_the_limit_are_refused() {
    let asked = |n: u32| {
        let tool = json!({"toolCallId": format!("t{n}"), "title": "x", "kind": "execute"});
        let options = json!([{"optionId": "y", "name": "y", "kind": "allow_once"},
                             {"optionId": "n", "name": "n", "kind": "reject_once"}]);
        json!({"ask": {"id": n, "method": "session/request_permission",
               "params": {"toolCall": tool, "options": options}}})
    };
    let frame = |n| {
        let ask = asked(n)["ask"].take();
        let mut frame =
            json!({"jsonrpc": "2.0", "id": n, "method": ask["method"], "params": ask["params"]});
        frame["params"]["sessionId"] = "{session}".into();
        json!({ "frame": frame })
    };
    let mut steps: Vec<Value> = (1..=256).map(frame).collect();
    // The last request waits for its answer.
    steps.extend([asked(257), end("end_turn")]);
    let mut server = server_with_permissions(
        &["--permissions", "ask"],
        &json!({"session/prompt": [steps]}),
    );
    let turn = server.prompt("go");
    for _ in 0..256 {
        server.asked("permission/request");
        server.notification("$/cancelRequest");
    }
    let refused = turn
        .of("data-permission")
        .into_iter()
        .find(|chunk| chunk["data"]["toolCallId"] == "t257" && chunk["data"]["approved"] == false);
    let reason = refused.unwrap()["data"]["reason"].as_str().unwrap();
    assert!(reason.contains("too many questions are open"), "{reason}");
    let log = server.finish().log;
    let refused = json!({"outcome": {"outcome": "selected", "optionId": "n"}});
    assert!(agent_answers(&log).contains(&&refused));
}

#[test]
fn stored_message_of_a_killed_acpipe_has_nothing_open() {
    let steps = [
        tool(
            "runs",
            &json!({"title": "Read b", "kind": "read", "status": "in_progress"}),
        ),
        say("working"),
        ask(&call(), OPTIONS),
    ];
    let script = json!({"session/prompt": [steps]});
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    server.send_prompt("default", "go");
    server.asked("permission/request");
    let mut server = server.crash(&[]);
    server.initialize();
    let list = server.call("message/list", &json!({"sessionId": "default"}));
    let message = &list["messages"][1];
    let parts = message["parts"].as_array().unwrap();
    let states: Vec<_> = parts.iter().filter_map(|p| p["state"].as_str()).collect();
    assert_eq!(
        states,
        ["output-error", "done", "output-denied"],
        "{message}"
    );
    let permission = parts.iter().find(|p| p["type"] == "data-permission");
    assert_eq!(permission.unwrap()["data"]["approved"], false, "{message}");
    let error = &message["metadata"]["acp"]["error"];
    assert_eq!(error["kind"], "turnUnfinished", "{message}");
    server.finish();
}
