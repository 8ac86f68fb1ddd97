//! Tests of elicitations that belong to no session.

use super::fixture::{Fixture, On};
use crate::client_requests::MOST_OPEN_REQUESTS;
use On::{Ask, Client, Connect, Disconnect, Exit, Need, Ready, Wait, Withdraw};
use acpipe_model::error::{Error, ErrorKind};
use serde_json::json;
use std::time::Duration;

fn accept() -> On {
    Client(json!({ "action": "accept", "content": {} }))
}

#[test]
fn question_is_answered_once() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (accept(), &["send 1 q1 = {action:accept,content:{}}"]),
        (accept(), &[]),
        (Withdraw("q1"), &[]),
        (Wait(Duration::from_secs(300)), &[]),
    ]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn question_without_an_answer_is_declined_in_time() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (Wait(Duration::from_secs(299)), &[]),
        (
            Wait(Duration::from_secs(1)),
            &["withdraw by timeout", "send 1 q1 = {action:decline}"],
        ),
        (accept(), &[]),
    ]);
}

#[test]
fn postponed_time_does_not_count_for_a_question() {
    let mut t = Fixture::ready();
    t.on(&Ask("q1"));
    t.agent.postpone(Duration::from_secs(60));
    t.play(&[
        (Wait(Duration::from_secs(300)), &[]),
        (
            Wait(Duration::from_secs(60)),
            &["withdraw by timeout", "send 1 q1 = {action:decline}"],
        ),
    ]);
}

#[test]
fn withdrawn_question_is_cancelled_once() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (Withdraw("other"), &[]),
        (
            Withdraw("q1"),
            &["withdraw by agent", "send 1 q1 = {action:cancel}"],
        ),
        (Withdraw("q1"), &[]),
        (accept(), &[]),
    ]);
}

#[test]
fn answer_never_reaches_a_later_connection() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (
            Exit,
            &["state disconnected with a reason", "withdraw by end"],
        ),
        (
            Need,
            &[
                "state starting",
                "reply 2 done",
                "spawn 2 agent",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready"]),
        (accept(), &[]),
    ]);
    assert!(t.shared.client_requests.is_empty());
}

#[test]
fn question_that_outlived_its_connection_is_not_answered_to_the_next() {
    let mut t = Fixture::ready();
    t.on(&Ask("q1"));
    let error = Error::new(ErrorKind::AgentExited, "the agent exited");
    t.act(|agent, cx| agent.gone(&error, false, cx));
    t.on(&Need);
    t.on(&Ready);
    t.play(&[(accept(), &[]), (Withdraw("q1"), &[])]);
}

#[test]
fn question_is_cancelled_when_its_agent_stops() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (Disconnect, &["state stopping", "close input 1"]),
        (Ask("q2"), &["send 1 q2 = {action:cancel}"]),
        (
            Exit,
            &["state disconnected", "withdraw by end", "reply 2 done"],
        ),
    ]);
}

#[test]
fn question_before_the_agent_is_ready_is_asked() {
    let mut t = Fixture::new();
    t.on(&Connect(json!({})));
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (accept(), &["send 1 q1 = {action:accept,content:{}}"]),
        (Ready, &["state ready", "reply 1 ready"]),
    ]);
}

#[test]
fn questions_over_the_limit_are_declined() {
    let mut t = Fixture::ready();
    for _ in 0..MOST_OPEN_REQUESTS {
        assert_eq!(t.on(&Ask("q")), ["ask question/ask"]);
    }
    t.play(&[(Ask("last"), &["send 1 last = {action:decline}"])]);
}

#[test]
fn answer_that_is_not_valid_declines() {
    let mut t = Fixture::ready();
    t.play(&[
        (Ask("q1"), &["ask question/ask"]),
        (
            Client(json!({ "action": "maybe" })),
            &["send 1 q1 = {action:decline}"],
        ),
    ]);
}
