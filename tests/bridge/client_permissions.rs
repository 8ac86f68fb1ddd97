//! Permission requests that the client answers, and those that a killed acpipe leaves.

use crate::harness::server::Server;
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

#[test]
fn permission_choice_of_the_client_reaches_the_agent() {
    let choices = [("y", true), ("ya", true), ("n", false)];
    let runs = choices.map(|(choice, approved)| {
        let pending = json!({"title": "Write a", "kind": "edit", "status": "pending"});
        let status = if approved { "completed" } else { "failed" };
        let mut call = call();
        call["toolCallId"] = choice.into();
        json!([
            tool(choice, &pending),
            ask(&call, OPTIONS),
            tool_change(choice, &json!({ "status": status })),
            end("end_turn"),
        ])
    });
    let script = json!({ "session/prompt": runs });
    let mut server = server_with_permissions(&["--permissions", "ask"], &script);
    for (choice, approved) in choices {
        let prompt = server.send_prompt("default", "go");
        let (id, asked) = server.asked("permission/request");
        assert_eq!(asked["sessionId"], "default");
        assert_eq!(asked["toolCall"]["toolCallId"], choice);
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
        let request = turn.one("tool-approval-request");
        assert_eq!(request["isAutomatic"], false);
        assert_eq!(request["approvalId"], asked["questionId"]);
        assert_eq!(turn.one("tool-approval-response")["approved"], approved);
        assert_eq!(turn.of("tool-output-denied").len(), usize::from(!approved));
        let data = &turn.of("data-permission").last().unwrap()["data"];
        assert_eq!(
            (&data["by"], &data["approved"]),
            (&json!("client"), &json!(approved))
        );
    }
    let log = server.finish().log;
    let answers = log.iter().filter_map(|message| message.get("result"));
    let want = choices.map(|(choice, _)| selected(choice));
    assert_eq!(answers.cloned().collect::<Vec<_>>(), want);
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
