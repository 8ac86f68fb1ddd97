//! Tests of calls whose end the agent never reports: they may have run without permission.

use super::fixture::{A, Fixture};
use super::play::{Play, settings};
use super::update_runs::prompted;
use crate::client::Command;
use crate::hub::{AgentInput, Exit, HubCx};
use crate::store::MemoryStore;
use crate::testing::{SettingsBuilder, params};
use acpipe_json::frame::Batch;
use acpipe_policy as policy;
use acpipe_policy::{Mode, Policy};
use serde_json::{Value, json};
use std::time::Instant;

pub(super) fn turn(policy: impl Into<Policy>) -> (Fixture, String) {
    let settings = SettingsBuilder::new(Instant::now());
    let mut t = Fixture::under(policy, Box::new(MemoryStore), settings, &[A]);
    t.prompt(A, "s");
    let session = t.prompted();
    (t, session)
}

pub(super) fn pending(id: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "execute", "kind": "execute",
        "status": "pending", "rawInput": {"command": "rm x"}})
}

/// Returns the titles of the notices, and the reasons in the ledger of unasked calls.
pub(super) fn reports(t: &Fixture) -> Vec<Value> {
    let notices = t.chunks(A, &["data-notice"]);
    notices
        .iter()
        .map(|notice| notice["data"]["title"].clone())
        .collect()
}

pub(super) const MAY: &str = "The agent may have run a tool without asking";

pub(super) fn no_bash() -> Policy {
    let mut policy = Policy::from(Mode::Approve);
    policy
        .add_listed("Bash", "disallowed_tools", policy::Effect::Deny)
        .unwrap();
    policy
}

#[test]
fn call_that_never_ends_is_reported_at_the_end_of_its_turn() {
    let policies = [
        no_bash(),
        Mode::Deny.into(),
        Mode::Reads.into(),
        Mode::Ask.into(),
    ];
    for policy in policies {
        let (mut t, session) = turn(policy);
        t.update(&session, &[pending("a")]);
        assert_eq!(reports(&t), Vec::<Value>::new());
        t.end_turn();
        assert_eq!(reports(&t), [MAY]);
    }
    let (mut t, session) = turn(Mode::Approve);
    t.update(&session, &[pending("a")]);
    t.end_turn();
    assert_eq!(reports(&t), Vec::<Value>::new());
}

#[test]
fn call_that_never_ends_is_reported_after_a_cancel_and_after_the_agents_death() {
    let (mut t, session) = turn(Mode::Deny);
    t.update(&session, &[pending("a")]);
    t.call(A, Command::Cancel(params(json!({"sessionId": "s"}))));
    t.end_turn();
    assert_eq!(reports(&t), [MAY]);

    let (mut t, session) = turn(Mode::Deny);
    t.update(&session, &[pending("a")]);
    let agent = *t.agents.last().unwrap();
    let exit = AgentInput::Exited(Exit::default());
    assert!(
        t.hub
            .agent(agent, exit, &mut HubCx::new(t.now, &mut t.sinks))
            .is_none()
    );
    t.settle();
    assert_eq!(reports(&t), [MAY]);
}

#[test]
fn call_that_never_ends_is_reported_at_the_end_of_a_background_turn() {
    let (mut t, session) = turn(Mode::Deny);
    t.end_turn();
    t.update(&session, &[pending("a")]);
    assert_eq!(reports(&t), Vec::<Value>::new());
    // The next prompt ends the background turn.
    t.prompt(A, "s");
    assert_eq!(reports(&t), [MAY]);
}

#[test]
fn call_that_could_not_run_or_was_asked_about_is_not_reported() {
    let asked = json!({"toolCallId": "a", "title": "execute", "kind": "execute"});
    // Refused, and never mentioned again.
    let (mut t, session) = turn(Mode::Deny);
    t.update(&session, &[pending("a")]);
    t.request_permission("r", &session, &asked);
    t.end_turn();
    assert_eq!((t.chosen("r").as_str(), reports(&t)), ("n", Vec::new()));

    // Allowed by the client.
    let (mut t, session) = turn(Mode::Ask);
    t.update(&session, &[pending("a")]);
    t.request_permission("r", &session, &asked);
    let ask = t.asked(A)[0];
    t.answer(
        A,
        ask,
        &json!({"outcome": {"outcome": "selected", "optionId": "y"}}),
    );
    t.end_turn();
    assert_eq!((t.chosen("r").as_str(), reports(&t)), ("y", Vec::new()));
}

#[test]
fn client_that_speaks_acp_is_notified_of_a_tool_that_ran_unasked() {
    let mut settings = settings(Instant::now());
    settings.policy = Mode::Deny.into();
    let mut play = Play::of(settings, Box::new(MemoryStore));
    prompted(&mut play);
    let mut ran = pending("a");
    ran["status"] = "completed".into();
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "S", "update": ran}});
    let lines = format!("{update}\n").into();
    play.hear(AgentInput::Batch(Batch::Lines(lines)));
    let [warning] = play.client.warnings.as_slice() else {
        panic!("{:?}", play.client.warnings);
    };
    assert!(
        warning.starts_with("The agent ran a tool without asking: "),
        "{warning}"
    );
    assert!(warning.contains("rm x"), "{warning}");
}

#[test]
fn name_of_a_question_does_not_hide_a_command() {
    let named = |kind: &str, input: Value| {
        json!({"sessionUpdate": "tool_call", "toolCallId": "a", "title": "AskUserQuestion", "kind": kind,
            "status": "completed", "rawInput": input, "_meta": {"claudeCode": {"toolName": "AskUserQuestion"}}})
    };
    for (update, count) in [
        (named("execute", json!({"command": "rm x"})), 1),
        (named("other", json!({"command": "rm x"})), 1),
        (named("other", json!({"questions": []})), 0),
    ] {
        let (mut t, session) = turn(Mode::Deny);
        t.update(&session, std::slice::from_ref(&update));
        t.end_turn();
        assert_eq!(reports(&t).len(), count, "{update}");
    }
}

#[test]
fn call_that_was_refused_under_another_id_is_not_reported() {
    let asked = json!({"toolCallId": "b", "title": "execute", "kind": "execute", "rawInput": {"command": "rm x"}});
    let (mut t, session) = turn(Mode::Deny);
    t.update(&session, &[pending("a")]);
    t.request_permission("r", &session, &asked);
    t.end_turn();
    assert_eq!((t.chosen("r").as_str(), reports(&t)), ("n", Vec::new()));
}
