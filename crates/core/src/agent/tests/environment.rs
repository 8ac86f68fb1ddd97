//! Tests of the environment, and of the renewal of an agent whose environment changes.

use super::fixture::{Fixture, On};
use crate::client::Token;
use On::{Connect, Disconnect, Exit, Idle, Need, Ready, StartFailed, UpdateEnvironment, Wait};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::REDACTED;
use acpipe_protocol::wire::{Memory, Recovery, Rung};
use serde_json::{Value, json};
use std::time::Duration;

fn set(value: &str) -> On {
    UpdateEnvironment(json!({ "set": { "A": value } }))
}

/// Receipt of a resumed session.
fn resumed() -> Recovery {
    Recovery {
        handed_over_from: None,
        instructions_in_prompt: false,
        differing_settings: Vec::new(),
        agent_command: None,
        chosen_mode: None,
        policy_warning: None,
        rung: Rung::Resume,
        memory: Memory::Kept,
        failed: Vec::new(),
        replayed: None,
        messages: 0,
        adopted: 0,
        reinjected: 0,
        missed: 0,
        not_restored: Vec::new(),
        warning: None,
    }
}

#[test]
fn update_without_an_agent_is_answered_at_once() {
    let mut t = Fixture::new();
    t.play(&[
        (set("1"), &["reply 1 changed: true, restarted: false"]),
        (set("1"), &["reply 2 changed: false, restarted: false"]),
        (
            Need,
            &[
                "state starting",
                "reply 3 done",
                "spawn 1 agent A=1",
                "send 1 initialize",
            ],
        ),
    ]);
}

#[test]
fn update_without_a_change_does_not_restart() {
    let mut t = Fixture::new();
    t.on(&set("1"));
    t.on(&Need);
    t.on(&Ready);
    t.play(&[
        (set("1"), &["reply 3 changed: false, restarted: false"]),
        (Idle, &[]),
    ]);
}

#[test]
fn changed_environment_replaces_the_agent_and_is_answered_with_its_sessions() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
    ]);
    t.agent.renewal_mut().as_mut().unwrap().note_session("s1");
    t.agent.renewal_mut().as_mut().unwrap().note_session("s2");
    t.is_opening = true;
    t.play(&[(Ready, &["state ready"]), (Idle, &[])]);
    let error = Error::new(ErrorKind::Session, "no");
    t.agent
        .renewal_mut()
        .as_mut()
        .unwrap()
        .note_restored("s1", Ok(&resumed()));
    t.agent
        .renewal_mut()
        .as_mut()
        .unwrap()
        .note_restored("s2", Err(&error));
    t.agent
        .renewal_mut()
        .as_mut()
        .unwrap()
        .note_restored("never", Err(&error));
    t.is_opening = false;
    t.play(&[(
        Idle,
        &["reply 2 changed: true, restarted: true s1 restored s2 failed"],
    )]);
    assert!(t.agent.renewal().is_none());
}

#[test]
fn renewal_holds_prompts_that_came_after_it_until_the_new_agent_starts() {
    let mut t = Fixture::ready();
    t.ahead = vec![Token::first(77)];
    t.on(&set("1"));
    let held = |t: &Fixture| {
        [77, 78].map(|token| {
            t.agent
                .renewal()
                .is_some_and(|r| r.holds(Token::first(token)))
        })
    };
    assert_eq!(held(&t), [false, true]);
    assert!(
        t.agent
            .renewal()
            .is_some_and(|r| r.is_ahead(Token::first(77)))
    );
    t.ahead = vec![Token::first(77), Token::first(78)];
    t.on(&set("2"));
    assert_eq!(
        held(&t),
        [false, true],
        "the first of the waiting calls decides"
    );
    t.on(&Idle);
    assert_eq!(held(&t), [false, true]);
    t.on(&Exit);
    assert_eq!(held(&t), [false, false]);
}

#[test]
fn several_updates_are_answered_together() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (set("1"), &[]),
        (set("2"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=2",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready"]),
        (
            Idle,
            &[
                "reply 2 changed: true, restarted: true",
                "reply 3 changed: false, restarted: true",
                "reply 4 changed: true, restarted: true",
            ],
        ),
    ]);
}

#[test]
fn update_during_a_restart_restarts_again() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
        (set("2"), &[]),
        (Idle, &["state stopping", "close input 2"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 3 agent A=2",
                "send 3 initialize",
            ],
        ),
        (Ready, &["state ready"]),
        (
            Idle,
            &[
                "reply 2 changed: true, restarted: true",
                "reply 3 changed: true, restarted: true",
            ],
        ),
    ]);
}

#[test]
fn update_while_the_agent_starts_keeps_its_connects_waiting() {
    let mut t = Fixture::new();
    t.play(&[
        (
            Connect(json!({})),
            &["state starting", "spawn 1 agent", "send 1 initialize"],
        ),
        (set("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready", "reply 1 ready"]),
        (Idle, &["reply 2 changed: true, restarted: true"]),
    ]);
}

