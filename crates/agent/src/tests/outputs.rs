//! Each kind of output as ACP messages.

use super::Client;
use crate::testing::{Reply, ScriptedAgent};
use crate::{Agent, AgentError, File, Form, PlanEntry, StopReason, Tool, ToolKind, Turn, Usage};
use serde_json::{Value, json};
use std::sync::Mutex;

/// Returns the updates of a turn that plays `reply`.
async fn updates(reply: Reply) -> Vec<Value> {
    let (mut client, session) = Client::with_session(ScriptedAgent::new().on_any(reply)).await;
    let (updates, response) = client.turn(&session, "go").await;
    assert_eq!(response["result"]["stopReason"], "end_turn", "{response}");
    updates
}

fn message(block: &Value) -> Value {
    json!({ "sessionUpdate": "agent_message_chunk", "content": block })
}

#[tokio::test(start_paused = true)]
async fn each_output_is_one_update() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let cases = [
        (Reply::text("a\"ü\n"), message(&text("a\"ü\n"))),
        (
            Reply::new().thought("hm"),
            json!({ "sessionUpdate": "agent_thought_chunk", "content": text("hm") }),
        ),
        (
            Reply::new().plan([PlanEntry::new("a").completed().important(), "b".into()]),
            json!({ "sessionUpdate": "plan", "entries": [
                { "content": "a", "status": "completed", "priority": "high" },
                { "content": "b", "status": "pending", "priority": "medium" },
            ] }),
        ),
        (
            Reply::new().file(File::bytes("image/png", "icon")),
            message(&json!({ "type": "image", "data": "aWNvbg==", "mimeType": "image/png" })),
        ),
        (
            Reply::new().file(File::bytes("audio/wav", "hi")),
            message(&json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav" })),
        ),
        (
            Reply::new().file(File::bytes("application/zip", "hi").named("a.zip")),
            message(&json!({ "type": "resource", "resource": {
                "uri": "attachment:///a.zip", "blob": "aGk=", "mimeType": "application/zip",
            } })),
        ),
        (
            Reply::new().file(File::text("file:///a", "A").of_type("text/plain")),
            message(&json!({ "type": "resource", "resource": {
                "uri": "file:///a", "text": "A", "mimeType": "text/plain",
            } })),
        ),
        (
            Reply::new().file(File::link("https://x.org/a", "a")),
            message(&json!({ "type": "resource_link", "uri": "https://x.org/a", "name": "a" })),
        ),
        (
            Reply::new().cost(0.5, "USD"),
            json!({
                "sessionUpdate": "usage_update", "used": 0, "size": 0,
                "cost": { "amount": 0.5, "currency": "USD" },
            }),
        ),
    ];
    for (reply, want) in cases {
        assert_eq!(updates(reply).await, [want]);
    }
    assert!(updates(Reply::text("")).await.is_empty(), "no empty pieces");
}

#[tokio::test(start_paused = true)]
async fn tool_call_is_announced_and_ended() {
    let tool = Tool::new("read_file", "Read a")
        .kind(ToolKind::Read)
        .input(json!({ "path": "/a" }))
        .path("/a");
    let reply = Reply::new()
        .tool(tool, "A")
        .failed_tool(Tool::new("x", "X"), "no");
    let content =
        |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let want = [
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "call-1-1", "title": "Read a", "name": "read_file",
            "kind": "read", "status": "pending", "rawInput": { "path": "/a" }, "locations": [{ "path": "/a" }],
        }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call-1-1", "status": "completed",
            "content": content("A"),
        }),
        json!({
            "sessionUpdate": "tool_call", "toolCallId": "call-1-2", "title": "X", "name": "x", "kind": "other",
            "status": "pending",
        }),
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "call-1-2", "status": "failed",
            "content": content("no"),
        }),
    ];
    assert_eq!(updates(reply).await, want);
}

/// Agent that uses every method of a tool call, and keeps the call after its turn.
#[derive(Default)]
struct Editor {
    kept: Mutex<Option<crate::ToolCall>>,
}

