//! Turns: cancels, failures, panics, and several at once.

use super::{Client, texts};
use crate::testing::{Gate, Reply, ScriptedAgent};
use crate::{Agent, AgentError, FailureKind, Session, StopReason, Tool, Turn};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn cancelled_turn_ends_at_once_if_the_agent_cooperates() {
    let agent = ScriptedAgent::new().on_any(Reply::text("a").hang());
    let (mut client, session) = Client::with_session(agent).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let began = Instant::now();
    client.cancel(&session).await;
    let (_, response) = client.rest_of_turn(id).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_ends_its_turn_alone() {
    let agent = ScriptedAgent::new().on_any(Reply::text("a").hang());
    let (mut client, session) = Client::with_session(agent).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    for request in [json!("another request"), json!(null), json!(id)] {
        let params = json!({ "requestId": request });
        client
            .send(json!({ "method": "$/cancel_request", "params": params }))
            .await;
    }
    let (_, response) = client.rest_of_turn(id).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn cancelled_turn_is_dropped_after_the_grace() {
    let reply = Reply::new()
        .tool(Tool::new("ls", "List"), "a")
        .wait_for(&Gate::new())
        .hang_forever();
    let (mut client, session) = Client::with_session(ScriptedAgent::new().on_any(reply)).await;
    for _ in 0..2 {
        let id = client.prompt(&session, "go").await;
        client.asked("session/update").await;
        client.asked("session/update").await;
        let began = Instant::now();
        client.cancel(&session).await;
        let (_, response) = client.rest_of_turn(id).await;
        assert_eq!(response["result"]["stopReason"], "cancelled");
        assert_eq!(began.elapsed().as_secs(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_ends_an_open_question_and_its_tool_call() {
    let agent = ScriptedAgent::new().on_any(Reply::new().ask(Tool::new("ls", "List"), "a"));
    let (mut client, session) = Client::with_session(agent).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let asked = client.asked("session/request_permission").await;
    client.cancel(&session).await;
    let (updates, response) = client.rest_of_turn(id).await;
    assert_eq!(updates[0]["status"], "failed");
    assert_eq!(response["result"]["stopReason"], "cancelled");
    // A late answer is dropped.
    let allow = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    client.respond(&asked, allow).await;
    client.cancel(&session).await;
    client.finish().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn failure_after_a_cancel_is_a_cancelled_turn() {
    struct Failing;
    impl Agent for Failing {
        async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
            turn.text("a").await;
            turn.cancelled().await;
            assert!(turn.is_cancelled());
            Err(AgentError::new(FailureKind::Network, "connection closed"))
        }
        async fn cancel(&self, _: &Session) {
            panic!("in cancel");
        }
    }
    let (mut client, session) = Client::with_session(Failing).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    client.cancel(&session).await;
    let (_, response) = client.rest_of_turn(id).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn failed_turn_delivers_its_output_then_a_typed_error() {
    for (kind, code, name) in [
        (FailureKind::Session, -32603, "session"),
        (FailureKind::AuthRequired, -32000, "authRequired"),
        (FailureKind::Network, -32603, "network"),
        (FailureKind::Overloaded, -32603, "overloaded"),
        (FailureKind::Malformed, -32603, "malformed"),
        (FailureKind::SessionNotFound, -32002, "sessionNotFound"),
        (FailureKind::InvalidParams, -32602, "invalidParams"),
    ] {
        let error = AgentError::new(kind, "it failed").with("raw", "{");
        let agent = ScriptedAgent::new().on_any(Reply::text("partly").then_fail(error));
        let (mut client, session) = Client::with_session(agent).await;
        let (updates, response) = client.turn(&session, "go").await;
        assert_eq!(texts(&updates), ["partly"]);
        let want = json!({
            "code": code, "message": "it failed", "data": { "raw": "{", "acpipe": { "kind": name } },
        });
        assert_eq!(response["error"], want);
    }
}

#[tokio::test(start_paused = true)]
async fn panic_fails_its_turn_alone() {
    let agent = ScriptedAgent::new()
        .on("boom", Reply::text("partly").panic("out of cheese"))
        .on_any(Reply::text("fine"));
    let (mut client, session) = Client::with_session(agent).await;
    let (updates, response) = client.turn(&session, "boom").await;
    assert_eq!(texts(&updates), ["partly"]);
    assert_eq!(
        response["error"]["message"],
        "the agent panicked: out of cheese"
    );
    let (updates, _) = client.turn(&session, "go").await;
    assert_eq!(texts(&updates), ["fine"]);
    client.finish().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn crash_ends_the_agent_without_a_response() {
    let agent = ScriptedAgent::new().on_any(Reply::text("partly").crash("disk on fire"));
    let (mut client, session) = Client::with_session(agent).await;
    client.prompt(&session, "go").await;
    client.asked("session/update").await;
    assert_eq!(client.next().await, None);
    let error = client.served.await.unwrap().unwrap_err();
    assert!(error.is_fatal());
    assert_eq!(format!("{error:?}"), "disk on fire");
}

#[tokio::test(start_paused = true)]
async fn second_prompt_of_a_session_is_refused_while_a_turn_runs() {
    let agent = ScriptedAgent::new()
        .on("wait", Reply::text("a").hang())
        .on_any(Reply::text("b"));
    let (mut client, session) = Client::with_session(agent).await;
    let first = client.prompt(&session, "wait").await;
    let second = client.prompt(&session, "go").await;
    let response = client.response(second).await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("is in a turn"), "{message}");
    assert_eq!(response["error"]["data"]["acpipe"]["kind"], "busy");
    client.cancel(&session).await;
    client.response(first).await;
    let (updates, _) = client.turn(&session, "go").await;
    assert_eq!(texts(&updates).last(), Some(&"b"));
}

#[tokio::test(start_paused = true)]
async fn turns_of_several_sessions_run_side_by_side() {
    let (first, second) = (Gate::new(), Gate::new());
    let agent = ScriptedAgent::new()
        .on("one", Reply::text("1a").wait_for(&first).then_text("1b"))
        .on("two", Reply::text("2a").wait_for(&second).then_text("2b"));
    let (mut client, one) = Client::with_session(agent.clone()).await;
    let two = client.new_session().await;
    assert_ne!(one, two);
    let turn_of_one = client.prompt(&one, "one").await;
    first.reached().await;
    let turn_of_two = client.prompt(&two, "two").await;
    second.reached().await;
    second.open();
    client.response(turn_of_two).await;
    first.open();
    client.response(turn_of_one).await;
    let mut got = Vec::new();
    while let Some(message) = client.unread.pop_front() {
        let params = &message["params"];
        let text = params["update"]["content"]["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(params["sessionId"] == json!(one), text.starts_with('1'));
        got.push(text);
    }
    assert_eq!(got, ["1a", "2a", "2b", "1b"]);
    assert_eq!(agent.prompts(), ["one", "two"]);
}

/// Agent that counts the pieces that it has written.
struct Flood(Arc<AtomicUsize>);

/// Pieces of a flood.
const PIECES: usize = 10_000;

impl Agent for Flood {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        for number in 0..PIECES {
            turn.text(format!("{number} ")).await;
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test(start_paused = true)]
async fn agent_waits_while_the_client_does_not_read() {
    let written = Arc::new(AtomicUsize::new(0));
    let mut client = Client::with_capacity(Flood(Arc::clone(&written)), 1024);
    client.initialize(false).await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "go").await;
    // Time advances only when no task can run: the agent waits then.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = written.load(Ordering::SeqCst);
    assert!((1..100).contains(&before), "{before}");
    let (updates, response) = client.rest_of_turn(id).await;
    let want: Vec<String> = (0..PIECES).map(|number| format!("{number} ")).collect();
    assert_eq!(texts(&updates), want);
    assert_eq!(response["result"]["stopReason"], "end_turn");
}

#[tokio::test(start_paused = true)]
async fn turn_of_a_client_that_does_not_read_can_be_cancelled() {
    let written = Arc::new(AtomicUsize::new(0));
    let mut client = Client::with_capacity(Flood(Arc::clone(&written)), 1024);
    client.initialize(false).await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "go").await;
    client.cancel(&session).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (_, response) = client.rest_of_turn(id).await;
    assert_eq!(response["result"]["stopReason"], "cancelled");
    assert!(written.load(Ordering::SeqCst) < 100);
}
