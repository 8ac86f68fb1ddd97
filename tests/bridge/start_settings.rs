//! Modes and models given at the start: they are set, or the call fails before any prompt. Also their
//! consistent view, whichever list the agent reports.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls, claude};
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
fn session_that_is_not_strict_opens_without_a_mode_that_is_not_offered() {
    let mut s = Server::initialized(&[]);
    s.connect(&script(&json!({})));
    let options = json!({"mode": "nope"});
    let params = json!({"sessionId": "s", "options": options, "strict": false});
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
fn session_requires_its_requested_mode_and_model() {
    let ids = |error: &Value| -> Vec<Value> {
        let choices = error["data"]["choices"].as_array().unwrap().iter();
        choices.map(|choice| choice["id"].clone()).collect()
    };
    for (agents, method, params, field, offered, words) in [
        (
            json!({}),
            "session/ensure",
            json!({"options": {"mode": "agent"}}),
            "options.mode",
            json!(["build", "plan"]),
            "\"agent\" is not offered; use one of: build, plan",
        ),
        (
            json!({}),
            "session/create",
            json!({"sessionId": "x", "options": {"model": "gpt-9"}}),
            "options.model",
            json!(["m1", "m2", "m3"]),
            "\"gpt-9\" is not offered",
        ),
        (
            json!({"model": "gpt-9"}),
            "session/ensure",
            json!({}),
            "options.model",
            json!(["m1", "m2", "m3"]),
            "\"gpt-9\" is not offered",
        ),
        (
            json!({}),
            "session/ensure",
            json!({"options": {"mode": "plan"}}),
            "options.mode",
            json!(["build", "plan"]),
            "the agent refused \"plan\": ",
        ),
        (
            json!({}),
            "session/ensure",
            json!({"options": {"model": "m3"}}),
            "options.model",
            json!(["m1", "m2", "m3"]),
            "no such thing today",
        ),
    ] {
        let mut s = Server::initialized(&[]);
        let script = s.world.script(&script(&json!({})));
        s.call(
            "agent/connect",
            &json!({"command": FAKE_AGENT, "args": [script], "options": agents}),
        );
        s.agent_states(&["starting", "ready"]);
        let error = s.call_error(method, &params);
        assert_eq!(error["data"]["kind"], "invalidParams", "{error}");
        assert_eq!(error["data"]["field"], field, "{error}");
        assert_eq!(json!(ids(&error)), offered, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(words),
            "{error}"
        );
        assert_eq!(s.call("session/list", &json!({}))["sessions"], json!([]));
        let log = s.finish().log;
        assert!(!methods(&log).contains(&"session/prompt"));
        assert_eq!(
            calls(&log, "session/close")[0]["params"]["sessionId"],
            "fake-1"
        );
    }
}

#[test]
fn restored_session_requires_new_settings_and_reports_old_ones() {
    let mut s = Server::initialized(&[]);
    let mark = s.world.dir.join("mark");
    let refusal = json!({"error": {"code": -32603, "message": "no such thing today"}});
    let once = json!([[{"once": {"mark": mark, "steps": [{"reply": {}}]}}, refusal]]);
    let script = script(&json!({"session/set_config_option": once}));
    let agent = json!({"command": FAKE_AGENT, "args": [s.world.script(&script)]});
    s.waive("session/state");
    s.waive("agent/state");
    s.call("agent/connect", &agent);
    s.call("session/ensure", &json!({"options": {"mode": "plan"}}));
    s.prompt("one");
    s.call("agent/disconnect", &json!({}));
    s.call("agent/connect", &agent);
    let error = s.call_error("session/ensure", &json!({"options": {"model": "gpt-9"}}));
    assert_eq!(error["data"]["field"], "options.model", "{error}");
    // The mode is stored, the refused model is not.
    let recovery = s.ensure("default")["recovery"].clone();
    assert_eq!(recovery["rung"], "resume");
    let lost = recovery["notRestored"].as_array().unwrap();
    assert_eq!(lost.len(), 1, "{recovery}");
    assert_eq!(lost[0]["setting"], "mode");
    assert_eq!(lost[0]["value"], "plan");
    s.prompt("two");
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

#[test]
fn mode_and_model_agree_in_every_view() {
    let mut s = Server::initialized(&[]);
    let set = json!({"reply": {}});
    let plan =
        json!({"update": {"sessionUpdate": "current_mode_update", "currentModeId": "build"}});
    let told = json!({"update": {"sessionUpdate": "config_option_update", "configOptions":
        [select("mode", "plan", &["build", "plan"]), select("model", "m1", &["m1", "m2"])]}});
    s.connect(&script(&json!({
        "session/set_config_option": [[set]], "session/set_model": [[set]],
        "session/prompt": [[plan, say("x"), end("end_turn")], [told, say("x"), end("end_turn")]],
    })));
    s.waive("session/state");
    s.ensure("default");
    let shows = |s: &mut Server, mode: &str, model: &str, option: &str| {
        let state = s.ensure("default")["state"].clone();
        assert_eq!(state["modes"]["currentModeId"], mode);
        assert_eq!(state["models"]["currentModelId"], model);
        assert_eq!(state["configOptions"][0]["currentValue"], mode);
        assert_eq!(state["configOptions"][1]["currentValue"], option);
        let session = s.call("session/get", &json!({}));
        assert_eq!(
            (&session["mode"], &session["model"]),
            (&json!(mode), &json!(model))
        );
        let listed = s.call("session/list", &json!({}))["sessions"][0].clone();
        assert_eq!(
            (&listed["mode"], &listed["model"]),
            (&json!(mode), &json!(model))
        );
    };
    s.call("session/setMode", &json!({"mode": "plan"}));
    shows(&mut s, "plan", "m1", "m1");
    s.call("session/setModel", &json!({"model": "Two"}));
    shows(&mut s, "plan", "m2", "m2");
    // Only the list of models has this value.
    s.call("session/setModel", &json!({"model": "m3"}));
    shows(&mut s, "plan", "m3", "m2");
    s.call(
        "session/setOption",
        &json!({"option": "model", "value": "m1"}),
    );
    shows(&mut s, "plan", "m1", "m1");
    // The agent changes the mode itself, first by a mode update, then by its options.
    s.prompt("go");
    shows(&mut s, "build", "m1", "m1");
    s.prompt("go");
    shows(&mut s, "plan", "m1", "m1");
}