impl Agent for Editor {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        let kept = self.kept.lock().unwrap().take();
        if let Some(kept) = kept {
            // The turn of this call has ended.
            kept.output("late").await;
            return Ok(StopReason::EndTurn);
        }
        let edit = turn.tool(Tool::new("edit", "Edit")).await?;
        edit.progress("half").await;
        edit.diff("/a", Some("x"), "y").await;
        edit.output("twice").await;
        edit.progress("later").await;
        let query = turn.tool(Tool::new("query", "Query")).await?;
        query.output_json(&json!({ "rows": 2 })).await;
        let open = turn.tool(Tool::new("open", "Open")).await?;
        *self.kept.lock().unwrap() = Some(open);
        turn.context_window(10, 100).await;
        turn.cost(0.25, "EUR").await;
        turn.cost(0.25, "EUR").await;
        turn.title("T").await;
        Ok(StopReason::MaxTokens)
    }

    fn allowed_tools(&self) -> Option<Vec<String>> {
        Some(["edit", "query", "open"].map(str::to_owned).to_vec())
    }
}

#[tokio::test(start_paused = true)]
async fn tool_call_ends_once_and_at_the_latest_with_its_turn() {
    let (mut client, session) = Client::with_session(Editor::default()).await;
    let (updates, response) = client.turn(&session, "go").await;
    assert_eq!(response["result"]["stopReason"], "max_tokens");
    let states: Vec<String> = updates
        .iter()
        .map(|u| format!("{} {}", u["toolCallId"], u["status"]).replace('"', ""))
        .collect();
    let want = [
        "call-1-1 pending",
        "call-1-1 in_progress",
        "call-1-1 completed",
        "call-1-2 pending",
        "call-1-2 completed",
        "call-1-3 pending",
        "null null",
        "null null",
        "null null",
        "null null",
        "call-1-3 failed",
    ];
    assert_eq!(states, want);
    let diff = json!([{ "type": "diff", "path": "/a", "oldText": "x", "newText": "y" }]);
    assert_eq!(updates[2]["content"], diff);
    assert_eq!(updates[4]["rawOutput"], json!({ "rows": 2 }));
    let cost = json!({ "amount": 0.5, "currency": "EUR" });
    let window = json!({ "sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost });
    assert_eq!(
        updates[8], window,
        "the window is kept, and the cost is that of the session"
    );
    let (updates, _) = client.turn(&session, "again").await;
    assert!(updates.is_empty(), "{updates:?}");
}

#[tokio::test(start_paused = true)]
async fn tool_that_is_not_allowed_fails_the_turn() {
    struct Wild;
    impl Agent for Wild {
        async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
            turn.tool(Tool::new("rm", "Remove")).await?;
            Ok(StopReason::EndTurn)
        }
        fn allowed_tools(&self) -> Option<Vec<String>> {
            Some(vec!["ls".to_owned()])
        }
    }
    let (mut client, session) = Client::with_session(Wild).await;
    let (updates, response) = client.turn(&session, "go").await;
    assert!(updates.is_empty());
    let error = &response["error"];
    assert_eq!(
        error["message"],
        "tool `rm` is not allowed; the agent may use: ls"
    );
    assert_eq!(
        error["data"],
        json!({ "acpipe": { "kind": "invalidTool" }, "tool": "rm" })
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_and_structured_output_are_in_the_result() {
    let reply = Reply::text("x")
        .usage(Usage::new(3, 4))
        .usage(Usage {
            thought_tokens: Some(2),
            ..Usage::new(10, 20)
        })
        .structured_output(json!({ "a": 1 }));
    let (mut client, session) = Client::with_session(ScriptedAgent::new().on_any(reply)).await;
    let (_, response) = client.turn(&session, "go").await;
    let want = json!({
        "stopReason": "end_turn",
        "usage": { "inputTokens": 13, "outputTokens": 24, "totalTokens": 37, "thoughtTokens": 2 },
        "_meta": { "acpipe": { "structuredOutput": { "a": 1 } } },
    });
    assert_eq!(response["result"], want);
}

#[tokio::test(start_paused = true)]
async fn permission_decides_whether_a_tool_runs() {
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    let cases = [
        (selected("allow_once"), "completed", "end_turn"),
        (selected("reject_once"), "failed", "end_turn"),
        (selected("unknown"), "failed", "end_turn"),
        (json!({}), "failed", "end_turn"),
        (
            json!({ "outcome": { "outcome": "cancelled" } }),
            "failed",
            "cancelled",
        ),
    ];
    for (result, status, stop) in cases {
        let agent = ScriptedAgent::new().on_any(Reply::new().ask(Tool::new("ls", "List"), "a"));
        let (mut client, session) = Client::with_session(agent).await;
        let id = client.prompt(&session, "go").await;
        assert_eq!(
            client.asked("session/update").await["params"]["update"]["status"],
            "pending"
        );
        let asked = client.asked("session/request_permission").await;
        assert_eq!(asked["params"]["toolCall"]["name"], "ls");
        client.respond(&asked, result.clone()).await;
        let (updates, response) = client.rest_of_turn(id).await;
        assert_eq!(updates[0]["status"], status, "{result}");
        assert_eq!(response["result"]["stopReason"], stop, "{result}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_that_is_allowed_for_the_session_is_asked_about_once() {
    let agent = ScriptedAgent::new().on_any(Reply::new().ask(Tool::new("ls", "List"), "a"));
    let (mut client, session) = Client::with_session(agent).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let asked = client.asked("session/request_permission").await;
    let always = json!({ "outcome": { "outcome": "selected", "optionId": "allow_always" } });
    client.respond(&asked, always).await;
    client.rest_of_turn(id).await;
    let (updates, _) = client.turn(&session, "again").await;
    assert_eq!(updates[1]["status"], "completed");
    let other = client.new_session().await;
    let id = client.prompt(&other, "go").await;
    client.asked("session/update").await;
    let asked = client.asked("session/request_permission").await;
    client
        .send(json!({ "id": asked["id"], "error": { "code": -32601, "message": "no" } }))
        .await;
    let (updates, _) = client.rest_of_turn(id).await;
    assert_eq!(updates[0]["status"], "failed", "an error is a refusal");
}

#[tokio::test(start_paused = true)]
async fn question_is_a_form_with_a_typed_answer() {
    let form = || {
        Form::new("Where?")
            .choice("target", "Target", ["a", "b"])
            .boolean("sure", "Sure")
            .number("count", "Count")
            .text("why", "Why")
            .optional_text("note", "Note")
    };
    let agent = ScriptedAgent::new().on_any(Reply::new().question(form()));
    let (mut client, session) = Client::with_session(agent).await;
    for (result, text) in [
        (
            json!({ "action": "accept", "content": { "target": "b" } }),
            r#"{"target":"b"}"#,
        ),
        (json!({ "action": "decline" }), "declined"),
        (json!({ "action": "cancel" }), "cancelled"),
        (json!({}), "cancelled"),
    ] {
        let id = client.prompt(&session, "go").await;
        let asked = client.asked("elicitation/create").await;
        let schema = &asked["params"]["requestedSchema"];
        assert_eq!(
            schema["required"],
            json!(["target", "sure", "count", "why"])
        );
        assert_eq!(schema["properties"]["target"]["enum"], json!(["a", "b"]));
        client.respond(&asked, result).await;
        let (updates, _) = client.rest_of_turn(id).await;
        assert_eq!(super::texts(&updates), [text]);
    }
}

#[tokio::test(start_paused = true)]
async fn question_to_a_client_without_forms_is_an_error() {
    let agent = ScriptedAgent::new().on_any(Reply::new().question(Form::new("Where?")));
    let mut client = Client::start(agent);
    client.initialize(false).await;
    let session = client.new_session().await;
    let (_, response) = client.turn(&session, "go").await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not support questions"), "{message}");
}
