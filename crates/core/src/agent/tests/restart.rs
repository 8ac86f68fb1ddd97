//! Tests of restarts after crashes: increasing delays, and a limit.

use super::fixture::{Fixture, On};
use crate::agent::{AgentMachine, AgentSpec};
use crate::ids::AgentRef;
use crate::testing::SettingsBuilder;
use On::{Connect, Disconnect, Exit, Need, OutputClosed, Ready, StartFailed, TurnCompleted, Wait};
use acpipe_protocol::wire::AgentSource;
use serde_json::json;
use std::time::{Duration, Instant};

const S: fn(u64) -> Duration = Duration::from_secs;

#[test]
fn pauses_grow_until_the_agent_is_not_restarted_any_more() {
    let mut t = Fixture::ready();
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
        (Ready, &["state ready"]),
        (Exit, &["state disconnected with a reason"]),
        (Need, &["state starting", "reply 3 done"]),
        (Need, &["reply 4 done"]),
        (Wait(S(1)), &["spawn 3 agent", "send 3 initialize"]),
        (Ready, &["state ready"]),
        (Exit, &["state disconnected with a reason"]),
        (Need, &["state starting", "reply 5 done"]),
        (Wait(S(1)), &[]),
        (Wait(S(1)), &["spawn 4 agent", "send 4 initialize"]),
        (Ready, &["state ready"]),
        (Exit, &["state disconnected with a reason"]),
        (Need, &["reply 6 error agentExited"]),
    ]);
}

#[test]
fn completed_turn_forgives_earlier_crashes() {
    let mut t = Fixture::ready();
    for event in [
        Exit,
        Need,
        Ready,
        Exit,
        Need,
        Wait(S(1)),
        Ready,
        TurnCompleted,
    ] {
        t.on(&event);
    }
    t.play(&[
        (Exit, &["state disconnected with a reason"]),
        (
            Need,
            &[
                "state starting",
                "reply 4 done",
                "spawn 4 agent",
                "send 4 initialize",
            ],
        ),
    ]);
}

#[test]
fn connect_forgives_earlier_crashes() {
    let mut t = Fixture::ready();
    for event in [Exit, Need, Ready, Exit, Need, Wait(S(1)), Ready, Exit, Need] {
        t.on(&event);
    }
    t.play(&[
        (Connect(json!({})), &["spawn 4 agent", "send 4 initialize"]),
        (Ready, &["state ready", "reply 5 ready"]),
        (Exit, &["state disconnected with a reason"]),
        (
            Need,
            &[
                "state starting",
                "reply 6 done",
                "spawn 5 agent",
                "send 5 initialize",
            ],
        ),
    ]);
}

#[test]
fn elapsed_backoff_does_not_delay_a_restart() {
    let mut t = Fixture::ready();
    for event in [Exit, Need, Ready, Exit, Wait(S(60))] {
        t.on(&event);
    }
    t.play(&[(
        Need,
        &[
            "state starting",
            "reply 3 done",
            "spawn 3 agent",
            "send 3 initialize",
        ],
    )]);
}

#[test]
fn agent_that_fails_at_its_restart_counts_as_crashed_again() {
    let mut t = Fixture::ready();
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
        (StartFailed, &["state disconnected with a reason"]),
        (Need, &["state starting", "reply 3 done"]),
        (Wait(S(1)), &["spawn 3 agent", "send 3 initialize"]),
    ]);
}

#[test]
fn agent_that_closes_its_stdout_is_stopped_and_restarted() {
    let mut t = Fixture::ready();
    t.play(&[
        (OutputClosed, &["state stopping", "close input 1"]),
        (OutputClosed, &[]),
        (Exit, &["state disconnected"]),
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
fn demo_agent_is_not_started_for_a_call_that_needs_an_agent() {
    let mut settings = SettingsBuilder::new(Instant::now()).build();
    settings.default_agent.spec.source = AgentSource::Demo;
    let mut t = Fixture::new();
    let configured = settings.default_agent.clone();
    t.agent = AgentMachine::new(AgentRef(0), configured.clone());
    t.play(&[(Need, &["reply 1 error outOfOrder"])]);
    let own = Some(AgentSpec {
        command: "own".to_owned(),
        ..configured.spec
    });
    assert_eq!(t.act(|agent, cx| agent.need(own.clone(), cx)), Ok(()));
    t.play(&[
        (
            Ready,
            &["state starting", "spawn 1 own", "send 1 initialize"],
        ),
        (Disconnect, &["state stopping", "close input 1"]),
        (Exit, &["state disconnected", "reply 2 done"]),
    ]);
    assert!(
        t.act(|agent, cx| agent.need(own, cx)).is_err(),
        "the client disconnected it"
    );
}

#[test]
fn crash_keeps_the_connected_command_and_a_disconnect_the_configured_one() {
    let mut t = Fixture::new();
    let other = Connect(json!({ "command": "other" }));
    t.play(&[
        (
            other,
            &["state starting", "spawn 1 other", "send 1 initialize"],
        ),
        (Ready, &["state ready", "reply 1 ready"]),
        (Exit, &["state disconnected with a reason"]),
        (
            Need,
            &[
                "state starting",
                "reply 2 done",
                "spawn 2 other",
                "send 2 initialize",
            ],
        ),
        (Disconnect, &["state stopping", "close input 2"]),
        (Exit, &["state disconnected", "reply 3 done"]),
        (
            Need,
            &[
                "state starting",
                "reply 4 done",
                "spawn 3 agent",
                "send 3 initialize",
            ],
        ),
    ]);
}
