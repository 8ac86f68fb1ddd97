//! Tests of the work that goes on after its client left.

use super::{attach, connect_as, folded, last_message, presences, selected};
use crate::client::Command;
use crate::hub::tests::fixture::{A, B, C, Fixture};
use crate::hub::tests::idle::Disk;
use crate::hub::{AgentInput, Exit, HubCx};
use crate::testing::{SettingsBuilder, params};
use acpipe_protocol::wire::OnDisconnect;
use serde_json::json;
use std::time::{Duration, Instant};

/// Default time for an answer.
const ANSWER: Duration = Duration::from_secs(300);

const LAST_SECOND: Duration = Duration::from_secs(1);

/// A client whose work goes on after its departure, with a session `s`.
fn continuing() -> Fixture {
    continuing_with(SettingsBuilder::new(Instant::now()))
}

fn continuing_with(settings: SettingsBuilder) -> Fixture {
    let mut t = Fixture::of(settings, &[]);
    connect_as(&mut t, A, "window", OnDisconnect::Continue);
    t.ensure(A, "s");
    t
}

fn pass(t: &mut Fixture, time: Duration) {
    t.now += time;
    t.hub.tick(&mut HubCx::new(t.now, &mut t.sinks));
    t.settle();
}

fn was_cancelled(t: &Fixture) -> bool {
    t.received.iter().any(|m| m["method"] == "session/cancel")
}

#[test]
fn turn_and_queue_go_on_without_their_client() {
    let mut t = continuing();
    t.prompt(A, "s");
    let session = t.prompted();
    t.prompt(A, "s");
    t.say(&[Fixture::words(&session, "one ")]);
    t.leave(A);
    t.say(&[Fixture::words(&session, "two")]);
    t.end_turn();
    assert!(!was_cancelled(&t));
    let prompts = t
        .received
        .iter()
        .filter(|m| m["method"] == "session/prompt");
    assert_eq!(prompts.count(), 2, "the queued prompt was sent");
    t.say(&[Fixture::words(&session, "three")]);
    connect_as(&mut t, B, "phone", OnDisconnect::Continue);
    let result = attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
    assert_eq!(t.texts(B).concat(), "one twothree");
    assert_eq!(result["running"]["clientId"], "c0");
    t.end_turn();
    let turn = result["running"]["turnId"].as_str().unwrap();
    assert_eq!(folded(&t, B, turn), last_message(&mut t, B, "s"));
}

#[test]
fn attached_client_may_choose_that_its_departure_cancels() {
    let mut t = continuing();
    let result = attach(
        &mut t,
        A,
        json!({"sessionId": "s", "onDisconnect": "cancel"}),
    );
    assert_eq!(result["clients"][0]["onDisconnect"], "cancel");
    t.prompt(A, "s");
    t.leave(A);
    assert!(was_cancelled(&t));
}

#[test]
fn client_without_a_daemon_may_choose_that_its_turn_goes_on() {
    let mut t = Fixture::with(&[A, B]);
    attach(
        &mut t,
        A,
        json!({"sessionId": "s", "onDisconnect": "continue"}),
    );
    t.prompt(A, "s");
    t.leave(A);
    assert!(!was_cancelled(&t));
    t.end_turn();
}

#[test]
fn open_request_waits_for_a_client_that_comes_back() {
    let mut t = continuing();
    t.prompt(A, "s");
    t.ask_permission();
    t.leave(A);
    assert_eq!(t.decided(), None);
    pass(&mut t, ANSWER.saturating_sub(LAST_SECOND));
    connect_as(&mut t, B, "phone", OnDisconnect::Continue);
    attach(&mut t, B, json!({"sessionId": "s"}));
    let ask = t.asked(B)[0];
    t.answer(B, ask, &selected("y"));
    assert_eq!(t.decided(), Some("y"));
}

#[test]
fn request_that_comes_while_no_client_is_there_waits_for_one() {
    let mut t = continuing();
    t.prompt(A, "s");
    t.leave(A);
    t.ask_permission();
    assert_eq!(t.decided(), None);
    connect_as(&mut t, B, "phone", OnDisconnect::Continue);
    attach(&mut t, B, json!({"sessionId": "s", "role": "observer"}));
    assert!(t.asked(B).is_empty());
    attach(&mut t, B, json!({"sessionId": "s", "role": "controller"}));
    let ask = t.asked(B)[0];
    t.answer(B, ask, &selected("n"));
    assert_eq!(t.decided(), Some("n"));
}

#[test]
fn policy_decides_after_the_time_for_an_answer() {
    for is_asked_before in [true, false] {
        let mut t = continuing();
        t.prompt(A, "s");
        if is_asked_before {
            t.ask_permission();
        }
        t.leave(A);
        if !is_asked_before {
            t.ask_permission();
        }
        pass(&mut t, ANSWER.saturating_sub(LAST_SECOND));
        assert_eq!(t.decided(), None);
        pass(&mut t, LAST_SECOND);
        assert_eq!(t.decided(), Some("n"), "{is_asked_before}");
        let mut by = Vec::new();
        let session = t.hub.router.sessions().get("s").unwrap();
        session
            .talk
            .output
            .log()
            .decisions(|stored| by.push(stored.decision.by))
            .unwrap();
        assert_eq!(by, ["timeout"]);
        t.end_turn();
    }
}

