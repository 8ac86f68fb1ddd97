//! Tests of `agent/status` in every state.

use super::fixture::{Fixture, On};
use On::{Exit, Measured, Need, Ready, Started, Status};
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::AgentState;
use std::time::Duration;

#[test]
fn status_waits_for_the_process_measurement() {
    let mut t = Fixture::ready();
    t.play(&[
        (Status, &["measure 1"]),
        (Status, &[]),
        (Measured, &["reply 2 ready", "reply 3 ready"]),
        (Measured, &[]),
    ]);
    let status = t.agent.status(&Secrets::default(), t.now);
    assert_eq!(status.processes[0].tree, Some(2));
    assert_eq!(status.processes[0].rss_bytes, Some(7));
}

#[test]
fn status_is_answered_if_the_process_exits_first() {
    let mut t = Fixture::ready();
    t.play(&[
        (Status, &["measure 1"]),
        (Exit, &["state disconnected with a reason", "reply 2 ready"]),
        (Measured, &[]),
    ]);
}

#[test]
fn status_gives_the_state_of_the_agent() {
    let mut t = Fixture::new();
    t.play(&[
        (Status, &["reply 1 disconnected"]),
        (
            Need,
            &[
                "state starting",
                "reply 2 done",
                "spawn 1 agent",
                "send 1 initialize",
            ],
        ),
        (Status, &["reply 3 starting"]),
        (Started, &[]),
        (Ready, &["state ready"]),
        (On::Disconnect, &["state stopping", "close input 1"]),
        (Status, &["measure 1"]),
        (
            Exit,
            &["state disconnected", "reply 5 stopping", "reply 4 done"],
        ),
        (Status, &["reply 6 disconnected"]),
    ]);
}

#[test]
fn status_names_the_pending_step_of_a_start() {
    let mut t = Fixture::new();
    t.on(&Need);
    t.now += Duration::from_secs(3);
    let waiting = t
        .agent
        .status(&Secrets::default(), t.now)
        .waiting_for
        .expect("a wait");
    assert_eq!((&*waiting.stage, waiting.silent_ms), ("spawn", 3000));
    t.on(&Started);
    let waiting = t
        .agent
        .status(&Secrets::default(), t.now)
        .waiting_for
        .expect("a wait");
    assert_eq!(&*waiting.stage, "initialize");
}

#[test]
fn status_keeps_the_reason_until_the_agent_is_restarted() {
    let mut t = Fixture::ready();
    for event in [Exit, Need, Ready, Exit] {
        t.on(&event);
    }
    let status = t.agent.status(&Secrets::default(), t.now);
    assert_eq!(status.state, AgentState::Disconnected);
    assert!(status.reason.is_some());
    t.on(&Need);
    assert_eq!(
        t.agent.status(&Secrets::default(), t.now).state,
        AgentState::Starting
    );
    assert!(t.agent.status(&Secrets::default(), t.now).reason.is_some());
    t.on(&On::Wait(Duration::from_secs(1)));
    assert!(t.agent.status(&Secrets::default(), t.now).reason.is_none());
}

#[test]
fn status_counts_only_restarts_after_a_crash() {
    let mut t = Fixture::ready();
    let restarts = |t: &Fixture| t.agent.status(&Secrets::default(), t.now).restarts;
    for event in [Exit, Need, Ready] {
        t.on(&event);
    }
    assert_eq!(restarts(&t), 1, "without a pause");
    for event in [Exit, Need, On::Wait(Duration::from_secs(1)), Ready] {
        t.on(&event);
    }
    assert_eq!(restarts(&t), 2, "after a pause");
    t.now += Duration::from_secs(60);
    for event in [On::StopIdle(Duration::from_secs(60)), Exit] {
        t.on(&event);
    }
    t.now += Duration::from_secs(60);
    t.on(&Need);
    assert!(t.agent.connection().is_some());
    assert_eq!(restarts(&t), 2, "it was stopped, and did not crash");
}
