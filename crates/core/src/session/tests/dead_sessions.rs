//! Tests of sessions that the agent reports as restored and does not have: each call that needs the session leads to
//! a new one, in the restore and after it.

use super::event::On;
use super::fixture::{Fixture, all};
use On::{Answer, Ensure, Prompt, Refuse, Set};
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{AgentCapabilities, Memory, Rung, SettingValue, Strategy};
use serde_json::{Value, json};

const GONE: On = Refuse(-32602, "Session not found: a1");

/// The state that the agent reports: `a` of everything, or `b`.
fn state(current: &str) -> Value {
    let listed = |field: &str| json!([{field: "a", "name": "A"}, {field: "b", "name": "B"}]);
    json!({
        "sessionId": "a1",
        "modes": {"currentModeId": current, "availableModes": listed("id")},
        "models": {"currentModelId": current, "availableModels": listed("modelId")},
        "configOptions": [{
            "id": "effort", "name": "Effort", "type": "select", "currentValue": current,
            "options": listed("value"),
        }],
    })
}

/// The settings with the methods that set them.
fn settings() -> [(Setting, &'static str); 3] {
    let (id, value) = ("effort".to_owned(), SettingValue::Id("b".to_owned()));
    [
        (Setting::Mode("b".to_owned()), "set_mode"),
        (Setting::Model("b".to_owned()), "set_model"),
        (Setting::Option { id, value }, "set_config_option"),
    ]
}

fn resuming() -> AgentCapabilities {
    AgentCapabilities {
        load: false,
        ..all()
    }
}

/// Creates a stored session of an agent that can resume it.
fn stored() -> Fixture {
    let mut t = Fixture::new(resuming());
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(state("a")));
    t.turn();
    t
}

fn restart(t: &mut Fixture) {
    t.on(&On::AgentLost);
    t.connect(resuming());
}

/// Asserts that the output contains a line that begins like this.
fn assert_has(output: &[String], begin: &str) {
    let has = output.iter().any(|line| line.starts_with(begin));
    assert!(has, "no {begin:?} in {output:#?}");
}

fn assert_replaced(t: &Fixture) {
    assert_eq!(t.session.agent_session(), Some("a2"));
    let receipt = t.session.receipt.as_ref().expect("a receipt");
    assert_eq!((receipt.rung, receipt.memory), (Rung::New, Memory::Lost));
    let failed = receipt.failed.iter().find(|f| f.rung == Rung::Resume);
    let failed = failed.expect("the failed resume");
    assert_eq!(failed.kind, "sessionNotFound");
}

fn a2() -> On {
    let mut state = state("a");
    state["sessionId"] = "a2".into();
    Answer(state)
}

#[test]
fn setting_of_the_restore_that_finds_the_session_gone_leads_to_a_new_one() {
    for (setting, method) in settings() {
        let mut t = stored();
        t.on(&Set(setting));
        t.on(&Answer(json!({})));
        restart(&mut t);
        let output = t.on(&Ensure(Strategy::Auto));
        assert_has(&output, "agent session/resume a1");
        let output = t.on(&Answer(state("a")));
        assert_has(&output, &format!("agent session/{method}"));
        let output = t.on(&GONE);
        assert_has(&output, "agent session/new");
        let output = t.on(&a2());
        assert_has(&output, &format!("agent session/{method}"));
        let output = t.on(&Answer(json!({})));
        assert_has(&output, "reply 4 session new lost");
        assert_replaced(&t);
        assert!(t.session.receipt.as_ref().unwrap().not_restored.is_empty());
    }
}

#[test]
fn setting_of_a_client_that_finds_the_session_gone_is_set_in_a_new_one() {
    for (setting, method) in settings() {
        let mut t = stored();
        restart(&mut t);
        t.on(&Ensure(Strategy::Auto));
        t.on(&Answer(state("a")));
        let output = t.on(&Set(setting));
        assert_has(&output, &format!("agent session/{method}"));
        let output = t.on(&GONE);
        assert_has(&output, "agent session/new");
        assert!(
            !output.iter().any(|line| line.starts_with("reply")),
            "{output:?}"
        );
        let output = t.on(&a2());
        assert_has(&output, &format!("agent session/{method}"));
        let output = t.on(&Answer(json!({})));
        assert_has(&output, "reply 4 setting");
        assert_replaced(&t);
    }
}

#[test]
fn prompt_behind_a_setting_that_finds_the_session_gone_is_sent_to_the_new_one() {
    let mut t = stored();
    restart(&mut t);
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(state("a")));
    let [(setting, _), ..] = settings();
    t.on(&Set(setting));
    t.on(&GONE);
    let output = t.on(&Prompt("again"));
    assert!(
        !output.iter().any(|line| line.starts_with("agent")),
        "{output:?}"
    );
    t.on(&a2());
    t.on(&Answer(json!({})));
    assert_replaced(&t);
    assert_eq!(t.session.queue.len(), 1, "the hub sends it next");
}

#[test]
fn load_is_tried_before_a_new_session() {
    let mut t = Fixture::new(all());
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(state("a")));
    t.turn();
    let [(setting, _), ..] = settings();
    t.on(&Set(setting));
    t.on(&Answer(json!({})));
    t.on(&On::AgentLost);
    t.connect(all());
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(state("a")));
    let output = t.on(&GONE);
    assert_has(&output, "agent session/load a1");
}

#[test]
fn session_that_was_just_created_is_not_replaced_again() {
    let mut t = Fixture::new(resuming());
    t.on(&Ensure(Strategy::Auto));
    t.on(&Answer(state("a")));
    let [(setting, _), ..] = settings();
    t.on(&Set(setting));
    let output = t.on(&GONE);
    assert_eq!(output, ["reply 2 error sessionNotFound"]);
}

#[test]
fn strategy_without_a_new_session_fails_the_opening() {
    let mut t = stored();
    let [(setting, _), ..] = settings();
    t.on(&Set(setting));
    t.on(&Answer(json!({})));
    restart(&mut t);
    t.on(&Ensure(Strategy::Only(Rung::Resume)));
    t.on(&Answer(state("a")));
    let output = t.on(&GONE);
    assert_has(&output, "reply 4 error sessionNotFound");
    assert_eq!(t.session.known.last_id(), Some("a1"));
}

#[test]
fn other_refusals_of_a_setting_replace_nothing() {
    for error in ["no", "the mode was not found", "session model not found"] {
        let mut t = stored();
        restart(&mut t);
        t.on(&Ensure(Strategy::Auto));
        t.on(&Answer(state("a")));
        let [(setting, _), ..] = settings();
        t.on(&Set(setting));
        let output = t.on(&Refuse(-32602, error));
        assert_eq!(output, ["reply 4 error session"], "{error}");
    }
}
