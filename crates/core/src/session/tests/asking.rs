//! Tests of agents that decide for themselves: the chosen mode, and the warning.

use super::event::On;
use super::fixture::{Fixture, all};
use crate::client::ClientId;
use crate::session::CallerSettings;
use crate::session::MAY_NOT_ASK;
use crate::terms::{CallerTerms, Terms};
use On::{Answer, Ensure, Prompt, Refuse, Set, Update};
use acpipe_model::asking::Asking;
use acpipe_model::limits::Limits;
use acpipe_model::setting::{ChosenSettings, Setting};
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::wire::{Recovery, SessionOptions, Strategy};
use serde_json::{Value, json};

fn modes(current: &str, offered: &[&str]) -> Value {
    let offered = offered.iter().map(|id| json!({ "id": id, "name": id }));
    json!({ "currentModeId": current, "availableModes": offered.collect::<Vec<_>>() })
}

fn opened(current: &str) -> On {
    let modes = modes(current, &["default", "plan", "auto"]);
    Answer(json!({ "sessionId": "a1", "modes": modes }))
}

/// Creates a session of an agent that asks as `asks` says, under a policy.
fn session(asks: &Value, policy: Mode) -> Fixture {
    let mut t = Fixture::new(all());
    *t.asks() = serde_json::from_value(asks.clone()).unwrap();
    t.shared.settings.policy = Policy::from(policy);
    t.on(&Ensure(Strategy::Auto));
    t
}

/// Creates a session of an agent that asks in the modes `default` and `plan` only.
fn choosy(policy: Mode) -> Fixture {
    session(&json!(["default", "plan"]), policy)
}

fn empty_receipt() -> Recovery {
    serde_json::from_value(json!({
        "rung": "live", "memory": "kept", "failed": [], "replayed": null, "messages": 0, "adopted": 0, "reinjected": 0,
        "missed": 0, "notRestored": [],
    }))
    .unwrap()
}

/// Returns the mode that acpipe chose, and the warning.
fn receipt(t: &Fixture) -> (Option<String>, Option<String>) {
    let mut recovery = empty_receipt();
    t.session.terms.fill_asking(&mut recovery);
    (recovery.chosen_mode, recovery.policy_warning)
}

/// Returns the descriptions of the warnings in the chunks since the last call.
fn warnings(t: &mut Fixture) -> Vec<String> {
    let chunks = t.client.take_chunks().into_iter().map(|given| given.chunk);
    let warnings = chunks.filter(|chunk| chunk["data"]["title"] == MAY_NOT_ASK);
    let text = |chunk: Value| chunk["data"]["description"].as_str().unwrap().to_owned();
    warnings.map(text).collect()
}

/// Passes an event and returns the warnings in its chunks.
fn warned(t: &mut Fixture, on: &On) -> Vec<String> {
    t.pass(on);
    let warnings = warnings(t);
    t.output();
    warnings
}

#[test]
fn mode_in_which_the_agent_asks_is_chosen_before_the_session_is_live() {
    for policy in [Mode::Reads, Mode::Ask, Mode::Deny] {
        let mut t = choosy(policy);
        assert_eq!(t.on(&opened("auto")), ["agent session/set_mode default"]);
        let live = t.on(&Answer(json!({})));
        assert!(
            live.contains(&"reply 1 session new none".to_owned()),
            "{live:?}"
        );
        assert_eq!(receipt(&t), (Some("default".to_owned()), None));
        assert_eq!(warned(&mut t, &Prompt("hi")), [""; 0]);
    }
}

#[test]
fn mode_is_not_changed_without_need() {
    // The policy allows everything, the agent asks already, or the agent is not known.
    let cases = [
        (json!(["default", "plan"]), Mode::Approve, "auto"),
        (json!(["default", "plan"]), Mode::Deny, "plan"),
        (json!("always"), Mode::Deny, "plan"),
        (json!(null), Mode::Deny, "plan"),
    ];
    for (asks, policy, mode) in cases {
        let mut t = session(&asks, policy);
        let live = t.on(&opened(mode));
        assert!(
            live.contains(&"reply 1 session new none".to_owned()),
            "{live:?}"
        );
        assert_eq!(receipt(&t), (None, None), "{asks}");
    }
}

#[test]
fn clients_are_warned_before_the_prompt_of_an_agent_that_may_not_ask() {
    for (asks, mode) in [
        (json!("never"), "default"),
        (json!("settings"), "default"),
        (json!("always"), "auto"),
        (json!(null), "auto"),
        (json!(["ask"]), "auto"),
    ] {
        let mut t = session(&asks, Mode::Deny);
        t.on(&opened(mode));
        let (chosen, warning) = receipt(&t);
        assert_eq!(chosen, None);
        let warning = warning.expect("a warning in the receipt");
        t.client.take_chunks();
        assert_eq!(warned(&mut t, &Prompt("hi")), [warning], "{asks}");
        t.on(&On::Stop("end_turn"));
        t.on(&On::Read);
        // Once is enough.
        assert_eq!(warned(&mut t, &Prompt("more")), [""; 0]);
    }
}

#[test]
fn clients_are_warned_in_the_mode_in_which_the_agent_was_measured_not_to_ask() {
    for (measured, policy, is_warned) in [
        ("plan", Mode::Deny, true),
        ("plan", Mode::Approve, false),
        ("default", Mode::Deny, false),
    ] {
        let mut t = Fixture::new(all());
        t.quirks().runs_unasked_in = Some(measured.to_owned());
        t.shared.settings.policy = Policy::from(policy);
        t.on(&Ensure(Strategy::Auto));
        t.on(&opened("plan"));
        assert_eq!(receipt(&t).1.is_some(), is_warned, "{measured} {policy:?}");
    }
}

