//! The protocol itself: malformed input, unknown methods, and invalid parameters.

use super::Client;
use crate::serve_acp_on;
use crate::testing::{Reply, ScriptedAgent};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

fn agent() -> ScriptedAgent {
    ScriptedAgent::new().on_any(Reply::text("fine"))
}

#[tokio::test(start_paused = true)]
async fn malformed_lines_get_an_error_and_do_not_end_the_connection() {
    let (mut client, session) = Client::with_session(agent()).await;
    let lines: &[(&[u8], i64)] = &[
        (b"{", -32700),
        (b"hello", -32700),
        (b"\xff\xfe", -32700),
        (br#"{"id":1}"#, -32600),
        (b"[]", -32600),
        (b"7", -32600),
    ];
    for (line, code) in lines {
        client.line(line).await;
        let message = client.next().await.unwrap();
        assert_eq!(message["id"], Value::Null);
        assert_eq!(message["error"]["code"], *code, "{}", line.escape_ascii());
    }
    client.line(b"  ").await;
    let (updates, _) = client.turn(&session, "go").await;
    assert_eq!(super::texts(&updates), ["fine"]);
}

#[tokio::test(start_paused = true)]
async fn calls_that_cannot_be_answered_get_an_error() {
    let (mut client, session) = Client::with_session(agent()).await;
    let text = json!([{ "type": "text", "text": "x" }]);
    let cases = [
        (
            "session/fork",
            json!({}),
            -32601,
            "method `session/fork` not found",
        ),
        (
            "session/new",
            json!({ "cwd": "here" }),
            -32602,
            "`cwd` must be an absolute path",
        ),
        (
            "session/new",
            json!({ "cwd": "/", "mcpServers": 1 }),
            -32602,
            "`mcpServers` must be a list",
        ),
        (
            "session/new",
            json!({ "cwd": "/", "mcpServers": [{}] }),
            -32602,
            "`mcpServers[0]` is not",
        ),
        (
            "session/prompt",
            json!({ "prompt": text }),
            -32602,
            "`sessionId` must be a string",
        ),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": 1 }),
            -32602,
            "`prompt` must be",
        ),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "video" }] }),
            -32602,
            "`prompt[0]` is not a valid content block",
        ),
        (
            "session/prompt",
            json!({ "sessionId": "no", "prompt": text }),
            -32002,
            "session `no` not",
        ),
        (
            "session/close",
            json!({}),
            -32602,
            "`sessionId` must be a string",
        ),
    ];
    for (method, params, code, message) in cases {
        let response = client.call(method, params).await;
        let error = &response["error"];
        assert_eq!(error["code"], code, "{method}");
        assert!(
            error["message"].as_str().unwrap().starts_with(message),
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_notifications_and_responses_are_ignored() {
    let (mut client, session) = Client::with_session(agent()).await;
    client
        .send(json!({ "method": "$/progress", "params": {} }))
        .await;
    client
        .send(json!({ "method": "session/cancel", "params": {} }))
        .await;
    client
        .send(json!({ "method": "session/cancel", "params": { "sessionId": "no" } }))
        .await;
    client.send(json!({ "id": 99, "result": {} })).await;
    client.send(json!({ "id": "x", "error": {} })).await;
    let (updates, _) = client.turn(&session, "go").await;
    assert_eq!(super::texts(&updates), ["fine"]);
    client.finish().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn version_is_always_1_and_ids_are_repeated() {
    let mut client = Client::start(agent());
    for id in [json!("a"), json!(1.5), Value::Null] {
        let params = json!({ "protocolVersion": 99 });
        client
            .send(json!({ "id": id, "method": "initialize", "params": params }))
            .await;
        let response = client.next().await.unwrap();
        assert_eq!(
            (&response["id"], &response["result"]["protocolVersion"]),
            (&id, &json!(1))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn pieces_of_lines_are_joined_and_a_last_line_needs_no_newline() {
    let (mut input, reader) = duplex(1024);
    let (writer, mut output) = duplex(1024);
    let served = tokio::spawn(serve_acp_on(agent(), reader, writer));
    for piece in [
        &b"{\"id\":1,\"meth"[..],
        b"od\":\"x\"}\n{\"id\":2,",
        b"\"method\":\"y\"}",
    ] {
        input.write_all(piece).await.unwrap();
        tokio::task::yield_now().await;
    }
    drop(input);
    let mut all = String::new();
    output.read_to_string(&mut all).await.unwrap();
    assert!(
        all.contains("`x` not found") && all.contains("`y` not found"),
        "{all}"
    );
    served.await.unwrap().unwrap();
}
