//! Tests of modes and models: set, queued, restored, required.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::client::Token;
use crate::session::settings::SessionSettings;
use crate::session::{CallerSettings, RequiredSettings, RestoreEvent, Waiter};
use On::{Answer, Ensure, Refuse, Set, Update, Wait};
use acpipe_model::setting::{ChosenSettings, Setting};
use acpipe_protocol::wire::{Protocol, SessionOptions, Strategy};
use serde_json::{Value, json};
use std::time::Duration;

fn modes(current: &str) -> Value {
    json!({
        "currentModeId": current,
        "availableModes": [{ "id": "plan", "name": "Plan" }, { "id": "code", "name": "Code" }],
    })
}

fn opened(current: &str) -> On {
    Answer(json!({ "sessionId": "a1", "modes": modes(current) }))
}

fn mode(id: &str) -> On {
    Set(Setting::Mode(id.to_owned()))
}

/// Creates a live session in mode `plan`.
fn live() -> Fixture {
    let mut t = Fixture::new(all());
    t.on(&Ensure(Strategy::Auto));
    t.on(&opened("plan"));
    t
}

/// Creates a stored session in which the client had set the mode `code`.
fn stored() -> Fixture {
    let mut t = live();
    t.turn();
    t.on(&mode("code"));
    t.on(&Answer(json!({})));
    t.on(&On::AgentLost);
    t.connect(all());
    t
}

fn state_mode(t: &Fixture) -> Option<String> {
    t.session.settings.mode()
}

#[test]
fn setting_is_answered_once_the_agent_took_it() {
    let mut t = live();
    t.play(&[
        (mode("Code"), &["agent session/set_mode code"]),
        (Answer(json!({})), &["reply 2 setting"]),
    ]);
    assert_eq!(state_mode(&t).as_deref(), Some("code"));
}

#[test]
fn setting_that_the_agent_does_not_offer_is_not_sent() {
    let mut t = live();
    t.play(&[(mode("fly"), &["reply 2 error invalidParams"])]);
}

#[test]
fn refused_setting_fails_and_changes_nothing() {
    let mut t = live();
    t.play(&[
        (mode("code"), &["agent session/set_mode code"]),
        (Refuse(-32603, "no"), &["reply 2 error session"]),
    ]);
    assert_eq!(state_mode(&t).as_deref(), Some("plan"));
}

#[test]
fn late_answer_to_a_setting_that_timed_out_still_counts() {
    let mut t = live();
    t.play(&[
        (mode("code"), &["agent session/set_mode code"]),
        (Wait(Duration::from_secs(30)), &["reply 2 error timeout"]),
        (Answer(json!({})), &[]),
    ]);
    assert_eq!(state_mode(&t).as_deref(), Some("code"));
}

#[test]
fn setting_is_queued_until_the_session_is_live() {
    let mut t = Fixture::new(all());
    t.play(&[
        (mode("code"), &["agent session/new"]),
        (mode("fly"), &[]),
        (
            opened("plan"),
            &[
                "agent session/set_mode code",
                "reply 2 error invalidParams",
                "hub Restored New None",
                "hub NextPrompt",
            ],
        ),
        (Answer(json!({})), &["reply 1 setting"]),
    ]);
}

#[test]
fn queued_setting_fails_with_the_opening() {
    let mut t = Fixture::new(all());
    t.play(&[
        (mode("code"), &["agent session/new"]),
        (
            Refuse(-32603, "no"),
            &[
                "reply 1 error session",
                "hub Remove",
                "hub Restored session",
            ],
        ),
    ]);
}

