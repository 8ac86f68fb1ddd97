//! Tests of starts that take too long.

use super::fixture::{Fixture, On};
use On::{Connect, Exit, Ready, Started, Wait};
use acpipe_model::dialect::Child;
use serde_json::json;
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

fn connect() -> On {
    Connect(json!({}))
}

#[test]
fn process_that_does_not_start_fails_the_connect() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (Wait(S(2)), &["state starting, waits: spawn"]),
        (Wait(S(2)), &["state starting, waits: spawn"]),
        (
            Wait(S(26)),
            &["state stopping", "reply 1 error timeout", "close input 1"],
        ),
        (Exit, &["state disconnected"]),
    ]);
}

#[test]
fn agent_that_does_not_answer_the_handshake_is_stopped() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (Started, &[]),
        (Wait(S(30)), &["state starting, waits: initialize"]),
        (
            Wait(S(30)),
            &["state stopping", "reply 1 error timeout", "close input 1"],
        ),
        (Wait(S(60)), &["terminate 1"]),
        (Exit, &["state disconnected"]),
    ]);
}

#[test]
fn ready_agent_has_no_deadline() {
    let mut t = Fixture::new();
    t.on(&connect());
    t.on(&Started);
    let deadline = t.agent.deadline(&t.shared.settings);
    let (at, what) = deadline.expect("a deadline");
    assert_eq!((at, what), (t.now + S(2), "slow start"));
    t.on(&Ready);
    assert_eq!(t.agent.deadline(&t.shared.settings), None);
    t.play(&[(Wait(S(3600)), &[])]);
}

#[test]
fn postponed_time_does_not_count_for_the_start() {
    let mut t = Fixture::new();
    t.on(&connect());
    t.agent.postpone(S(1000));
    t.play(&[
        (Wait(S(1001)), &[]),
        (Wait(S(1)), &["state starting, waits: spawn"]),
    ]);
}

#[test]
fn output_of_a_process_shows_that_it_started() {
    let mut t = Fixture::new();
    t.on(&connect());
    let now = t.now;
    let connection = t.agent.connection_mut().expect("a connection");
    assert!(connection.note_output(Child::MAIN, now));
    t.play(&[
        (Wait(S(30)), &["state starting, waits: spawn"]),
        (
            Wait(S(30)),
            &["state stopping", "reply 1 error timeout", "close input 1"],
        ),
    ]);
}
