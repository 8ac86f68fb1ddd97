//! Tests of agents with a process for each session: the end of one process does not affect the others.

use super::fixture::{Fixture, On};
use crate::effect::AgentId;
use crate::testing::SettingsBuilder;
use On::{Exit, Expedite, Measured, Need, Ready, StartFailed, Started, Status, Wait};
use acpipe_model::dialect::{AgentCall, Opening, SessionSetup};
use acpipe_model::event::CallId;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::SessionOptions;
use std::time::{Duration, Instant};

const S: fn(u64) -> Duration = Duration::from_secs;

/// Returns a ready agent with a process for each session, whose second process was just ordered.
fn with_two_sessions() -> Fixture {
    let mut t = Fixture::of(SettingsBuilder::new(Instant::now()).child_per_session(true));
    for event in [Need, Started, Ready] {
        t.on(&event);
    }
    let options = SessionOptions::default();
    let place = SessionSetup {
        acp: &serde_json::Map::new(),
        cwd: "/w",
        mcp_servers: &[],
        options: &options,
        fork: false,
    };
    let connection = t.agent.connection_mut().expect("a connection");
    for call in [CallId(1), CallId(2)] {
        connection.tell(AgentCall::Open {
            call,
            way: Opening::New,
            place: &place,
        });
    }
    t
}

#[test]
fn second_session_gets_a_second_process() {
    let mut t = with_two_sessions();
    t.play(&[(
        Expedite,
        &["send 1 session/new", "spawn 2 agent", "send 2 initialize"],
    )]);
    assert_eq!(t.agent.status(&Secrets::default(), t.now).pid, None);
}

#[test]
fn process_that_is_not_found_leaves_the_agent_ready() {
    let mut t = with_two_sessions();
    t.on(&Expedite);
    t.play(&[(StartFailed, &[])]);
    assert!(t.agent.connection().unwrap().ready().is_some() && !t.agent.has_crashed());
}

#[test]
fn process_that_does_not_start_in_time_is_stopped_alone() {
    let mut t = with_two_sessions();
    t.on(&Expedite);
    t.play(&[
        (Wait(S(29)), &[]),
        (Wait(S(1)), &["close input 2"]),
        (Wait(S(2)), &["terminate 2"]),
        (Wait(S(3)), &["kill 2"]),
        (Exit, &[]),
    ]);
    assert!(t.agent.connection().unwrap().ready().is_some() && !t.agent.has_crashed());
}

#[test]
fn status_waits_for_every_process() {
    let mut t = with_two_sessions();
    t.on(&Expedite);
    t.on(&Started);
    t.play(&[(Status, &["measure 1", "measure 2"]), (Exit, &[])]);
    t.process = AgentId(1);
    t.play(&[(Measured, &["reply 2 ready"])]);
}
