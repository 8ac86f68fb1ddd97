//! Modes and models given at the start: they are set, or the call fails before any prompt. Also their
//! consistent view, whichever list the agent reports.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, claude};
use serde_json::{Value, json};

fn select(id: &str, current: &str, values: &[&str]) -> Value {
    let values: Vec<Value> = values
        .iter()
        .map(|v| json!({"value": v, "name": v}))
        .collect();
    json!({"id": id, "name": id, "category": id, "type": "select", "currentValue": current, "options": values})
}

/// Answer to `session/new` with lists and options.
fn both() -> Value {
    json!({
        "sessionId": "fake-1",
        "modes": {"currentModeId": "build", "availableModes": [
            {"id": "build", "name": "Build"}, {"id": "plan", "name": "Plan"}]},
        "models": {"currentModelId": "m1", "availableModels": [
            {"modelId": "m1", "name": "One"}, {"modelId": "m2", "name": "Two"}, {"modelId": "m3", "name": "Three"}]},
        "configOptions": [select("mode", "build", &["build", "plan"]), select("model", "m1", &["m1", "m2"])],
    })
}

/// Script of an agent that refuses to set modes, models and options, and that closes sessions.
fn script(more: &Value) -> Value {
    let refusal = json!({"error": {"code": -32603, "message": "no such thing today"}});
    let mut script = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "loadSession": false, "sessionCapabilities": {"close": {}, "resume": {}}}}}]],
        "session/new": [[{"reply": both()}]],
        "session/resume": [[{"reply": {}}]],
        "session/close": [[{"reply": {}}]],
        "session/set_config_option": [[refusal.clone()]],
        "session/set_mode": [[refusal.clone()]],
        "session/set_model": [[refusal]],
        "session/prompt": [[say("done"), end("end_turn")]],
    });
    for (method, runs) in more.as_object().unwrap() {
        script[method] = runs.clone();
    }
    script
}

/// Returns the methods of the agent's calls.
fn methods(log: &[Value]) -> Vec<&str> {
    log.iter()
        .filter_map(|call| call["method"].as_str())
        .collect()
}

#[test]
fn only_a_strict_session_requires_its_mode() {
    let mut s = Server::initialized(&[]);
    s.connect(&script(&json!({})));
    let mut params = json!({"sessionId": "s", "options": {"mode": "nope"}});
    let error = s.call_error("session/ensure", &params);
    assert_eq!(error["data"]["field"], "options.mode", "{error}");
    assert_eq!(error["data"]["choices"][1]["id"], "plan", "{error}");
    assert_eq!(s.call("session/list", &json!({}))["sessions"], json!([]));
    params["strict"] = false.into();
    let opened = s.call("session/ensure", &params);
    let [left] = &opened["recovery"]["notRestored"].as_array().unwrap()[..] else {
        panic!("{opened}");
    };
    assert_eq!(
        (&left["setting"], &left["value"]),
        (&json!("mode"), &json!("nope"))
    );
    let id = s.send_prompt("s", "go");
    assert_eq!(s.turn(&id).summary["text"], "done");
    s.finish();
}

#[test]
fn run_fails_before_the_prompt_without_its_mode_or_model() {
    for (args, offered) in [
        (["--mode", "agent"], "build, plan"),
        (["--model", "gpt-9"], "m1, m2, m3 (Three)"),
    ] {
        let args = [&["run"], &args[..], &["-q", "go"]].concat();
        let outcome = Run::new(&args).script(&script(&json!({}))).go().expect(2);
        assert_eq!(outcome.text(), "");
        assert!(outcome.stderr.contains(offered), "{}", outcome.stderr);
        assert!(!methods(&outcome.log).contains(&"session/prompt"));
    }
}

#[test]
fn run_reports_settings_that_were_not_restored() {
    let world = World::new();
    let (state, mark) = (world.dir.join("state"), world.dir.join("mark"));
    let refusal = json!({"error": {"code": -32603, "message": "no such thing today"}});
    let once = json!([[{"once": {"mark": mark, "steps": [{"reply": {}}]}}, refusal]]);
    let script = script(&json!({"session/set_config_option": once}));
    let script = world.script(&script);
    let run = |args: &[&str]| {
        let args = [&["run", "--session", "s"], args].concat();
        let run = Run::new(&args).env("ACPIPE_STATE_DIR", state.to_str().unwrap());
        run.agent(&[FAKE_AGENT, &script]).go().expect(0)
    };
    run(&["--mode", "plan", "one"]);
    let second = run(&["two"]);
    let note = "cannot restore mode \"plan\" of session \"s\": ";
    assert!(second.stderr.contains(note), "{}", second.stderr);
    assert!(
        second.stderr.contains("no such thing today"),
        "{}",
        second.stderr
    );
}

#[test]
fn claude_started_in_another_mode_is_not_prompted() {
    let other = json!({"frame": {"type": "control_response", "response": {"subtype": "success",
        "request_id": "{request}", "response": {"current_permission_mode": "default", "models": []}}}});
    let mut s = claude::server(&[], &json!({"control": {"initialize": [other]}}));
    s.connect_claude(&json!({}));
    let error = s.call_error("session/ensure", &json!({"options": {"mode": "plan"}}));
    assert_eq!(error["data"]["kind"], "invalidParams", "{error}");
    assert_eq!(error["data"]["field"], "options.mode", "{error}");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("reports \"default\""),
        "{error}"
    );
    s.ensure("default");
    let error = s.call_error(
        "session/ensure",
        &json!({"sessionId": "b", "options": {"mode": "plann"}}),
    );
    assert_eq!(error["data"]["choices"][2]["id"], "plan", "{error}");
}
