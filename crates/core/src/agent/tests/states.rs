//! Tests of every event in every state, and of pairs of events: nothing panics, and each call is answered
//! once.

use super::fixture::{Fixture, On};
use On::{
    Answer, Ask, Authenticate, Client, Connect, Disconnect, Exit, Expedite, Idle, Logout, Measured,
    Need, OutputClosed, Ready, Refuse, StartFailed, Started, Status, StopIdle, TurnCompleted,
    UpdateEnvironment, Wait, Withdraw,
};
use serde_json::json;
use std::time::Duration;

const S: fn(u64) -> Duration = Duration::from_secs;

/// One in this many pairs of events is played, since all of them take several seconds.
const SHARE: usize = 4;

/// A state of an agent: its name, and the events that lead to it.
type StateOf = (&'static str, Vec<On>);

fn connect() -> On {
    Connect(json!({}))
}

fn set(value: &str) -> On {
    UpdateEnvironment(json!({ "set": { "A": value } }))
}

fn web() -> On {
    Authenticate(json!({ "methodId": "web" }))
}

fn key(value: &str) -> On {
    Authenticate(json!({ "methodId": "key", "env": { "KEY": value } }))
}

fn states() -> Vec<StateOf> {
    let ready = || vec![connect(), Started, Ready];
    let then = |events: &[On]| [&ready(), events].concat();
    vec![
        ("never started", vec![]),
        ("starting", vec![connect()]),
        ("ready", ready()),
        ("measuring", then(&[Status])),
        ("signing in", then(&[web()])),
        ("asking", then(&[Ask("q1")])),
        ("stopping", then(&[Disconnect])),
        ("stopping with a next agent", then(&[Disconnect, connect()])),
        ("crashed", then(&[Exit])),
        ("in a pause", then(&[Exit, Need, Ready, Exit, Need])),
        ("stopping by itself", then(&[Wait(S(60)), StopIdle(S(60))])),
        ("renewal waits", then(&[set("1")])),
        ("renewal stops", then(&[set("1"), Idle])),
        ("renewal starts", then(&[set("1"), Idle, Exit])),
        ("keys wait", then(&[key("1"), Idle])),
        ("failed", then(&[OutputClosed])),
    ]
}

fn events() -> Vec<On> {
    vec![
        connect(),
        Connect(json!({ "command": "other" })),
        Disconnect,
        Need,
        Started,
        Ready,
        Answer(json!({})),
        Refuse,
        Exit,
        StartFailed,
        OutputClosed,
        Wait(S(1)),
        Wait(S(60)),
        Wait(S(900)),
        Status,
        Measured,
        set("2"),
        UpdateEnvironment(json!({ "unset": ["A"], "whenBusy": "reject" })),
        Idle,
        TurnCompleted,
        web(),
        key("2"),
        Logout,
        Ask("e1"),
        Withdraw("q1"),
        Client(json!({ "action": "decline" })),
        StopIdle(S(1)),
        Expedite,
    ]
}

fn at(state: &StateOf) -> Fixture {
    let mut t = Fixture::new();
    t.handshake = json!({
        "protocolVersion": 1,
        "agentCapabilities": { "auth": { "logout": {} } },
        "authMethods": [
            { "id": "web", "name": "Web" },
            { "id": "key", "name": "Key", "type": "env_var", "vars": [{ "name": "KEY" }] },
        ],
    });
    for event in &state.1 {
        t.on(event);
    }
    t
}

/// Disconnects the agent; then every call must have been answered.
fn end(mut t: Fixture, how: &dyn std::fmt::Debug) {
    t.on(&Disconnect);
    t.on(&Exit);
    assert!(
        t.agent.connection().is_none(),
        "{how:?}: the agent does not end"
    );
    let missing = (1..=t.tokens()).find(|token| !t.answered.contains(token));
    assert_eq!(missing, None, "{how:?}: a call has no answer");
    assert!(
        t.client.open_requests.is_empty(),
        "{how:?}: {:?}",
        t.client.open_requests
    );
    assert!(t.shared.client_requests.is_empty(), "{how:?}");
    assert_eq!(t.agent.deadline(&t.shared.settings), None, "{how:?}");
}

#[test]
fn every_event_in_every_state_leaves_no_call_unanswered() {
    for state in states() {
        for event in events() {
            let mut t = at(&state);
            t.on(&event);
            end(t, &(state.0, &event));
        }
    }
}

#[test]
fn pairs_of_events_in_every_state_leave_no_call_unanswered() {
    let events = events();
    for (place, state) in states().iter().enumerate() {
        for (n, first) in events.iter().enumerate() {
            for (m, second) in events.iter().enumerate() {
                if (place + 31 * n + 17 * m) % SHARE != 0 {
                    continue;
                }
                let mut t = at(state);
                t.on(first);
                t.on(second);
                end(t, &(state.0, first, second));
            }
        }
    }
}
