//! Agents of the library, inside this program.

use crate::harness::{read_text, within};
use acpipe::agent::{AgentError, AgentFactory, FailureKind, Form, Tool, Usage};
use acpipe::testing::{Gate, Reply, ScriptedAgent};
use acpipe::{Acpipe, AgentConfig, ErrorKind};
use serde_json::json;

fn start(agent: &ScriptedAgent) -> Acpipe {
    let agent = agent.clone();
    let factory = AgentFactory::new(move || agent.clone());
    let builder = Acpipe::builder().agent(AgentConfig::in_process(&factory));
    builder
        .on_permission(|request| async move { request.allow() })
        .on_question(|question| async move {
            question.accept(&serde_json::Map::from_iter([(
                "why".to_owned(),
                json!("so"),
            )]))
        })
        .start()
        .unwrap()
}

#[tokio::test]
async fn agent_inside_the_program_plays_a_thousand_turns() {
    let agent = ScriptedAgent::new().on_any(Reply::text("Hello").then_text(", world"));
    let acpipe = start(&agent);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    assert_eq!(session.agent(), "scripted");
    for _ in 0..1000 {
        let turn = within(session.prompt("hi").into_future()).await.unwrap();
        assert_eq!(within(turn.summary()).await.unwrap().text, "Hello, world");
    }
    assert_eq!(agent.prompts().len(), 1000);
    within(acpipe.shutdown()).await;
}

#[tokio::test]
async fn output_of_an_agent_reaches_the_summary() {
    let reply = Reply::new()
        .ask(Tool::new("list_files", "List the files"), "a.txt")
        .question(Form::new("Why?").text("why", "Why"))
        .usage(Usage::new(3, 4))
        .cost(0.5, "USD")
        .structured_output(json!({ "files": 1 }));
    let acpipe = start(&ScriptedAgent::new().on_any(reply));
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    let summary = within(turn.summary()).await.unwrap();
    let summary = serde_json::to_value(&summary).unwrap();
    assert_eq!(summary["text"], r#"{"why":"so"}"#);
    assert_eq!(summary["toolsUsed"], json!(["list_files"]));
    assert_eq!(summary["usage"]["totalTokens"], 7, "{summary}");
    assert_eq!(summary["structuredOutput"], json!({ "files": 1 }));
}

#[tokio::test]
async fn failures_keep_their_kind_and_the_output_before_them() {
    let fail = |kind| Reply::text("partly").then_fail(AgentError::new(kind, "it failed"));
    let agent = ScriptedAgent::new()
        .on("malformed", fail(FailureKind::Malformed))
        .on("network", fail(FailureKind::Network))
        .on("panic", Reply::text("partly").panic("out of cheese"))
        .on("crash", Reply::text("partly").crash("disk on fire"))
        .on_any(Reply::text("fine"))
        .resumes();
    let acpipe = start(&agent);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    for (prompt, kind, reason) in [
        ("malformed", ErrorKind::Malformed, "it failed"),
        ("network", ErrorKind::Network, "it failed"),
        ("panic", ErrorKind::Session, "out of cheese"),
        ("crash", ErrorKind::AgentExited, "disk on fire"),
        ("panic", ErrorKind::Session, "out of cheese"),
    ] {
        let turn = within(session.prompt(prompt).into_future()).await.unwrap();
        let error = within(turn.summary()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let all = format!("{error} {:?}", error.data());
        assert!(all.contains(reason), "{all}");
        assert_eq!(error.summary().unwrap().text, "partly");
    }
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    assert_eq!(within(turn.summary()).await.unwrap().text, "fine");
}

#[tokio::test]
async fn dropped_turn_cancels_the_agent_inside_the_program() {
    let gate = Gate::new();
    let agent = ScriptedAgent::new()
        .on("wait", Reply::text("working").wait_for(&gate))
        .on_any(Reply::text("next"));
    let acpipe = start(&agent);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let mut turn = within(session.prompt("wait").into_future()).await.unwrap();
    assert_eq!(read_text(&mut turn).await, "working");
    within(gate.reached()).await;
    drop(turn);
    // The agent ignores the cancel, so its turn is dropped after the grace.
    let next = within(session.prompt("go").into_future()).await.unwrap();
    assert_eq!(within(next.summary()).await.unwrap().text, "next");
    within(acpipe.shutdown()).await;
}

#[tokio::test]
async fn panic_of_the_function_that_makes_an_agent_is_a_failed_start() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let is_named = AtomicBool::new(false);
    let factory = AgentFactory::new(move || {
        assert!(!is_named.swap(true, Ordering::SeqCst), "no more agents");
        ScriptedAgent::new()
    });
    let builder = Acpipe::builder().agent(AgentConfig::in_process(&factory));
    let acpipe = builder.start().unwrap();
    let error = within(acpipe.session("chat").ensure()).await.unwrap_err();
    let all = format!("{error} {:?}", error.data());
    assert!(all.contains("no more agents"), "{all}");
}
