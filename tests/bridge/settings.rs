//! Modes, models and options: set by the client, and set again in a restored session.

use crate::harness::calls;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Answer of older agents to `session/new`, with lists of modes and models.
fn lists() -> Value {
    json!({
        "sessionId": "fake-1",
        "modes": {"currentModeId": "default", "availableModes": [
            {"id": "default", "name": "Manual"}, {"id": "plan", "name": "Plan"}]},
        "models": {"currentModelId": "m1", "availableModels": [
            {"modelId": "m1", "name": "One"}, {"modelId": "m2", "name": "Two"}]},
    })
}

fn options(mode: &str, effort: &str) -> Value {
    json!([
        {"id": "effort", "name": "Effort", "category": "thought_level", "type": "select", "currentValue": effort,
         "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}]},
        {"id": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": mode,
         "options": [{"value": "build", "name": "Build"}, {"value": "plan", "name": "Plan"}]},
        {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false},
    ])
}

/// Answer of newer agents to `session/new`, with options as well.
fn with_options() -> Value {
    let mut all = lists();
    all["configOptions"] = options("build", "low");
    all
}

/// Returns all calls that set something, in order: method without the prefix `session/`, and params without
/// the session.
fn set(log: &[Value]) -> Vec<(String, Value)> {
    let setting = |call: &&Value| {
        call["method"]
            .as_str()
            .is_some_and(|m| m.starts_with("session/set_"))
    };
    let about = |call: &Value| {
        let mut params = call["params"].clone();
        let session = params.as_object_mut().unwrap().remove("sessionId");
        assert_eq!(session, Some(json!("fake-1")));
        (call["method"].as_str().unwrap()[8..].to_owned(), params)
    };
    log.iter().filter(setting).map(about).collect()
}

fn call(method: &str, params: Value) -> (String, Value) {
    (method.to_owned(), params)
}

#[test]
fn mode_and_model_can_be_set_by_name() {
    let mut s = Server::ready(&json!({
        "session/new": [[{"reply": lists()}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/set_model": [[{"reply": null}]],
    }));
    let answer = s.call("session/setMode", &json!({"mode": "PLAN"}));
    assert_eq!(answer["state"]["modes"]["currentModeId"], "plan");
    let told = s.notification("session/state");
    assert_eq!(told["state"], answer["state"]);
    let answer = s.call(
        "session/setModel",
        &json!({"sessionId": "default", "model": "Two"}),
    );
    assert_eq!(answer["state"]["models"]["currentModelId"], "m2");
    s.notification("session/state");
    let session = s.call("session/get", &json!({}));
    let listed = &s.call("session/list", &json!({}))["sessions"][0];
    for shown in [&session, listed] {
        let settings = (&shown["mode"], &shown["model"]);
        assert_eq!(settings, (&json!("plan"), &json!("m2")));
    }
    // Without a change there is no notification.
    s.call("session/setMode", &json!({"mode": "plan"}));
    assert_eq!(s.ensure("default")["state"], answer["state"]);
    let plan = call("set_mode", json!({"modeId": "plan"}));
    let model = call("set_model", json!({"modelId": "m2"}));
    assert_eq!(set(&s.finish().log), [plan.clone(), model, plan]);
}

#[test]
fn config_options_take_precedence_over_lists_and_accept_booleans() {
    let mut s = Server::ready(&json!({
        "session/new": [[{"reply": with_options()}]],
        "session/set_config_option": [
            [{"update": {"sessionUpdate": "current_mode_update", "currentModeId": "plan"}},
             {"reply": {"configOptions": options("plan", "low")}}],
            [{"reply": {}}],
        ],
    }));
    let answer = s.call("session/setMode", &json!({"mode": "Plan"}));
    assert_eq!(answer["state"]["configOptions"], options("plan", "low"));
    assert_eq!(answer["state"]["modes"]["currentModeId"], "plan");
    let told = s.notification("session/state");
    assert_eq!(told["state"]["currentModeId"], "plan");
    // The option follows the update, so the answer changes nothing more.
    assert_eq!(told["state"], answer["state"]);
    let answer = s.call(
        "session/setOption",
        &json!({"option": "Fast", "value": true}),
    );
    assert_eq!(answer["state"]["configOptions"][2]["currentValue"], true);
    s.notification("session/state");
    let log = s.finish().log;
    assert_eq!(
        set(&log),
        [
            call(
                "set_config_option",
                json!({"configId": "m", "value": "plan"})
            ),
            call(
                "set_config_option",
                json!({"configId": "fast", "type": "boolean", "value": true})
            ),
        ]
    );
    let offered = &calls(&log, "initialize")[0]["params"]["clientCapabilities"];
    assert_eq!(offered["session"]["configOptions"]["boolean"], json!({}));
}

#[test]
fn a_mode_can_be_set_while_a_turn_runs() {
    let mut s = Server::ready(&json!({
        "session/new": [[{"reply": lists()}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("x"), {"wait": "session/set_mode"}, {"wait": "session/set_mode"}, end("end_turn")]],
    }));
    let id = s.send_prompt("default", "x");
    s.await_agent_call("session/prompt");
    s.call("session/setMode", &json!({"mode": "plan"}));
    s.notification("session/state");
    s.call("session/setMode", &json!({"mode": "plan"}));
    let turn = s.turn(&id);
    assert_eq!(turn.one("data-session")["data"]["currentModeId"], "plan");
}
