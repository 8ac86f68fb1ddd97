//! Tests of sign-in and sign-out.

use super::fixture::{Fixture, On};
use On::{Answer, Authenticate, Disconnect, Exit, Idle, Logout, Ready, Refuse, StartFailed, Wait};
use serde_json::{Value, json};
use std::time::Duration;

/// Returns an agent with a sign-in method of each type.
fn ready() -> Fixture {
    Fixture::ready_with(json!({
        "protocolVersion": 1,
        "agentCapabilities": { "auth": { "logout": {} } },
        "authMethods": [
            { "id": "web", "name": "Web" },
            { "id": "key", "name": "Key", "type": "env_var", "vars": [
                { "name": "KEY" }, { "name": "A", "optional": true },
            ] },
            { "id": "tty", "name": "Terminal", "type": "terminal", "args": ["login"] },
        ],
    }))
}

fn sign_in(method: &str, env: &Value) -> On {
    Authenticate(json!({ "methodId": method, "env": env }))
}

fn web() -> On {
    sign_in("web", &json!({}))
}

fn key() -> On {
    sign_in("key", &json!({ "KEY": "secret" }))
}

#[test]
fn agent_signs_its_user_in() {
    let mut t = ready();
    t.play(&[
        (web(), &["send 1 authenticate"]),
        (Answer(json!({})), &["reply 2 signed in: true"]),
    ]);
}

#[test]
fn refused_sign_in_fails() {
    let mut t = ready();
    t.play(&[
        (web(), &["send 1 authenticate"]),
        (Refuse, &["reply 2 error authRequired"]),
        (Answer(json!({})), &[]),
    ]);
}

#[test]
fn sign_in_times_out_and_a_late_answer_changes_nothing() {
    let mut t = ready();
    t.play(&[
        (web(), &["send 1 authenticate"]),
        (Wait(Duration::from_secs(599)), &[]),
        (Wait(Duration::from_secs(1)), &["reply 2 error timeout"]),
        (Answer(json!({})), &[]),
    ]);
}

#[test]
fn sign_in_waits_longer_while_the_user_is_asked() {
    let mut t = ready();
    t.on(&web());
    t.agent.wait_for_user(Duration::from_secs(300));
    t.play(&[
        (Wait(Duration::from_secs(899)), &[]),
        (Wait(Duration::from_secs(1)), &["reply 2 error timeout"]),
    ]);
}

#[test]
fn keys_restart_the_agent_before_it_is_asked() {
    let mut t = ready();
    t.play(&[
        (key(), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent KEY=secret",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready", "send 2 authenticate"]),
        (Answer(json!({})), &["reply 2 signed in: true"]),
        (key(), &["send 2 authenticate"]),
    ]);
}

#[test]
fn known_keys_need_not_be_sent_again() {
    let mut t = ready();
    t.play(&[(sign_in("key", &json!({})), &["reply 2 error invalidParams"])]);
    t.agent.set_variables(
        &[("KEY".to_owned(), Some("x".to_owned()))]
            .into_iter()
            .collect(),
    );
    t.play(&[(sign_in("key", &json!({})), &["send 1 authenticate"])]);
}

#[test]
fn key_is_shown_as_a_secret() {
    let mut t = ready();
    t.on(&key());
    assert_eq!(t.agent.environment().redacted, ["KEY"]);
}

#[test]
fn invalid_sign_ins_are_refused() {
    let mut t = ready();
    t.play(&[
        (
            sign_in("other", &json!({})),
            &["reply 2 error invalidParams"],
        ),
        (
            sign_in("key", &json!({ "OTHER": "x" })),
            &["reply 3 error invalidParams"],
        ),
        (
            sign_in("key", &json!({ "KEY": null })),
            &["reply 4 error invalidParams"],
        ),
        (
            sign_in("web", &json!({ "KEY": "x" })),
            &["reply 5 error invalidParams"],
        ),
    ]);
    assert!(t.agent.spec().env.0.is_empty());
}

#[test]
fn terminal_method_gives_the_command_to_run() {
    let mut t = ready();
    t.play(&[(sign_in("tty", &json!({})), &["reply 2 run agent"])]);
}

#[test]
fn sign_in_and_sign_out_need_a_ready_agent() {
    let mut t = Fixture::new();
    t.play(&[
        (web(), &["reply 1 error outOfOrder"]),
        (Logout, &["reply 2 error outOfOrder"]),
    ]);
    t.on(&On::Connect(json!({})));
    t.play(&[
        (web(), &["reply 4 error outOfOrder"]),
        (Logout, &["reply 5 error outOfOrder"]),
    ]);
}

#[test]
fn agent_with_logout_signs_its_user_out() {
    let mut t = ready();
    t.play(&[
        (Logout, &["send 1 logout"]),
        (Answer(json!({})), &["reply 2 done"]),
    ]);
    let mut t = Fixture::ready();
    t.play(&[(Logout, &["reply 2 error outOfOrder"])]);
}

#[test]
fn agent_that_exits_fails_the_sign_in() {
    let mut t = ready();
    t.play(&[
        (web(), &["send 1 authenticate"]),
        (
            Exit,
            &[
                "state disconnected with a reason",
                "reply 2 error agentExited",
            ],
        ),
    ]);
}

#[test]
fn disconnect_fails_a_sign_in_that_waits_for_its_keys() {
    let mut t = ready();
    t.play(&[
        (key(), &[]),
        (
            Disconnect,
            &["state stopping", "reply 2 error cancelled", "close input 1"],
        ),
        (Exit, &["state disconnected", "reply 3 done"]),
    ]);
}

#[test]
fn new_agent_that_does_not_start_fails_the_sign_in() {
    let mut t = ready();
    t.play(&[
        (key(), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent KEY=secret",
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
    ]);
}

#[test]
fn keys_join_a_renewal_that_waits() {
    let mut t = ready();
    let update = On::UpdateEnvironment(json!({ "set": { "A": "1" } }));
    t.play(&[
        (update, &[]),
        (key(), &[]),
        (Idle, &["state stopping", "close input 1"]),
        (
            Exit,
            &[
                "state disconnected",
                "state starting",
                "spawn 2 agent A=1 KEY=secret",
                "send 2 initialize",
            ],
        ),
        (Ready, &["state ready", "send 2 authenticate"]),
        (Idle, &["reply 2 changed: true, restarted: true"]),
        (Answer(json!({})), &["reply 3 signed in: true"]),
    ]);
}
