//! Permission requests and questions, which the program's handlers answer.

use crate::harness::{World, end, prompts, say, within};
use acpipe::{Policy, QuestionKind, Rule};
use serde_json::{Value, json};

fn ask_to(title: &str) -> Value {
    let tool = json!({"toolCallId": title, "title": title, "kind": "execute", "rawInput": {"command": title}});
    let options = json!([
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ]);
    json!({"ask": {"method": "session/request_permission", "params": {"toolCall": tool, "options": options}}})
}

/// Returns the options that the agents of a test received as answers.
fn answers(world: &World) -> Vec<String> {
    let log = world.log();
    let answers = log
        .iter()
        .map(|message| &message["result"]["outcome"]["optionId"]);
    answers
        .filter_map(|id| Some(id.as_str()?.to_owned()))
        .collect()
}

#[tokio::test]
async fn handler_decides_what_the_policy_leaves_open() {
    let world = World::new();
    let commands = ["cargo test", "rm -rf /", "git status"];
    let mut steps: Vec<Value> = commands.iter().map(|command| ask_to(command)).collect();
    steps.push(end("end_turn"));
    let policy = Policy::ask().rule(Rule::allow("git").command("git status"));
    let acpipe = world
        .builder(&prompts(&[steps]))
        .policy(policy)
        .on_permission(|request| async move {
            // Handlers may wait.
            tokio::task::yield_now().await;
            assert_eq!(request.session_id(), "chat");
            match request.command() {
                Some("cargo test") => request.allow(),
                Some("rm -rf /") => request.deny_because("no"),
                other => panic!("the policy decides {other:?}"),
            }
        })
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    assert_eq!(answers(&world), ["y", "n", "y"]);
}

#[tokio::test]
async fn handler_runs_once_for_several_handles_of_a_session() {
    let world = World::new();
    let (sender, mut calls) = tokio::sync::mpsc::channel(8);
    let acpipe = world
        .builder(&prompts(&[vec![ask_to("ls"), end("end_turn")]]))
        .on_permission(move |request| {
            let sender = sender.clone();
            async move {
                sender.send(()).await.unwrap();
                request.allow()
            }
        })
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let _second = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    assert_eq!(answers(&world), ["y"]);
    assert_eq!(
        (calls.recv().await, calls.try_recv().is_err()),
        (Some(()), true)
    );
}

#[tokio::test]
async fn handler_that_panics_refuses() {
    let world = World::new();
    let acpipe = world
        .builder(&prompts(&[vec![ask_to("ls"), end("end_turn")]]))
        .on_permission(|request| async move {
            assert!(request.command().is_none(), "the handler fails");
            request.allow()
        })
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    assert_eq!(answers(&world), ["n"]);
}

#[tokio::test]
async fn cancel_ends_a_handler_that_waits() {
    /// Reports that the handler's future was dropped.
    struct Dropped(Option<tokio::sync::oneshot::Sender<()>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }

    let world = World::new();
    let (sender, mut waits) = tokio::sync::mpsc::channel(1);
    let acpipe = world
        .builder(&prompts(&[vec![ask_to("ls"), end("cancelled")]]))
        .on_permission(move |request| {
            let sender = sender.clone();
            async move {
                let (drops, dropped) = tokio::sync::oneshot::channel();
                let _guard = Dropped(Some(drops));
                sender.send(dropped).await.unwrap();
                std::future::pending::<()>().await;
                request.allow()
            }
        })
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    let dropped = within(waits.recv()).await.unwrap();
    assert!(within(turn.cancel()).await.unwrap());
    within(dropped).await.unwrap();
    assert_eq!(
        within(turn.summary()).await.unwrap().stop_reason,
        "cancelled"
    );
}

#[tokio::test]
async fn question_handler_answers_a_form() {
    let world = World::new();
    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "required": ["name"], "properties": {"name": {"type": "string"}}}});
    let ask = json!({"ask": {"method": "elicitation/create", "params": form}});
    let acpipe = world
        .builder(&prompts(&[vec![
            ask,
            json!({"echoAnswer": true}),
            end("end_turn"),
        ]]))
        .on_question(|question| async move {
            assert_eq!(question.kind(), QuestionKind::Form);
            assert_eq!(question.message(), "Who?");
            assert!(question.schema().unwrap()["properties"]["name"].is_object());
            let content = json!({"name": "Ada"});
            question.accept(content.as_object().unwrap())
        })
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    let summary = within(turn.summary()).await.unwrap();
    let answer: Value = serde_json::from_str(&summary.text).unwrap();
    assert_eq!(answer["result"]["content"]["name"], "Ada", "{answer}");
}

#[tokio::test]
async fn policy_alone_decides_without_a_handler() {
    let world = World::new();
    let steps = vec![
        ask_to("cargo test"),
        ask_to("rm x"),
        say("done"),
        end("end_turn"),
    ];
    let acpipe = world
        .builder(&prompts(&[steps]))
        .policy(Policy::deny_all().allow("Bash(cargo test)"))
        .start()
        .unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    assert_eq!(answers(&world), ["y", "n"]);
}
