//! The tool call: its permission and every end it can come to.

use serde_json::{Value, json};

use super::harness::{Client, Scratch, selected, text, turn};

const MESSAGE: &str = "agent_message_chunk";

/// The `tool_call` and the updates of it.
fn tool(updates: &[Value]) -> Vec<&Value> {
    let is_tool = |update: &&Value| {
        update["sessionUpdate"]
            .as_str()
            .is_some_and(|kind| kind.starts_with("tool_call"))
    };
    updates.iter().filter(is_tool).collect()
}

#[tokio::test(start_paused = true)]
async fn the_tool_asks_then_lists() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("b.txt"), "").unwrap();
    std::fs::create_dir(scratch.path().join("a")).unwrap();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    let id = client.prompt(&session, "list the files here").await;
    let asked = client.asked().await;
    let params = &asked["params"];
    let kinds_offered: Vec<&Value> = params["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| &option["kind"])
        .collect();
    assert_eq!(kinds_offered, ["allow_once", "allow_always", "reject_once"]);
    assert_eq!(params["toolCall"]["status"], "pending");
    client
        .answer(&asked, json!({ "outcome": selected("allow_once") }))
        .await;
    let answer = client.answer_to(id).await;
    assert_eq!(answer["result"], json!({ "stopReason": "end_turn" }));
    let updates = client.updates();
    assert!(text(&updates, MESSAGE).ends_with(":\n\n- a/\n- b.txt"));
    let [call, running, done] = tool(&updates)[..] else {
        panic!("{updates:?}")
    };
    assert_eq!(
        call["title"],
        format!("List files in {}", scratch.path().display())
    );
    assert_eq!(
        (&call["kind"], &call["rawInput"]["path"]),
        (&json!("read"), &json!(scratch.path()))
    );
    assert_eq!(call["locations"], json!([{ "path": scratch.path() }]));
    assert_eq!(call["toolCallId"], params["toolCall"]["toolCallId"]);
    assert_eq!(
        (&running["status"], &done["status"]),
        (&json!("in_progress"), &json!("completed"))
    );
    assert_eq!(
        done["rawOutput"],
        json!({ "names": ["a/", "b.txt"], "total": 2 })
    );
    assert_eq!(done["content"][0]["content"]["text"], "- a/\n- b.txt");
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refused_tool_fails_and_the_turn_goes_on() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    for option in ["reject_once", "never heard of"] {
        let (updates, reason) =
            turn(&mut client, &session, "use a tool", Some(selected(option))).await;
        assert_eq!(reason, "end_turn");
        let tool = tool(&updates);
        assert_eq!((tool.len(), &tool[1]["status"]), (2, &json!("failed")));
        assert!(text(&updates, MESSAGE).ends_with(super::words::REFUSED));
    }
    let id = client.prompt(&session, "use a tool").await;
    let asked = client.asked().await;
    client.send_line(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": { "code": -32601, "message": "no" } }).to_string()).await;
    assert_eq!(
        client.answer_to(id).await["result"]["stopReason"],
        "end_turn"
    );
    assert!(text(&client.updates(), MESSAGE).ends_with(super::words::REFUSED));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn allow_always_asks_once_per_session() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    turn(
        &mut client,
        &session,
        "list",
        Some(selected("allow_always")),
    )
    .await;
    let (updates, reason) = turn(&mut client, &session, "list", None).await;
    assert_eq!(
        (reason, tool(&updates)[2]["status"].clone()),
        (json!("end_turn"), json!("completed"))
    );
    let other = client.session(scratch.path()).await;
    turn(&mut client, &other, "list", Some(selected("allow_once"))).await;
    turn(&mut client, &other, "list", Some(selected("allow_once"))).await;
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_outcome_cancelled_ends_the_turn() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    let (updates, reason) = turn(
        &mut client,
        &session,
        "list",
        Some(json!({ "outcome": "cancelled" })),
    )
    .await;
    assert_eq!(reason, "cancelled");
    let tool = tool(&updates);
    assert_eq!((tool.len(), &tool[1]["status"]), (2, &json!("failed")));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_cannot_be_listed_fails_the_tool_and_not_the_turn() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(&scratch.path().join("none")).await;
    let (updates, reason) = turn(&mut client, &session, "list", Some(selected("allow_once"))).await;
    let tool = tool(&updates);
    assert_eq!(
        (reason, &tool[2]["status"]),
        (json!("end_turn"), &json!("failed"))
    );
    assert!(tool[2]["rawOutput"]["error"].is_string());
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_withdraws_the_permission_request() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    let id = client.prompt(&session, "list").await;
    let asked = client.asked().await;
    client
        .notify("session/cancel", json!({ "sessionId": session }))
        .await;
    assert_eq!(
        client.answer_to(id).await["result"]["stopReason"],
        "cancelled"
    );
    assert_eq!(tool(&client.updates())[1]["status"], "failed");
    client
        .answer(&asked, json!({ "outcome": { "outcome": "cancelled" } }))
        .await;
    assert!(client.close().await.is_empty());
}
