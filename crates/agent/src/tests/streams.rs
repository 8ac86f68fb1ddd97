//! The end of the streams.

use super::Client;
use crate::testing::{Reply, ScriptedAgent};
use crate::{Agent, AgentError, StopReason, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// Agent that notes its cancel and its shutdown.
#[derive(Clone, Default)]
struct Last {
    cancelled: Arc<AtomicBool>,
    shut_down: Arc<AtomicBool>,
}

impl Agent for Last {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        turn.text("a").await;
        turn.cancelled().await;
        assert!(!self.shut_down.load(Ordering::SeqCst));
        self.cancelled.store(true, Ordering::SeqCst);
        Ok(StopReason::Cancelled)
    }

    async fn shutdown(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn end_of_input_cancels_the_turns_and_shuts_the_agent_down() {
    let agent = Last::default();
    let (mut client, session) = Client::with_session(agent.clone()).await;
    client.prompt(&session, "go").await;
    client.asked("session/update").await;
    client.finish().await.unwrap();
    assert!(agent.cancelled.load(Ordering::SeqCst));
    assert!(agent.shut_down.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn turn_that_ignores_the_end_of_input_is_dropped() {
    let agent = ScriptedAgent::new().on_any(Reply::text("a").hang_forever());
    let (mut client, session) = Client::with_session(agent).await;
    client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let began = Instant::now();
    client.finish().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_no_more_ends_the_agent() {
    let agent = Last::default();
    let (mut client, session) = Client::with_session(agent.clone()).await;
    client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let Client {
        input,
        output,
        served,
        ..
    } = client;
    drop(output);
    // The agent notices the closed stream when it writes.
    let input = {
        use tokio::io::AsyncWriteExt as _;
        let mut input = input.unwrap();
        input
            .write_all(b"{\"id\":1,\"method\":\"x\"}\n")
            .await
            .unwrap();
        input
    };
    served.await.unwrap().unwrap();
    assert!(agent.shut_down.load(Ordering::SeqCst));
    drop(input);
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_read_does_not_hold_the_end() {
    let text = "x".repeat(4096);
    let mut client = Client::with_capacity(ScriptedAgent::new().on_any(Reply::text(text)), 1024);
    client.initialize(false).await;
    let session = client.new_session().await;
    client.prompt(&session, "go").await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    client.input = None;
    let Client { output, served, .. } = client;
    served.await.unwrap().unwrap();
    drop(output);
}
