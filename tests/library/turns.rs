//! Turns: their chunks, their summary, and how they end.

use crate::harness::{World, end, prompts, read_all, read_text, say, say_until_cancelled, within};
use acpipe::{ChunkKind, ErrorKind, Message};
use serde_json::json;
use std::time::Duration;

/// A turn with two chunks of text: order of the chunks, and the summary.
async fn check_stream() {
    let world = World::new();
    let acpipe = world.start(&[vec![say("Hello"), say(", world"), end("end_turn")]]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("hi").into_future()).await.unwrap();
    let chunks = read_all(&mut turn).await;
    assert!(matches!(chunks[0].kind(), ChunkKind::Start { .. }));
    let last = chunks.last().unwrap();
    assert!(
        matches!(last.kind(), ChunkKind::Finish { finish_reason } if finish_reason == "stop"),
        "{last:?}"
    );
    let numbers: Vec<u64> = chunks.iter().map(acpipe::Chunk::seq).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let text: String = chunks.iter().filter_map(|chunk| chunk.text()).collect();
    assert_eq!(text, "Hello, world");
    let summary = turn.summary().await.unwrap();
    assert_eq!(
        (&*summary.text, &*summary.stop_reason),
        ("Hello, world", "end_turn")
    );
    within(acpipe.shutdown()).await;
    assert_eq!(world.alive(), []);
}

#[tokio::test]
async fn chunks_come_in_order_before_the_summary() {
    check_stream().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn chunks_come_in_order_on_several_threads() {
    for _ in 0..5 {
        check_stream().await;
    }
}

#[tokio::test]
async fn summary_of_an_unread_turn_has_its_text() {
    let world = World::new();
    let acpipe = world.start(&[vec![say("a"), say("b"), end("max_tokens")]]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("hi").into_future()).await.unwrap();
    let summary = within(turn.summary()).await.unwrap();
    assert_eq!((&*summary.text, &*summary.finish_reason), ("ab", "length"));
}

#[tokio::test]
async fn dropped_turn_is_cancelled_and_the_next_prompt_runs() {
    let world = World::new();
    let acpipe = world.start(&[
        say_until_cancelled("working"),
        vec![say("next"), end("end_turn")],
    ]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("one").into_future()).await.unwrap();
    assert_eq!(read_text(&mut turn).await, "working");
    drop(turn);
    let next = within(session.prompt("two").into_future()).await.unwrap();
    assert_eq!(within(next.summary()).await.unwrap().text, "next");
    assert!(world.received("session/cancel"));
}

#[tokio::test]
async fn cancelled_turn_ends_with_a_summary() {
    let world = World::new();
    let acpipe = world.start(&[
        say_until_cancelled("one"),
        say_until_cancelled("two"),
        vec![end("end_turn")],
    ]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    for text in ["one", "two"] {
        let mut turn = within(session.prompt("go").into_future()).await.unwrap();
        assert_eq!(read_text(&mut turn).await, text);
        let cancelled = match text {
            "one" => within(turn.cancel()).await.unwrap(),
            _ => within(session.cancel()).await.unwrap(),
        };
        assert!(cancelled);
        let summary = within(turn.summary()).await.unwrap();
        assert_eq!((&*summary.stop_reason, &*summary.text), ("cancelled", text));
    }
    assert!(!within(session.cancel()).await.unwrap());
}

#[tokio::test]
async fn crash_delivers_what_came_before_and_then_a_typed_error() {
    let world = World::new();
    let crash = [
        say("partial"),
        json!({"stderr": "out of luck"}),
        json!({"exit": 3}),
    ];
    let mark = world.dir.join("crashed");
    let once = json!({"once": {"mark": mark, "steps": crash}});
    let acpipe = world.start(&[vec![once, say("again"), end("end_turn")]]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("go").into_future()).await.unwrap();
    assert_eq!(read_text(&mut turn).await, "partial");
    let rest = read_all(&mut turn).await;
    assert!(
        rest.iter()
            .any(|chunk| matches!(chunk.kind(), ChunkKind::Error { .. })),
        "{rest:?}"
    );
    let error = turn.summary().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AgentExited);
    assert!(
        error.data()["stderr"]
            .as_str()
            .unwrap()
            .contains("out of luck")
    );
    assert_eq!(error.summary().unwrap().text, "partial");
    // The agent is restarted for the next prompt.
    let turn = within(session.prompt("go on").into_future()).await.unwrap();
    assert!(within(turn.summary()).await.is_ok());
}

#[tokio::test]
async fn error_of_an_agent_that_repeats_its_secrets_hides_them() {
    let world = World::new();
    let secrets = ["can\u{e4}ry/env", "can\u{e4}ry/all", "can\u{e4}ry/own"];
    let crash = [
        json!({"stderr": format!("the marker {}", secrets.join(" "))}),
        json!({"exit": 3}),
    ];
    let server = |name: &str, value: &str| {
        let env = json!([{"name": "KEY", "value": value}]);
        let server = json!({"name": name, "command": name, "args": [], "env": env});
        serde_json::from_value::<acpipe::McpServer>(server).unwrap()
    };
    let agent = world
        .agent(&prompts(&[crash.to_vec()]))
        .env("KEY", secrets[0]);
    let builder = world
        .builder_with(agent)
        .mcp_server(server("all", secrets[1]));
    let acpipe = builder.start().unwrap();
    let session = acpipe.session("chat").mcp_server(server("own", secrets[2]));
    let session = within(session.ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    let error = within(turn.summary()).await.unwrap_err();
    let shown = format!("{error} {:?} {:?}", error.data(), error.summary());
    assert!(shown.contains("the marker [hidden]"), "{shown}");
    for secret in secrets {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[tokio::test]
async fn prompt_that_the_hub_refuses_is_an_error_before_the_turn() {
    let world = World::new();
    let acpipe = world.start(&[say_until_cancelled("busy")]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let image = Message::user("see").file("image/png", b"png");
    let error = within(session.prompt(image).into_future()).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidParams);
    let mut turn = within(session.prompt("one").into_future()).await.unwrap();
    read_text(&mut turn).await;
    let second = session.prompt("two").reject_if_busy();
    let error = within(second.into_future()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
}

#[tokio::test]
async fn opening_over_its_time_limit_names_the_stage() {
    for (method, stage) in [("initialize", "initialize"), ("session/new", "session")] {
        let world = World::new();
        let acpipe = world
            .builder(&json!({ method: [[{"hang": true}]] }))
            .start()
            .unwrap();
        let session = acpipe.session("chat").timeout(Duration::from_millis(300));
        let error = within(session.ensure()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.to_string().contains(stage), "{error}");
    }
}

#[tokio::test]
async fn turn_over_its_time_limit_fails_with_its_text() {
    let world = World::new();
    let acpipe = world.start(&[say_until_cancelled("slow")]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let prompt = session.prompt("go").timeout(Duration::from_millis(300));
    let turn = within(prompt.into_future()).await.unwrap();
    let error = within(turn.summary()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert_eq!(error.summary().unwrap().text, "slow");
}
