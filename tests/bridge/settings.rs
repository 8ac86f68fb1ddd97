//! Modes, models and options: set by the client, and set again in a restored session.

use crate::harness::FAKE_AGENT;
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
fn unknown_setting_error_lists_the_choices() {
    let mut s = Server::ready(&json!({
        "session/new": [[{"reply": with_options()}], [{"default": true}]],
        "session/set_model": [[{"error": {"code": -32602, "message": "model is gone"}}]],
    }));
    s.ensure("bare");
    for (method, params, field, why, choices) in [
        (
            "setMode",
            json!({"mode": "x"}),
            "mode",
            "use one of: build (Build), plan (Plan)",
            json!(["build", "plan", "default"]),
        ),
        (
            "setModel",
            json!({"model": "x"}),
            "model",
            "use one of: m1 (One), m2 (Two)",
            json!(["m1", "m2"]),
        ),
        (
            "setOption",
            json!({"option": "x", "value": "y"}),
            "option",
            "effort (Effort), m (Mode), fast (Fast)",
            json!(["effort", "m", "fast"]),
        ),
        (
            "setOption",
            json!({"option": "fast", "value": "y"}),
            "value",
            "true or false",
            json!([true, false]),
        ),
        (
            "setMode",
            json!({"sessionId": "bare", "mode": "plan"}),
            "mode",
            "offers no choices",
            json!([]),
        ),
    ] {
        let error = s.call_error(&format!("session/{method}"), &params);
        assert_eq!(error["data"]["kind"], "invalidParams", "{error}");
        assert_eq!(error["data"]["field"], field, "{error}");
        let offered = error["data"]["choices"].as_array().unwrap().iter();
        let offered = offered.map(|choice| choice.get("id").unwrap_or(choice).clone());
        assert_eq!(offered.collect::<Value>(), choices, "{error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    let error = s.call_error("session/setOption", &json!({"option": "fast", "value": 1}));
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("a string or a boolean"),
        "{error}"
    );
    let error = s.call_error(
        "session/setMode",
        &json!({"sessionId": "?", "mode": "plan"}),
    );
    assert_eq!(error["data"]["kind"], "sessionNotFound");
    // A value that the agent refuses is neither shown nor restored later.
    let error = s.call_error("session/setModel", &json!({"model": "m2"}));
    assert_eq!(error["data"]["kind"], "session");
    assert!(
        error["message"].as_str().unwrap().contains("model is gone"),
        "{error}"
    );
    assert_eq!(
        s.ensure("default")["state"]["models"]["currentModelId"],
        "m1"
    );
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

#[test]
fn agent_exit_fails_pending_settings() {
    let mut s = Server::ready(&json!({
        "session/new": [[{"reply": lists()}]],
        "session/set_mode": [[{"exit": 9}]],
    }));
    let error = s.call_error("session/setMode", &json!({"mode": "plan"}));
    assert_eq!(error["data"]["kind"], "agentExited");
    s.agent_states(&["disconnected"]);
}

/// Starts an agent, sets an option, the model and the mode, prompts, and connects the agent again.
fn restarted(mut s: Server, resume: &Value, load: &Value, more: &[(&str, Value)]) -> Server {
    let mut script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "loadSession": true, "sessionCapabilities": {"resume": {}},
        }}}]],
        "session/new": [[{"reply": with_options()}]],
        "session/resume": [resume],
        "session/load": [load],
        "session/set_model": [[{"reply": {}}]],
        "session/set_config_option": [[{"reply": {}}]],
    });
    for (method, runs) in more {
        script[method] = runs.clone();
    }
    s.waive("session/state");
    let agent = json!({"command": FAKE_AGENT, "args": [s.world.script(&script)]});
    s.call("agent/connect", &agent);
    s.ensure("default");
    s.call(
        "session/setOption",
        &json!({"option": "effort", "value": "high"}),
    );
    s.call("session/setModel", &json!({"model": "m2"}));
    s.call("session/setMode", &json!({"mode": "plan"}));
    s.prompt("one");
    s.call("agent/disconnect", &json!({}));
    s.call("agent/connect", &agent);
    s.agent_states(&[
        "starting",
        "ready",
        "stopping",
        "disconnected",
        "starting",
        "ready",
    ]);
    s
}

/// Returns the settings that were set after the reconnection, and asserts that the prompt came last.
fn settings_after_reconnect(s: Server) -> Vec<(String, Value)> {
    let log = s.finish().log;
    let last = log.iter().rfind(|call| call["method"].is_string());
    assert_eq!(last.unwrap()["method"], "session/prompt");
    set(&log).split_off(3)
}