#[test]
fn disconnect_fails_the_update_and_keeps_the_environment() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (
            Disconnect,
            &["state stopping", "reply 2 error cancelled", "close input 1"],
        ),
        (Exit, &["state disconnected", "reply 3 done"]),
        (
            Connect(json!({})),
            &["state starting", "spawn 2 agent A=1", "send 2 initialize"],
        ),
    ]);
}

#[test]
fn update_fails_where_the_new_agent_does_not_start() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
        (
            StartFailed,
            &[
                "state disconnected with a reason",
                "reply 2 error agentNotFound",
            ],
        ),
        (
            Need,
            &[
                "state starting",
                "reply 3 done",
                "spawn 3 agent A=1",
                "send 3 initialize",
            ],
        ),
    ]);
}

#[test]
fn update_fails_where_the_new_agent_does_not_answer_in_time() {
    let mut t = Fixture::ready();
    for event in [set("1"), Idle, Exit, On::Started] {
        t.on(&event);
    }
    t.play(&[
        (
            Wait(Duration::from_secs(60)),
            &["state stopping", "reply 2 error timeout", "close input 2"],
        ),
        (Exit, &["state disconnected"]),
    ]);
}

#[test]
fn crash_during_the_wait_starts_the_agent_with_its_new_environment() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (
            Exit,
            &[
                "state disconnected with a reason",
                "state starting",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready"]),
        (Idle, &["reply 2 changed: true, restarted: true"]),
    ]);
}

#[test]
fn update_that_does_not_wait_is_refused_while_a_turn_runs() {
    let reject =
        |value: &str| UpdateEnvironment(json!({ "set": { "A": value }, "whenBusy": "reject" }));
    let mut t = Fixture::ready();
    t.is_busy = true;
    t.play(&[(reject("1"), &["reply 2 error busy"])]);
    assert!(t.agent.renewal().is_none());
    assert!(t.agent.spec().env.0.is_empty(), "nothing was changed");
    t.is_busy = false;
    t.play(&[
        (reject("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
    ]);
}

#[test]
fn update_while_the_agent_stops_is_for_the_next_one() {
    let mut t = Fixture::ready();
    t.play(&[
        (Disconnect, &["state stopping", "close input 1"]),
        (Connect(json!({})), &[]),
        (set("1"), &["reply 4 changed: true, restarted: false"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "reply 2 done",
                "spawn 2 agent A=1",
                "send 2 initialize",
            ],
        ),
    ]);
}

#[test]
fn invalid_updates_are_refused() {
    let cases: [Value; 4] = [
        json!({ "set": { "A": REDACTED } }),
        json!({ "set": { "A": "1" }, "unset": ["A"] }),
        json!({ "set": { "": "1" } }),
        json!({ "unset": ["A=B"] }),
    ];
    for case in cases {
        let mut t = Fixture::ready();
        let output = t.on(&UpdateEnvironment(case.clone()));
        assert_eq!(output, ["reply 2 error invalidParams"], "{case}");
        assert!(t.agent.spec().env.0.is_empty());
    }
}

#[test]
fn update_during_the_pause_before_a_restart_is_for_the_restarted_agent() {
    let mut t = Fixture::ready();
    for event in [Exit, Need, Ready, Exit, Need] {
        t.on(&event);
    }
    t.play(&[
        (set("1"), &["reply 4 changed: true, restarted: false"]),
        (
            Wait(Duration::from_secs(1)),
            &["spawn 3 agent A=1", "send 3 initialize"],
        ),
    ]);
}

#[test]
fn disconnect_while_the_agent_is_replaced_starts_no_other_agent() {
    let mut t = Fixture::ready();
    t.play(&[
        (set("1"), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (Disconnect, &["reply 2 error cancelled"]),
        (Exit, &["state disconnected", "reply 3 done"]),
    ]);
}

/// Variables of a connected agent alone end with its connection.
#[test]
fn variables_of_a_connect_are_added_until_the_disconnect() {
    let mut t = Fixture::new();
    t.on(&set("1"));
    let own = Connect(json!({ "command": "own", "env": { "B": "2" } }));
    t.play(&[
        (
            own,
            &["state starting", "spawn 1 own A=1 B=2", "send 1 initialize"],
        ),
        (Ready, &["state ready", "reply 2 ready"]),
        (Disconnect, &["state stopping", "close input 1"]),
        (Exit, &["state disconnected", "reply 3 done"]),
    ]);
    let left = t.agent.environment().env.0;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["A"]);
}

#[test]
fn secrets_are_not_shown() {
    let mut t = Fixture::new();
    let update = json!({ "set": { "MY_API_KEY": "sk-1", "A": "1", "GONE": null, "EMPTY_KEY": "",
        "DATABASE": "db://me:5eCr3t@host" } });
    t.on(&UpdateEnvironment(update));
    let environment = t.agent.environment();
    assert_eq!(environment.redacted, ["DATABASE", "MY_API_KEY"]);
    let shown = |name: &str| environment.env.0[name].as_deref();
    assert_eq!(shown("MY_API_KEY"), Some(REDACTED));
    assert_eq!(shown("A"), Some("1"));
    assert_eq!(shown("EMPTY_KEY"), Some(""));
    assert_eq!(shown("GONE"), None);
}