#[test]
fn settings_are_restored_before_the_session_is_live() {
    let mut t = stored();
    t.play(&[
        (Ensure(Strategy::Auto), &["agent session/resume a1"]),
        (
            Answer(json!({ "modes": modes("plan") })),
            &["agent session/set_mode code"],
        ),
        (
            Answer(json!({})),
            &[
                "reply 4 session resume kept",
                "hub Restored Resume Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn setting_that_the_session_shows_already_is_not_sent_again() {
    let mut t = stored();
    t.play(&[
        (Ensure(Strategy::Auto), &["agent session/resume a1"]),
        (
            Answer(json!({ "modes": modes("code") })),
            &[
                "reply 4 session resume kept",
                "hub Restored Resume Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn setting_that_cannot_be_restored_is_in_the_receipt() {
    let slow = Wait(Duration::from_secs(30));
    for failure in [Refuse(-32603, "no"), slow] {
        let mut t = stored();
        t.on(&Ensure(Strategy::Auto));
        t.on(&Answer(json!({ "modes": modes("plan") })));
        let output = t.on(&failure);
        assert!(
            output.contains(&"reply 4 session resume kept".to_owned()),
            "{output:?}"
        );
        let receipt = t.session.receipt.as_ref().expect("a receipt");
        assert_eq!(receipt.not_restored[0].setting, "mode");
    }
}

#[test]
fn session_is_not_opened_without_a_required_mode() {
    let mut t = Fixture::new(all());
    let wish = SessionOptions {
        mode: Some("code".to_owned()),
        ..SessionOptions::default()
    };
    t.act(|s, cx| s.set_options(wish.clone(), &wish, cx.agent.spec.protocol));
    t.act(|s, cx| {
        let required = RequiredSettings::of(&wish, None, true);
        s.begin_opening(
            Strategy::Auto,
            vec![Waiter {
                token: Token::first(77),
                caller: CallerSettings::default(),
            }],
        );
        s.require(required);
        s.restore(RestoreEvent::Ready, cx);
    });
    t.play(&[
        (On::Read, &["agent session/new"]),
        (opened("plan"), &["agent session/set_mode code"]),
        (
            Refuse(-32603, "no"),
            &[
                "agent session/close a1",
                "reply 77 error invalidParams",
                "hub Remove",
                "hub Restored invalidParams",
            ],
        ),
    ]);
    assert!(t.session.settings.options().mode.is_none());
}

#[test]
fn required_mode_that_is_not_offered_fails_the_opening() {
    let mut t = stored();
    let mut wanted = ChosenSettings::default();
    wanted.set(Setting::Mode("fly".into()), &serde_json::Map::new());
    t.session.settings.put_stored(None, wanted);
    t.on(&Ensure(Strategy::Auto));
    t.session.require(RequiredSettings {
        mode: true,
        model: false,
    });
    t.play(&[(
        Answer(json!({ "modes": modes("plan") })),
        &[
            "agent session/close a1",
            "reply 4 error invalidParams",
            "hub Restored invalidParams",
        ],
    )]);
}

#[test]
fn mode_that_the_agent_changed_is_not_changed_back() {
    let mut t = live();
    t.turn();
    t.on(&mode("code"));
    t.on(&Answer(json!({})));
    let changed = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" });
    t.play(&[(Update(changed), &[])]);
    t.on(&On::AgentLost);
    t.connect(all());
    t.play(&[
        (Ensure(Strategy::Auto), &["agent session/resume a1"]),
        (
            Answer(json!({ "modes": modes("plan") })),
            &[
                "reply 4 session resume kept",
                "hub Restored Resume Kept",
                "hub NextPrompt",
            ],
        ),
    ]);
}

#[test]
fn agent_exit_fails_pending_settings_of_the_session() {
    let mut t = live();
    t.play(&[
        (mode("code"), &["agent session/set_mode code"]),
        (On::AgentLost, &["reply 2 error agentExited"]),
    ]);
}

#[test]
fn answer_for_an_earlier_opening_is_ignored() {
    let mut t = live();
    t.turn();
    t.play(&[
        (mode("code"), &["agent session/set_mode code"]),
        (On::Lost, &["reply 3 error agentExited", "hub Free"]),
        (Answer(json!({})), &[]),
    ]);
    assert_eq!(state_mode(&t).as_deref(), Some("plan"));
}

fn options(options: Value) -> SessionOptions {
    serde_json::from_value(options).unwrap()
}

/// Each case has the options of the client, those of the definition by which the session was opened, and the differences.
/// The session was opened in `plan`, with the model `large`, and a client changed the mode to `code`.
#[test]
fn session_is_compared_as_it_is_now() {
    let mut settings = SessionSettings::default();
    let opened = json!({"mode": "plan", "model": "large", "effort": "high", "disallowedTools": ["Bash", "Edit"]});
    let opened = options(opened);
    settings.set_options(opened.clone(), &opened, Protocol::Acp);
    let state = json!({"modes": {"currentModeId": "code", "availableModes": [
        {"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}]}});
    settings.extend_state(state.as_object().unwrap());
    for (own, held, differing) in [
        (json!({}), json!({}), &[][..]),
        (json!({"mode": "code"}), json!({"mode": "plan"}), &[]),
        (json!({"mode": "Code"}), json!({}), &[]),
        (json!({"mode": "plan"}), json!({"mode": "plan"}), &["mode"]),
        (json!({}), json!({"mode": "plan"}), &[]),
        (json!({}), json!({"mode": "code"}), &["mode"]),
        (json!({"model": "large"}), json!({}), &[]),
        (json!({"model": "small"}), json!({}), &["model"]),
        (json!({}), json!({"model": "large"}), &["model"]),
        (json!({"effort": "high"}), json!({}), &[]),
        (
            json!({"effort": "low"}),
            json!({"effort": "low"}),
            &["options"],
        ),
        (json!({}), json!({"effort": "high"}), &["options"]),
        (json!({}), json!({"effort": "low"}), &[]),
        (json!({"disallowedTools": ["Edit"]}), json!({}), &[]),
        (
            json!({"disallowedTools": ["Write"]}),
            json!({}),
            &["options"],
        ),
    ] {
        let case = format!("{own} {held}");
        let names = settings.differing(&options(own), &options(held));
        assert_eq!(names, differing, "{case}");
    }
}

#[test]
fn options_of_a_definition_hold_for_the_next_opening_once() {
    let mut settings = SessionSettings::default();
    let before = options(json!({"mode": "code", "disallowedTools": ["Bash"]}));
    settings.set_options(before.clone(), &before, Protocol::Acp);
    let defined = options(json!({"mode": "plan", "disallowedTools": ["Edit"]}));
    let all = options(json!({"mode": "plan", "disallowedTools": ["Edit", "Bash"]}));
    assert_eq!(settings.newly_defined(&defined), all);
    settings.set_defined(&defined);
    assert!(settings.newly_defined(&defined).is_empty());
    assert_eq!(settings.newly_defined(&before), before);
}
