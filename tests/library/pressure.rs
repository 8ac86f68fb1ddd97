//! Turns that are not read: they slow their own agent, and nothing else.

use crate::harness::{World, end, prompts, read_all, read_text, say, within};
use serde_json::{Value, json};

/// Number of chunks and their size: 4 MiB, 16 times what may be unread.
const CHUNKS: usize = 64;
const SIZE: usize = 64 << 10;

fn flood() -> Vec<Value> {
    let text = "x".repeat(SIZE);
    vec![
        json!({"repeat": {"times": CHUNKS, "steps": [say(&text)]}}),
        end("end_turn"),
    ]
}

fn flood_or_answer() -> Value {
    let then = flood();
    let answer = vec![say("short"), end("end_turn")];
    json!({"session/prompt": [[{"if": {"params": "flood", "then": then, "else": answer}}]]})
}

/// One session floods and is not read; another one works meanwhile. Then the first is read completely.
async fn check_two_sessions(agent_of_fast: &str) {
    let world = World::new();
    let agent = world.agent(&flood_or_answer());
    let builder = world.builder_with(agent.clone());
    let acpipe = builder.agent(agent.name("other")).start().unwrap();
    let slow = within(acpipe.session("slow").ensure()).await.unwrap();
    let fast = acpipe.session("fast").agent(agent_of_fast);
    let fast = within(fast.ensure()).await.unwrap();
    let mut unread = within(slow.prompt("flood").into_future()).await.unwrap();
    read_text(&mut unread).await;
    for _ in 0..5 {
        let turn = within(fast.prompt("answer").into_future()).await.unwrap();
        assert_eq!(within(turn.summary()).await.unwrap().text, "short");
    }
    let chunks = read_all(&mut unread).await;
    let bytes: usize = chunks
        .iter()
        .filter_map(|chunk| Some(chunk.text()?.len()))
        .sum();
    let numbers: Vec<u64> = chunks.iter().map(acpipe::Chunk::seq).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    // The first text was read before.
    assert!(
        ((CHUNKS - 8) * SIZE..=(CHUNKS - 1) * SIZE).contains(&bytes),
        "{bytes}"
    );
    let summary = within(unread.summary()).await.unwrap();
    assert_eq!(summary.text.len(), CHUNKS * SIZE);
    within(acpipe.shutdown()).await;
}

#[tokio::test]
async fn unread_session_does_not_stall_another_one_of_its_agent() {
    check_two_sessions("default").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_session_does_not_stall_a_session_of_another_agent() {
    check_two_sessions("other").await;
}

#[tokio::test]
async fn unread_turn_holds_its_agent_and_can_be_cancelled() {
    let world = World::new();
    let text = "x".repeat(SIZE);
    let endless =
        json!({"repeat": {"times": 1_000_000, "until": "session/cancel", "steps": [say(&text)]}});
    let wait = json!({"wait": "session/cancel"});
    let acpipe = world.start(&[
        vec![endless, wait, end("cancelled")],
        vec![say("next"), end("end_turn")],
    ]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("go").into_future()).await.unwrap();
    read_text(&mut turn).await;
    assert!(within(turn.cancel()).await.unwrap());
    world.wait_until("the agent receives the cancel", |w| {
        w.received("session/cancel")
    });
    let summary = within(turn.summary()).await.unwrap();
    assert_eq!(summary.stop_reason, "cancelled");
    let next = within(session.prompt("next").into_future()).await.unwrap();
    assert_eq!(within(next.summary()).await.unwrap().text, "next");
}

#[tokio::test]
async fn dropped_turn_releases_its_agent() {
    let world = World::new();
    let acpipe = world.builder(&prompts(&[flood(), vec![say("next"), end("end_turn")]]));
    let acpipe = acpipe.start().unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("flood").into_future()).await.unwrap();
    read_text(&mut turn).await;
    drop(turn);
    let next = within(session.prompt("next").into_future()).await.unwrap();
    assert_eq!(within(next.summary()).await.unwrap().text, "next");
}

#[tokio::test]
async fn shutdown_does_not_wait_for_a_reader() {
    let world = World::new();
    let acpipe = world.builder(&prompts(&[flood()])).start().unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("flood").into_future()).await.unwrap();
    read_text(&mut turn).await;
    within(acpipe.shutdown()).await;
    assert_eq!(world.alive(), []);
    // Whether the turn was complete before the agent ended is a race; its end is reported in any case.
    drop(within(turn.summary()).await);
}
