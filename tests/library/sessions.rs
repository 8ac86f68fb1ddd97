//! Sessions: receipts, history, lists, and a restart of the program.

use crate::harness::{World, end, prompts, say, within};
use acpipe::{Acpipe, AgentState, ErrorKind, Memory, RestoreMethod};
use serde_json::{Value, json};

/// Script of an agent that can load sessions, and then replays one turn.
fn loading(turns: &[Vec<Value>]) -> Value {
    let mut script = prompts(turns);
    let hello = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": true}, "authMethods": []});
    script["initialize"] = json!([[{"reply": hello}]]);
    let asked =
        json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "one"}});
    let replay = [
        json!({ "update": asked }),
        say("first"),
        json!({"reply": {}}),
    ];
    script["session/load"] = json!([replay]);
    script
}

async fn ask(session: &acpipe::Session, text: &str) -> String {
    let turn = within(session.prompt(text).into_future()).await.unwrap();
    within(turn.summary()).await.unwrap().text
}

#[tokio::test]
async fn session_and_its_history_survive_a_restart_of_the_program() {
    let world = World::new();
    let agent = world.agent(&loading(&[vec![say("first"), end("end_turn")]]));
    let state = world.dir.join("state");
    let acpipe = world
        .builder_with(agent.clone())
        .state_dir(&state)
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    assert_eq!(session.receipt().rung, RestoreMethod::New);
    assert_eq!(session.receipt().memory, Memory::None);
    assert_eq!(session.cwd(), world.dir.to_str().unwrap());
    let agent_session = session.agent_session_id().to_owned();
    assert_eq!(ask(&session, "one").await, "first");
    within(acpipe.shutdown()).await;

    let acpipe = world
        .builder_with(agent.clone())
        .state_dir(&state)
        .start()
        .unwrap();
    let listed = within(acpipe.sessions()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].session_id.as_deref(), Some("chat"));
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let receipt = session.receipt();
    assert_eq!(receipt.rung, RestoreMethod::Load, "{receipt:?}");
    assert_eq!(session.agent_session_id(), agent_session);
    let messages = within(session.messages().list()).await.unwrap();
    let messages: Vec<_> = messages.iter().map(|m| (m.role(), m.text())).collect();
    assert_eq!(
        messages,
        [
            ("user", "one".to_owned()),
            ("assistant", "first".to_owned())
        ]
    );
    let last = within(session.messages().last()).await.unwrap();
    assert_eq!(last.unwrap().text(), "first");
    within(session.delete()).await.unwrap();
    assert!(within(acpipe.sessions()).await.unwrap().is_empty());
    within(acpipe.shutdown()).await;
}

#[tokio::test]
async fn messages_are_listed_page_by_page() {
    let world = World::new();
    let acpipe = world.start(&[vec![say("ok"), end("end_turn")]]);
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    for n in 0..3 {
        ask(&session, &n.to_string()).await;
    }
    let (page, has_more) = within(session.messages().page(None, 4)).await.unwrap();
    assert_eq!((page.len(), has_more), (4, true));
    let after = page.last().unwrap().id().to_owned();
    let (page, has_more) = within(session.messages().page(Some(after), 4))
        .await
        .unwrap();
    assert_eq!((page.len(), has_more), (2, false));
    assert_eq!(page[0].text(), "2");
}

#[tokio::test]
async fn sessions_choose_among_named_agents() {
    let world = World::new();
    let other = world.agent(&prompts(&[vec![say("other"), end("end_turn")]]));
    let acpipe = world.builder(&prompts(&[vec![say("default"), end("end_turn")]]));
    let acpipe = acpipe.agent(other.name("other")).start().unwrap();
    let first = within(acpipe.session("one").ensure()).await.unwrap();
    let second = within(acpipe.session("two").agent("other").ensure())
        .await
        .unwrap();
    assert_eq!(ask(&first, "?").await, "default");
    assert_eq!(ask(&second, "?").await, "other");
    assert_eq!((first.agent(), second.agent()), ("default", "other"));
    let agents = within(acpipe.agents()).await.unwrap();
    let names: Vec<_> = agents.iter().map(|a| (&*a.agent, a.is_default)).collect();
    assert_eq!(names, [("default", true), ("other", false)]);
    let status = within(acpipe.agent_status("other")).await.unwrap();
    assert_eq!(status.state, AgentState::Ready);
    let error = within(acpipe.session("three").agent("nobody").ensure()).await;
    assert!(error.unwrap_err().message().contains("nobody"));
}

#[tokio::test]
async fn invalid_settings_are_errors_of_the_start() {
    let world = World::new();
    let script = json!({});
    let kind = |builder: acpipe::Builder| builder.start().unwrap_err().kind();
    assert_eq!(
        kind(Acpipe::builder().agent("clade")),
        ErrorKind::InvalidParams
    );
    let unnamed = world.builder(&script).agent(world.agent(&script));
    assert_eq!(kind(unnamed), ErrorKind::InvalidParams);
    let twice = world
        .builder(&script)
        .agent(world.agent(&script).name("a"))
        .agent(world.agent(&script).name("a"));
    assert_eq!(kind(twice), ErrorKind::DuplicateAgent);
    let not_acpipe = world.builder(&script).supervisor("/bin/true");
    assert_eq!(kind(not_acpipe), ErrorKind::InvalidParams);
    let acpipe = Acpipe::builder().without_supervisor().start().unwrap();
    let error = within(acpipe.session("chat").ensure()).await.unwrap_err();
    assert!(
        error.message().contains("no default agent is set"),
        "{error}"
    );
}

#[tokio::test]
async fn session_that_cannot_be_stored_is_an_error_of_the_caller() {
    let world = World::new();
    let agent = world.agent(&json!({}));
    let start = |dir: &str| {
        let builder = world.builder_with(agent.clone());
        builder.state_dir(world.dir.join(dir)).start()
    };
    std::fs::write(world.dir.join("file"), "").unwrap();
    assert_eq!(start("file").unwrap_err().kind(), ErrorKind::Storage);
    // The directory can be opened, and no file can be created in it, also by root.
    std::fs::create_dir(world.dir.join("closed")).unwrap();
    std::os::unix::fs::symlink("/proc", world.dir.join("closed/sessions")).unwrap();
    let acpipe = start("closed").unwrap();
    let error = within(acpipe.session("chat").ensure()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
}

#[test]
fn start_outside_of_a_runtime_is_an_error() {
    let error = Acpipe::builder().start().unwrap_err();
    assert!(error.message().contains("tokio runtime"), "{error}");
}
