//! Tests of `agent/connect` and `agent/disconnect` in every state.

use super::fixture::{Fixture, On};
use crate::client::Token;
use crate::testing::params;
use On::{Connect, Disconnect, Exit, Need, Ready, StartFailed, Started};
use serde_json::{Value, json};

fn connect() -> On {
    Connect(json!({}))
}

fn other() -> On {
    Connect(json!({ "command": "other" }))
}

#[test]
fn connect_starts_the_agent_and_is_answered_when_it_is_ready() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (Started, &[]),
        (connect(), &[]),
        (Ready, &["state ready", "reply 1 ready", "reply 2 ready"]),
        (connect(), &["reply 3 ready"]),
    ]);
}

#[test]
fn connect_does_not_replace_a_connected_agent() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (other(), &["reply 2 error outOfOrder"]),
        (Ready, &["state ready", "reply 1 ready"]),
        (other(), &["reply 3 error outOfOrder"]),
        (Disconnect, &["state stopping", "close input 1"]),
        (other(), &[]),
        (connect(), &["reply 6 error outOfOrder"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "reply 4 done",
                "spawn 2 other",
                "send 2 initialize",
            ],
        ),
    ]);
}

#[test]
fn connect_while_the_agent_stops_starts_it_again_afterwards() {
    let mut t = Fixture::ready();
    t.play(&[
        (Disconnect, &["state stopping", "close input 1"]),
        (connect(), &[]),
        (connect(), &[]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "reply 2 done",
                "spawn 2 agent",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready", "reply 3 ready", "reply 4 ready"]),
    ]);
}

#[test]
fn disconnect_fails_calls_that_wait_for_the_next_agent() {
    let mut t = Fixture::ready();
    t.play(&[
        (Disconnect, &["state stopping", "close input 1"]),
        (connect(), &[]),
        (Disconnect, &["reply 3 error cancelled"]),
        (
            Exit,
            &["state disconnected", "reply 2 done", "reply 4 done"],
        ),
    ]);
}

#[test]
fn disconnect_without_an_agent_is_answered_at_once() {
    let mut t = Fixture::new();
    t.play(&[
        (Disconnect, &["reply 1 done"]),
        (
            Need,
            &[
                "state starting",
                "reply 2 done",
                "spawn 1 agent",
                "send 1 initialize",
            ],
        ),
    ]);
}

#[test]
fn disconnect_fails_a_connect_that_waits() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (
            Disconnect,
            &["state stopping", "reply 1 error cancelled", "close input 1"],
        ),
        (Exit, &["state disconnected", "reply 2 done"]),
    ]);
}

#[test]
fn disconnect_ends_the_pause_before_a_restart() {
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
        (Disconnect, &["state disconnected", "reply 4 done"]),
    ]);
    assert!(!t.agent.has_crashed());
}

#[test]
fn agent_that_is_not_found_fails_the_connect() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (
            StartFailed,
            &[
                "state disconnected with a reason",
                "reply 1 error agentNotFound",
            ],
        ),
    ]);
    assert!(!t.agent.has_crashed());
}

#[test]
fn agent_that_exits_before_it_is_ready_fails_the_connect() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (Started, &[]),
        (
            Exit,
            &[
                "state disconnected with a reason",
                "reply 1 error agentStart",
            ],
        ),
    ]);
}

#[test]
fn invalid_connect_parameters_are_refused() {
    let cases: [(Value, &str); 4] = [
        (json!({ "command": "" }), "command"),
        (json!({ "args": ["x"] }), "args"),
        (json!({ "env": { "A=B": "x" } }), "env"),
        (json!({ "env": { "": "x" } }), "env"),
    ];
    for (given, field) in cases {
        let mut t = Fixture::new();
        let p = params(given);
        let token = Token::first(1);
        let error = t.act(|agent, cx| agent.connect(token, p, cx));
        let error = error.expect_err(field);
        assert_eq!(error.data["field"], field);
        assert!(t.agent.connection().is_none());
    }
}

#[test]
fn answer_to_the_handshake_that_cannot_be_used_stops_the_agent() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (
            On::Answer(json!({ "protocolVersion": 99 })),
            &[
                "state stopping",
                "reply 1 error initialize",
                "close input 1",
            ],
        ),
        (Exit, &["state disconnected"]),
    ]);
}

#[test]
fn refused_handshake_stops_the_agent() {
    let mut t = Fixture::new();
    t.play(&[
        (
            connect(),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (
            On::Refuse,
            &[
                "state stopping",
                "reply 1 error initialize",
                "close input 1",
            ],
        ),
        (Exit, &["state disconnected"]),
    ]);
}
