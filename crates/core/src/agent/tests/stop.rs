//! Tests of the ordered stop: the steps of a process, and the idle stop.

use super::fixture::{Fixture, On};
use On::{Disconnect, Exit, Expedite, Need, Ready, Started, StopIdle, Wait};
use serde_json::json;
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn process_that_does_not_exit_is_terminated_and_then_killed() {
    let mut t = Fixture::ready();
    t.play(&[
        (Disconnect, &["state stopping", "close input 1"]),
        (Wait(S(1)), &[]),
        (Wait(S(1)), &["terminate 1"]),
        (Wait(S(2)), &[]),
        (Wait(S(1)), &["kill 1"]),
        (Wait(S(60)), &[]),
        (Exit, &["state disconnected", "reply 2 done"]),
    ]);
}

#[test]
fn second_interrupt_shortens_the_shutdown_and_a_third_kills() {
    let mut t = Fixture::ready();
    t.play(&[
        (Expedite, &[]),
        (Disconnect, &["state stopping", "close input 1"]),
        (Expedite, &["terminate 1"]),
        (Expedite, &["kill 1"]),
    ]);
    let mut t = Fixture::ready();
    t.on(&Disconnect);
    t.on(&Expedite);
    t.play(&[(Wait(Duration::from_millis(300)), &["kill 1"])]);
}

#[test]
fn idle_agent_is_stopped_and_started_again_when_it_is_needed() {
    let mut t = Fixture::ready();
    t.now += S(59);
    t.play(&[
        (StopIdle(S(60)), &[]),
        (Wait(S(1)), &[]),
        (
            StopIdle(S(60)),
            &["state stopping with a reason", "close input 1"],
        ),
    ]);
    assert!(t.agent.connection().unwrap().is_stopping_by_itself());
    t.play(&[
        (Exit, &["state disconnected with a reason"]),
        (
            Need,
            &[
                "state starting",
                "reply 2 done",
                "spawn 2 agent",
                "send 2 initialize",
            ],
        ),
    ]);
}

#[test]
fn used_agent_is_not_idle() {
    let mut t = Fixture::ready();
    t.now += S(59);
    let now = t.now;
    t.agent.connection_mut().unwrap().used = now;
    t.now += S(59);
    t.play(&[(StopIdle(S(60)), &[])]);
}

#[test]
fn agent_that_starts_or_signs_in_is_not_idle() {
    let mut t = Fixture::new();
    t.on(&Need);
    t.play(&[(Started, &[])]);
    t.now += S(59);
    t.play(&[(StopIdle(S(1)), &[]), (Ready, &["state ready"])]);
    let methods = json!([{ "id": "web", "name": "Web" }]);
    let handshake = json!({ "protocolVersion": 1, "authMethods": methods });
    let mut t = Fixture::ready_with(handshake);
    let sign = On::Authenticate(json!({ "methodId": "web" }));
    t.play(&[(sign, &["send 1 authenticate"])]);
    t.now += S(61);
    t.play(&[(StopIdle(S(60)), &[])]);
}

#[test]
fn call_during_the_idle_stop_has_the_agent_started_again() {
    let mut t = Fixture::ready();
    t.now += S(60);
    t.on(&StopIdle(S(60)));
    super::super::Renewal::begin_now(t.agent.renewal_mut());
    t.play(&[
        (
            Exit,
            &[
                "state disconnected with a reason",
                "state starting",
                "spawn 2 agent",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready"]),
        (On::Idle, &[]),
    ]);
    assert!(t.agent.renewal().is_none());
}