#[test]
fn session_opens_with_a_warning_if_the_agent_refuses_the_chosen_mode() {
    let mut t = choosy(Mode::Ask);
    t.on(&opened("auto"));
    let live = t.on(&Refuse(-32603, "no such mode"));
    assert!(
        live.contains(&"reply 1 session new none".to_owned()),
        "{live:?}"
    );
    let (chosen, warning) = receipt(&t);
    assert_eq!(chosen, None);
    assert!(warning.unwrap().contains("no such mode"));
}

#[test]
fn requested_mode_is_kept_with_a_warning() {
    let mut t = Fixture::new(all());
    *t.asks() = serde_json::from_value(json!(["default"])).unwrap();
    t.shared.settings.policy = Policy::from(Mode::Deny);
    let options = SessionOptions {
        mode: Some("auto".to_owned()),
        ..SessionOptions::default()
    };
    t.session
        .settings
        .put_stored(Some(options.into()), ChosenSettings::default());
    t.on(&Ensure(Strategy::Auto));
    t.on(&opened("auto"));
    let (chosen, warning) = receipt(&t);
    assert_eq!(chosen, None);
    assert!(warning.unwrap().contains("\"auto\""));
}

#[test]
fn change_to_a_mode_that_does_not_ask_is_a_notice() {
    let mut t = choosy(Mode::Deny);
    t.on(&opened("default"));
    assert_eq!(receipt(&t), (None, None));
    // A client changes it between two turns.
    t.on(&Set(Setting::Mode("auto".to_owned())));
    t.on(&Answer(json!({})));
    assert_eq!(warned(&mut t, &Prompt("hi")).len(), 1);
    t.on(&Update(
        json!({ "sessionUpdate": "current_mode_update", "currentModeId": "plan" }),
    ));
    assert_eq!(receipt(&t), (None, None));
    // The agent changes it in a turn.
    let update = json!({ "sessionUpdate": "current_mode_update", "currentModeId": "auto" });
    assert_eq!(warned(&mut t, &Update(update)).len(), 1);
}

#[test]
fn mode_is_chosen_again_for_a_session_that_is_restored_in_another_mode() {
    let mut t = choosy(Mode::Deny);
    t.on(&opened("auto"));
    t.on(&Answer(json!({})));
    t.turn();
    t.on(&On::AgentLost);
    t.connect(all());
    t.on(&Ensure(Strategy::Auto));
    let modes = modes("auto", &["default", "auto"]);
    let resumed = t.on(&Answer(json!({ "modes": modes })));
    assert_eq!(resumed, ["agent session/set_mode default"]);
    t.on(&Answer(json!({})));
    assert_eq!(receipt(&t), (Some("default".to_owned()), None));
}

#[test]
fn setting_with_which_an_unknown_agent_does_not_ask_is_a_fault() {
    let select = |id: &str, name: &str, value: &str| {
        json!([{"id": id, "name": name, "type": "select", "currentValue": value, "options": [
            {"value": "yolo", "name": "YOLO"}, {"value": "ask", "name": "Ask"}, {"value": "auto", "name": "Auto"},
        ]}])
    };
    let switch = |name: &str, is_on: bool| json!([{"id": "s", "name": name, "type": "boolean", "currentValue": is_on}]);
    for (asks, options, is_warned) in [
        (json!(null), select("approval", "Approval", "yolo"), true),
        (json!(null), select("approval", "Approval", "ask"), false),
        (json!(null), select("effort", "Thinking", "auto"), false),
        (json!(null), switch("YOLO", true), true),
        (json!(null), switch("YOLO", false), false),
        (json!(null), switch("Auto-compact", true), false),
        (
            json!("always"),
            select("approval", "Approval", "yolo"),
            false,
        ),
    ] {
        let mut t = session(&asks, Mode::Deny);
        t.on(&Answer(
            json!({ "sessionId": "a1", "configOptions": options }),
        ));
        assert_eq!(receipt(&t).1.is_some(), is_warned, "{asks} {options}");
    }
}

#[test]
fn client_is_warned_by_its_own_definition_of_the_agent() {
    for asks in [json!(null), json!("always")] {
        let mut t = session(&asks, Mode::Approve);
        t.on(&opened("plan"));
        let never: Asking = serde_json::from_value(json!("never")).unwrap();
        for (mode, asking, want) in [
            (Mode::Ask, Some(never.clone()), true),
            (Mode::Approve, Some(never), false),
            (Mode::Ask, None, false),
        ] {
            let terms = CallerTerms {
                client: ClientId::FIRST,
                has_own_settings: true,
                terms: Terms {
                    policy: Policy::from(mode),
                    limits: Limits::default(),
                },
                options: SessionOptions::default(),
                asking,
            };
            let mut own = empty_receipt();
            t.act(|session, cx| {
                let talk = &session.talk;
                talk.terms
                    .fill_asking_for(&terms, &talk.settings, &mut own, cx);
                let caller = CallerSettings {
                    terms: Some(Box::new(terms)),
                    ..CallerSettings::default()
                };
                session.talk.begin_terms(&caller, false, cx);
            });
            assert_eq!(own.policy_warning.is_some(), want, "{asks} {mode:?}");
            assert_eq!(receipt(&t).1.is_some(), want, "{asks} {mode:?}");
        }
    }
}
