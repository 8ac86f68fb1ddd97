//! The end of acpipe: no process is left, and no call hangs.

use crate::harness::{World, end, prompts, read_text, say, say_until_cancelled, within};
use acpipe::ErrorKind;
use serde_json::json;

/// Script of an agent whose first turn starts a process that ignores the end of the agent.
fn spawning() -> serde_json::Value {
    let spawn = json!({"spawn": {"command": ["sleep", "600"], "setsid": true}});
    prompts(&[vec![spawn, say("spawned"), end("end_turn")]])
}

#[tokio::test]
async fn shutdown_leaves_no_process_and_later_calls_fail() {
    let world = World::new();
    let acpipe = world.builder(&spawning()).start().unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    // The mark of a process is not visible until its exec is complete.
    world.wait_until("the agent and its process run", |world| {
        world.alive().len() >= 3
    });
    within(acpipe.shutdown()).await;
    assert_eq!(world.alive(), []);
    let error = within(session.prompt("again").into_future())
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(within(acpipe.agents()).await.is_err());
    within(acpipe.shutdown()).await;
}

#[tokio::test]
async fn dropping_the_last_handle_leaves_no_process() {
    let world = World::new();
    let acpipe = world.builder(&spawning()).start().unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    let mut events = acpipe.events();
    drop(acpipe);
    assert!(!world.alive().is_empty());
    drop(session);
    // The events end with the loop, whose agents have ended before.
    while within(events.next()).await.is_some() {}
    assert_eq!(world.alive(), []);
}

#[test]
fn end_of_the_runtime_leaves_no_process() {
    let world = World::new();
    for supervised in [true, false] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let builder = world.builder(&prompts(&[say_until_cancelled("working")]));
            let builder = if supervised {
                builder
            } else {
                builder.without_supervisor()
            };
            let acpipe = builder.start().unwrap();
            let session = within(acpipe.session("chat").ensure()).await.unwrap();
            let mut turn = within(session.prompt("go").into_future()).await.unwrap();
            read_text(&mut turn).await;
            assert!(!world.alive().is_empty());
        });
        drop(runtime);
        world.wait_until("no process is left", |world| world.alive().is_empty());
    }
}