#[test]
fn settings_are_restored_before_the_prompt() {
    let mode = call(
        "set_config_option",
        json!({"configId": "m", "value": "plan"}),
    );
    let model = call("set_model", json!({"modelId": "m2"}));
    let effort = call(
        "set_config_option",
        json!({"configId": "effort", "value": "high"}),
    );
    let refuses = json!([{"error": {"code": -32002, "message": "no such session"}}]);
    let repeats = json!([
        {"notify": {"method": "session/update", "params": {"sessionId": "fake-1", "update": {
            "sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "one"}}}}},
        {"reply": {"configOptions": options("build", "high")}},
    ]);
    let all = [mode, model, effort];
    for (resume, load, rung, want) in [
        // The agent does not report its current settings.
        (json!([{"reply": {}}]), refuses.clone(), "resume", &all[..]),
        (
            json!([{"reply": {"configOptions": options("plan", "high")}}]),
            refuses.clone(),
            "resume",
            &all[1..2],
        ),
        (refuses.clone(), repeats, "load", &all[..2]),
        (refuses.clone(), refuses.clone(), "new", &all),
    ] {
        let s = Server::initialized(&[]);
        let mut s = restarted(s, &resume, &load, &[]);
        let turn = s.prompt("two");
        let recovery = &turn.one("data-recovery")["data"];
        assert_eq!(recovery["rung"], rung);
        assert_eq!(recovery["notRestored"], json!([]));
        let state = s.ensure("default")["state"].clone();
        assert_eq!(state["configOptions"], options("plan", "high"), "{rung}");
        assert_eq!(state["models"]["currentModelId"], "m2", "{rung}");
        assert_eq!(settings_after_reconnect(s), want, "{rung}");
    }
}

#[test]
fn setting_that_cannot_be_restored_is_reported_in_the_receipt() {
    let s = Server::initialized(&[]);
    let mark = s.world.dir.join("model");
    let resumed = json!([{"reply": {"configOptions": [options("build", "low")[1]]}}]);
    let refuse = json!({"error": {"code": -32603, "message": "the model is gone"}});
    let model = json!([[{"once": {"mark": mark, "steps": [{"reply": {}}]}}, refuse]]);
    let mut s = restarted(
        s,
        &resumed,
        &json!([{"reply": {}}]),
        &[("session/set_model", model)],
    );
    let recovery = s.ensure("default")["recovery"].clone();
    assert_eq!(recovery["rung"], "resume");
    let lost = recovery["notRestored"].as_array().unwrap();
    let about: Vec<_> = lost.iter().map(|l| (&l["setting"], &l["value"])).collect();
    assert_eq!(
        about,
        [
            (&json!("model"), &json!("m2")),
            (&json!("effort"), &json!("high"))
        ]
    );
    assert!(
        lost[0]["message"]
            .as_str()
            .unwrap()
            .contains("the model is gone"),
        "{recovery}"
    );
    assert!(
        lost[1]["message"]
            .as_str()
            .unwrap()
            .contains("\"effort\" is not offered"),
        "{recovery}"
    );
    assert_eq!(s.prompt("two").one("data-recovery")["data"], recovery);
    let state = s.ensure("default")["state"].clone();
    assert_eq!(state["configOptions"][0]["currentValue"], "plan");
    assert_eq!(settings_after_reconnect(s).len(), 2);
}

#[test]
fn setting_changed_by_the_agent_is_kept() {
    let leaves = json!({"update": {"sessionUpdate": "config_option_update", "configOptions": options("build", "low")}});
    let mut s = restarted(
        Server::initialized(&[]),
        &json!([{"reply": with_options()}]),
        &json!([{"reply": {}}]),
        &[(
            "session/prompt",
            json!([[leaves, say("x"), end("end_turn")]]),
        )],
    );
    s.prompt("two");
    assert_eq!(
        settings_after_reconnect(s),
        [call("set_model", json!({"modelId": "m2"}))]
    );
}

#[test]
fn setting_restores_an_unloaded_session() {
    let resumed = json!([{"reply": {"configOptions": options("build", "high"), "models": lists()["models"]}}]);
    let s = Server::initialized(&[]);
    let mut s = restarted(s, &resumed, &json!([{"reply": {}}]), &[]);
    // Both calls wait for the session, and the prompt comes last.
    let set = s.send("session/setMode", &json!({"mode": "Build"}));
    let wrong = s.send("session/setMode", &json!({"mode": "x"}));
    let turn = s.send_prompt("default", "two");
    let state = s.result(&set)["state"].clone();
    assert_eq!(state["configOptions"][1]["currentValue"], "build");
    assert_eq!(s.error(&wrong)["data"]["kind"], "invalidParams");
    assert_eq!(s.turn(&turn).one("data-recovery")["data"]["rung"], "resume");
    let modes: Vec<Value> = settings_after_reconnect(s)
        .into_iter()
        .map(|(_, params)| params["value"].clone())
        .collect();
    assert_eq!(modes, [json!("plan"), Value::Null, json!("build")]);
}