#[test]
fn unlimited_answers_are_limited_while_no_client_is_there() {
    let unlimited = |is_asked_before: bool, comes_back: bool| {
        let settings = SettingsBuilder::new(Instant::now());
        let mut t = continuing_with(settings.unlimited_answers());
        t.prompt(A, "s");
        if is_asked_before {
            t.ask_permission();
        }
        t.leave(A);
        if !is_asked_before {
            t.ask_permission();
        }
        if comes_back {
            connect_as(&mut t, B, "phone", OnDisconnect::Continue);
            attach(&mut t, B, json!({"sessionId": "s"}));
        }
        pass(&mut t, ANSWER);
        t.decided().map(str::to_owned)
    };
    for is_asked_before in [true, false] {
        assert_eq!(unlimited(is_asked_before, false).as_deref(), Some("n"));
        assert_eq!(unlimited(is_asked_before, true), None);
    }
}

#[test]
fn request_that_no_client_can_answer_is_decided_at_once_while_no_client_has_left() {
    let mut t = Fixture::of(SettingsBuilder::new(Instant::now()), &[]);
    t.connect_with(A, &json!({}));
    t.ensure(A, "s");
    attach(
        &mut t,
        A,
        json!({"sessionId": "s", "onDisconnect": "continue"}),
    );
    t.prompt(A, "s");
    t.ask_permission();
    assert_eq!(t.decided(), Some("n"));
}

#[test]
fn agent_does_not_wait_for_a_client_that_may_leave() {
    let mut t = continuing();
    t.prompt(A, "s");
    let session = t.prompted();
    t.say(&[Fixture::words(&session, "one ")]);
    t.set_full(A, true);
    t.say(&[Fixture::words(&session, "two ")]);
    t.leave(A);
    t.say(&[Fixture::words(&session, "three")]);
    t.end_turn();
    connect_as(&mut t, B, "phone", OnDisconnect::Continue);
    attach(&mut t, B, json!({"sessionId": "s", "afterSeq": 0}));
    assert_eq!(t.texts(B).concat(), "one two three");
}

#[test]
fn agent_does_not_wait_for_an_observer() {
    let mut t = Fixture::with(&[A]);
    t.connect(B);
    attach(&mut t, B, json!({"sessionId": "s", "role": "observer"}));
    attach(
        &mut t,
        A,
        json!({"sessionId": "s", "onDisconnect": "continue"}),
    );
    t.prompt(A, "s");
    let session = t.prompted();
    t.leave(A);
    t.set_full(B, true);
    t.say(&[Fixture::words(&session, "a word")]);
    t.set_full(B, false);
    assert_eq!(t.texts(B), ["a word"]);
}

#[test]
fn host_request_to_a_client_that_left_fails() {
    let mut t = Fixture::of(SettingsBuilder::new(Instant::now()), &[]);
    connect_as(&mut t, A, "window", OnDisconnect::Continue);
    t.connect_with(B, &json!({"fs": {"readTextFile": true}}));
    t.ensure(A, "s");
    attach(
        &mut t,
        B,
        json!({"sessionId": "s", "onDisconnect": "continue"}),
    );
    t.prompt(B, "s");
    let session = t.prompted();
    let path = format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"));
    let read = json!({"sessionId": session, "path": path});
    t.say(&[json!({"id": "r", "method": "fs/read_text_file", "params": read})]);
    let ask = t.asked(A)[0];
    t.answer(A, ask, &selected("allow"));
    t.leave(B);
    let answer = t.received.iter().find(|m| m["id"] == "r").unwrap();
    assert!(answer["error"]["message"].is_string(), "{answer}");
}

#[test]
fn clients_stay_attached_to_a_session_that_was_unloaded() {
    let limit = Duration::from_secs(60);
    let settings = SettingsBuilder::new(Instant::now()).idle_after(Some(limit));
    let mut t = Fixture::on(Box::new(Disk::default()), settings, &[A]);
    t.connect(B);
    t.connect(C);
    t.prompt(A, "s");
    t.end_turn();
    for client in [B, C] {
        attach(&mut t, client, json!({"sessionId": "s"}));
    }
    let call = t.call(A, Command::Disconnect(params(json!({}))));
    let process = *t.agents.last().unwrap();
    let exited = AgentInput::Exited(Exit::default());
    let now = t.now;
    assert!(
        t.hub
            .agent(process, exited, &mut HubCx::new(now, &mut t.sinks))
            .is_none()
    );
    t.settle();
    t.result(A, call);
    for _ in 0..3 {
        pass(&mut t, limit);
    }
    assert!(
        t.hub.router.sessions().get("s").is_none(),
        "it was unloaded"
    );
    assert_eq!(t.hub.router.unloaded().subscribers("s").unwrap().count(), 3);
    t.leave(C);
    assert_eq!(
        presences(&t, A).last().unwrap(),
        "c0*:Controller c1:Controller"
    );
    t.prompt(A, "s");
    t.answer_all();
    t.say(&[Fixture::words(&t.prompted(), "awake")]);
    assert_eq!(t.texts(B), ["awake"]);
}
