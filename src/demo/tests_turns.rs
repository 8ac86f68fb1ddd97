//! Turns: what they stream, the tool call and its permission, cancelling, several at once.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::{Client, Scratch, kinds, selected, text, turn};

const MESSAGE: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

#[tokio::test(start_paused = true)]
async fn hello_is_short_quick_and_streamed() {
    let scratch = Scratch::new();
    let mut client = Client::start(Some(&scratch.path().join("state")));
    let session = client.session(scratch.path()).await;
    let start = Instant::now();
    let (updates, reason) = turn(&mut client, &session, "hello", None).await;
    assert!(
        start.elapsed() < Duration::from_millis(300),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(reason, "end_turn");
    assert_eq!(
        kinds(&updates),
        [THOUGHT, MESSAGE, "usage_update", "session_info_update"]
    );
    assert_eq!(text(&updates, MESSAGE), super::words::greeting("hello", 0));
    assert_eq!(text(&updates, THOUGHT), super::words::THOUGHT);
    for kind in [THOUGHT, MESSAGE] {
        let mut ids: Vec<&Value> = updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind)
            .map(|update| &update["messageId"])
            .collect();
        assert!(ids.len() > 1);
        ids.dedup();
        assert!(ids.len() == 1 && ids[0].is_string());
    }
    let said = text(&updates, MESSAGE) + &text(&updates, THOUGHT) + "hello";
    let usage = &updates[updates.len() - 2];
    assert_eq!(usage["used"], said.chars().count().div_ceil(4));
    assert_eq!(usage["size"], 200_000);
    assert_eq!(updates[updates.len() - 1]["title"], "hello");

    let (again, _) = turn(&mut client, &session, "hello", None).await;
    assert_eq!(kinds(&again), [THOUGHT, MESSAGE, "usage_update"]);
    assert_eq!(
        again[again.len() - 1]["used"],
        (2 * said.chars().count()).div_ceil(4)
    );
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_stops_the_stream_at_once() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    let id = client.prompt(&session, "slow").await;
    client
        .until(|message| message["params"]["update"]["content"]["text"] == "5 ")
        .await;
    let start = Instant::now();
    client
        .notify("session/cancel", json!({ "sessionId": session }))
        .await;
    assert_eq!(
        client.answer_to(id).await["result"]["stopReason"],
        "cancelled"
    );
    assert!(
        start.elapsed() < Duration::from_millis(10),
        "{:?}",
        start.elapsed()
    );
    client
        .notify("session/cancel", json!({ "sessionId": session }))
        .await;
    client.updates();
    let (updates, reason) = turn(&mut client, &session, "hello", None).await;
    assert_eq!(
        (reason, kinds(&updates)),
        (json!("end_turn"), vec![THOUGHT, MESSAGE, "usage_update"])
    );
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn slow_takes_ten_seconds_and_a_plan_is_completed() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let session = client.session(scratch.path()).await;
    let start = Instant::now();
    let (updates, _) = turn(&mut client, &session, "count slowly", None).await;
    assert!(
        (10..11).contains(&start.elapsed().as_secs()),
        "{:?}",
        start.elapsed()
    );
    assert!(updates.len() > 100 && text(&updates, MESSAGE).ends_with("99 100\n"));

    let (updates, _) = turn(
        &mut client,
        &session,
        "make a plan to list files",
        Some(selected("allow_once")),
    )
    .await;
    let plans: Vec<&Value> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "plan")
        .collect();
    let statuses = |plan: &Value| {
        plan["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["status"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        statuses(plans[0]),
        ["completed", "in_progress", "pending", "pending"]
    );
    assert_eq!(statuses(plans[plans.len() - 1]), ["completed"; 4]);
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn sessions_interleave_and_a_busy_one_refuses() {
    let scratch = Scratch::new();
    let mut client = Client::start(None);
    let slow = client.session(scratch.path()).await;
    let quick = client.session(scratch.path()).await;
    let slow_id = client.prompt(&slow, "slow").await;
    client
        .until(|message| message["params"]["update"]["content"]["text"] == "1 ")
        .await;
    client.updates();
    let quick_id = client.prompt(&quick, "hello").await;
    let busy_id = client.prompt(&slow, "and this?").await;
    let refusal = client.answer_to(busy_id).await;
    assert_eq!(refusal["error"]["code"], -32600);
    assert!(
        refusal["error"]["message"]
            .as_str()
            .unwrap()
            .contains("busy")
    );
    let busy = client
        .call(
            "session/load",
            json!({ "sessionId": slow, "cwd": scratch.path(), "mcpServers": [] }),
        )
        .await;
    assert_eq!(busy["error"]["code"], -32600);
    assert_eq!(
        client.answer_to(quick_id).await["result"]["stopReason"],
        "end_turn"
    );
    assert_eq!(
        client.answer_to(slow_id).await["result"]["stopReason"],
        "end_turn"
    );
    let updates = client.updates();
    assert!(
        text(&updates, MESSAGE).contains("Hello!") && text(&updates, MESSAGE).contains("100\n")
    );
    assert!(client.close().await.is_empty());
}
