//! The protocol's edges: initialize, bad lines, bad parameters, ids, the end of input.

use serde_json::{Value, json};

use super::harness::{Client, Scratch};

#[tokio::test]
async fn initialize_answers_version_1_and_says_what_the_agent_can() {
    let mut client = Client::start(None);
    for version in [1, 2, 99] {
        let answer = client
            .call("initialize", json!({ "protocolVersion": version }))
            .await;
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], 1);
        assert_eq!(result["authMethods"], json!([]));
        let version = env!("CARGO_PKG_VERSION");
        let info =
            json!({ "name": "acpipe-demo", "title": "acpipe demo agent", "version": version });
        assert_eq!(result["agentInfo"], info);
        let can = &result["agentCapabilities"];
        assert_eq!(can["loadSession"], true);
        assert_eq!(can["promptCapabilities"]["image"], true);
        assert_eq!(can["promptCapabilities"]["embeddedContext"], true);
        for method in ["list", "resume", "close"] {
            assert_eq!(can["sessionCapabilities"][method], json!({}));
        }
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn ids_of_any_form_come_back_as_they_were_sent() {
    let mut client = Client::start(None);
    for id in [
        "7",
        "-3",
        "1.50",
        "123456789012345678901234567890",
        "\"a\\u0062\"",
        "null",
        "[1, 2]",
        "{\"k\":1}",
    ] {
        client
            .send_line(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"session/list"}}"#
            ))
            .await;
        let answer = client.read().await.unwrap();
        assert_eq!(answer["id"], serde_json::from_str::<Value>(id).unwrap());
        assert!(answer["result"]["sessions"].is_array(), "{answer}");
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_bad_line_is_answered_and_the_next_one_is_read() {
    let mut client = Client::start(None);
    let cases = [
        ("hello", -32700, json!(null)),
        ("{\"id\":1,", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        ("[{\"id\":1}]", -32600, json!(null)),
        ("42", -32600, json!(null)),
        (r#"{"id":1,"id":2,"method":"x"}"#, -32600, json!(null)),
        (r#"{"id":1,"method":5}"#, -32600, json!(1)),
        (r#"{"id":1}"#, -32600, json!(1)),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
            -32601,
            json!(1),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":[1]}"#,
            -32602,
            json!(1),
        ),
    ];
    for (line, code, id) in cases {
        client.send_line(line).await;
        let answer = client.read().await.unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &id),
            "{line}"
        );
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn what_asks_for_no_answer_gets_none() {
    let mut client = Client::start(None);
    client.send_line("").await;
    client.send_line("  \r").await;
    client.notify("no/such", json!({})).await;
    client.notify("session/prompt", json!({})).await;
    client
        .notify("session/cancel", json!({ "sessionId": "demo-none" }))
        .await;
    client.notify("session/cancel", json!({})).await;
    client
        .send_line(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#)
        .await;
    client
        .send_line(r#"{"jsonrpc":"2.0","id":"x","error":null,"result":null}"#)
        .await;
    client
        .send_line(r#"{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":"m"}}"#)
        .await;
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_bad_parameter_is_named() {
    let mut client = Client::start(None);
    let scratch = Scratch::new();
    let cwd = scratch.path();
    let session = client.session(cwd).await;
    let audio = json!([{ "type": "audio", "data": "", "mimeType": "audio/wav" }]);
    let cases = [
        ("initialize", json!({}), "protocolVersion"),
        (
            "initialize",
            json!({ "protocolVersion": "1" }),
            "protocolVersion",
        ),
        ("session/new", json!({ "mcpServers": [] }), "cwd"),
        ("session/new", json!({ "cwd": 5, "mcpServers": [] }), "cwd"),
        (
            "session/new",
            json!({ "cwd": "here", "mcpServers": [] }),
            "cwd",
        ),
        ("session/new", json!({ "cwd": cwd }), "mcpServers"),
        (
            "session/new",
            json!({ "cwd": cwd, "mcpServers": null }),
            "mcpServers",
        ),
        ("session/list", json!({ "cwd": 1 }), "cwd"),
        ("session/list", json!({ "cursor": "x" }), "cursor"),
        (
            "session/load",
            json!({ "sessionId": session, "cwd": cwd }),
            "mcpServers",
        ),
        ("session/resume", json!({ "cwd": cwd }), "sessionId"),
        ("session/close", json!({ "sessionId": null }), "sessionId"),
        ("session/prompt", json!({ "prompt": [] }), "sessionId"),
        ("session/prompt", json!({ "sessionId": session }), "prompt"),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": "hello" }),
            "prompt",
        ),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": [{ "type": "dance" }] }),
            "prompt[0]",
        ),
        (
            "session/prompt",
            json!({ "sessionId": session, "prompt": audio }),
            "prompt[0]",
        ),
    ];
    for (method, params, field) in cases {
        let answer = client.call(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{method} {params}");
        assert_eq!(answer["error"]["data"]["field"], field, "{method} {params}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(field), "{message}");
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn the_last_line_needs_no_newline() {
    use tokio::io::AsyncWriteExt;
    let (ours, theirs) = tokio::io::duplex(4096);
    let (reader, writer) = tokio::io::split(theirs);
    let agent = tokio::spawn(super::serve(
        reader,
        writer,
        super::Store::new(None, |_| {}),
    ));
    let (mut output, mut input) = tokio::io::split(ours);
    input
        .write_all(
            br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#,
        )
        .await
        .unwrap();
    input.shutdown().await.unwrap();
    let mut said = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut output, &mut said)
        .await
        .unwrap();
    assert!(
        said.ends_with("}\n") && said.contains("acpipe-demo"),
        "{said}"
    );
    agent.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_of_input_ends_a_running_turn() {
    let mut client = Client::start(None);
    let scratch = Scratch::new();
    let session = client.session(scratch.path()).await;
    let prompt = client.prompt(&session, "slow").await;
    client
        .until(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk")
        .await;
    let rest = client.close().await;
    let answer = rest.last().unwrap();
    assert_eq!(answer["id"], prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_does_not_keep_the_agent_alive() {
    let (ours, theirs) = tokio::io::duplex(16);
    let (reader, writer) = tokio::io::split(theirs);
    let agent = tokio::spawn(super::serve(
        reader,
        writer,
        super::Store::new(None, |_| {}),
    ));
    let (output, mut input) = tokio::io::split(ours);
    tokio::io::AsyncWriteExt::write_all(&mut input, b"x\nx\nx\n")
        .await
        .unwrap();
    tokio::io::AsyncWriteExt::shutdown(&mut input)
        .await
        .unwrap();
    agent.await.unwrap().unwrap();
    drop(output);
}
