//! The agent's environment: reading it, changing it, and the effects of a change on a running agent.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;

const SECRET: &str = "5eCr3t-t0k3n";

/// Agent that records the variables TOKEN and MORE when it starts, and exits at once if BROKEN is set.
fn agent(s: &Server, script: &Value) -> Value {
    let mut all = json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
    });
    for (method, runs) in script.as_object().unwrap() {
        all[method] = runs.clone();
    }
    let script = s.world.script(&all);
    let seen = s.world.dir.join("seen");
    let text = format!(
        "#!/bin/sh\necho \"${{TOKEN-none}} ${{MORE-none}}\" >> '{}'\n[ -z \"$BROKEN\" ] || exit 7\nexec '{FAKE_AGENT}' '{script}'\n",
        seen.display()
    );
    json!({"command": s.world.executable("agent.sh", &text)})
}

/// Returns the recorded variables, one line for each start.
fn seen(s: &Server) -> Vec<String> {
    let text = fs::read_to_string(s.world.dir.join("seen")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Connects the agent and opens these sessions.
fn ready(mut s: Server, script: &Value, sessions: &[&str]) -> Server {
    let agent = agent(&s, script);
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    for session in sessions {
        s.ensure(session);
    }
    s
}

#[test]
fn marks_of_the_claude_code_cli_reach_no_agent() {
    let marks = [
        ("CLAUDECODE", "1"),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
        ("CLAUDE_CODE_SESSION_ID", "outer"),
        ("CLAUDE_CODE_MAX_RETRIES", "1"),
    ];
    let mut s = Server::launch(
        World::new(),
        &["--serve", "terminal"],
        Framing::Lines,
        &marks,
    );
    s.initialize();
    let [seen, run] = ["seen", "run"].map(|name| s.world.dir.join(name).display().to_string());
    let create = json!({"command": format!("env > '{run}'")});
    let script = s.world.script(&json!({"session/prompt": [[
        {"ask": {"method": "terminal/create", "params": create}},
        {"ask": {"method": "terminal/wait_for_exit", "params": {"terminalId": "terminal-1"}}},
        say("x"),
        end("end_turn"),
    ]]}));
    let text = format!("#!/bin/sh\nenv > '{seen}'\nexec '{FAKE_AGENT}' '{script}'\n");
    let command = s.world.executable("agent.sh", &text);
    let own = json!({"CLAUDE_CODE_ENTRYPOINT": "own"});
    s.call("agent/connect", &json!({"command": command, "env": own}));
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s.prompt("go");
    for file in [seen, run] {
        let env = fs::read_to_string(&file).unwrap();
        let has = |line: &str| env.lines().any(|other| other == line);
        for mark in ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"] {
            assert!(!env.contains(mark), "{file}: {env}");
        }
        assert!(has("CLAUDE_CODE_ENTRYPOINT=own"), "{file}: {env}");
        assert!(has("CLAUDE_CODE_MAX_RETRIES=1"), "{file}: {env}");
    }
}

const RESTART: [&str; 4] = ["stopping", "disconnected", "starting", "ready"];

fn update(s: &mut Server, params: &Value) -> Value {
    s.call("agent/updateEnvironment", params)
}

fn env(s: &mut Server) -> Value {
    s.call("agent/getEnvironment", &json!({}))["env"].clone()
}

#[test]
fn environment_secrets_are_redacted_by_name() {
    let mut s = Server::initialized(&[]);
    let methods = json!([{"id": "key", "name": "A key", "type": "env_var", "vars": [
        {"name": "ORG", "secret": true}, {"name": "REGION", "secret": false, "optional": true}]}]);
    let script =
        json!({"initialize": [[{"reply": {"protocolVersion": 1, "authMethods": methods}}]]});
    let mut agent = agent(&s, &script);
    let env = json!({"GITHUB_TOKEN": SECRET, "DATABASE": format!("db://me:{SECRET}@host"), "ORG": SECRET,
        "REGION": "north", "EMPTY_KEY": "", "GONE_KEY": null});
    agent["env"] = env;
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    let given = s.call("agent/getEnvironment", &json!({}));
    let want = json!({"GITHUB_TOKEN": "[redacted]", "DATABASE": "[redacted]", "ORG": "[redacted]",
        "REGION": "north", "EMPTY_KEY": "", "GONE_KEY": null});
    assert_eq!(given["env"], want);
    assert_eq!(
        given["redacted"],
        json!(["DATABASE", "GITHUB_TOKEN", "ORG"])
    );
    // Redacted values cannot be written back.
    let error = s.call_error("agent/updateEnvironment", &json!({"set": given["env"]}));
    assert_eq!(error["data"]["field"], "set");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("omit the variable"),
        "{error}"
    );
}

#[test]
fn environment_set_without_an_agent_applies_to_the_next() {
    let mut s = Server::initialized(&["-e", "TOKEN=first"]);
    assert_eq!(env(&mut s), json!({"TOKEN": "[redacted]"}));
    let changed = update(
        &mut s,
        &json!({"set": {"TOKEN": "second"}, "unset": ["GONE"]}),
    );
    assert_eq!(
        changed,
        json!({"changed": true, "restarted": false, "sessions": []})
    );
    // Unchanged values, and no values at all.
    for same in [json!({"set": {"TOKEN": "second", "GONE": null}}), json!({})] {
        assert_eq!(update(&mut s, &same)["changed"], false);
    }
    let mut agent = agent(&s, &json!({}));
    agent["env"] = json!({"MORE": "own"});
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    assert_eq!(seen(&s), ["second own"]);
    assert_eq!(
        env(&mut s),
        json!({"TOKEN": "[redacted]", "GONE": null, "MORE": "own"})
    );
    // Variables of that agent alone are gone after its disconnection.
    s.call("agent/disconnect", &json!({}));
    assert_eq!(env(&mut s), json!({"TOKEN": "[redacted]", "GONE": null}));
    s.agent_states(&["stopping", "disconnected"]);
}

#[test]
fn changed_environment_restarts_the_agent_and_restores_sessions() {
    let mut s = ready(Server::initialized(&[]), &json!({}), &["default", "fresh"]);
    assert_eq!(s.prompt("one").summary["text"], "one");
    let before = s.call("agent/status", &json!({}))["pid"].clone();
    let changed = update(&mut s, &json!({"set": {"TOKEN": "new"}}));
    assert_eq!(
        (&changed["changed"], &changed["restarted"]),
        (&json!(true), &json!(true))
    );
    let sessions = changed["sessions"].as_array().unwrap();
    let came = |n: usize| {
        (
            &sessions[n]["sessionId"],
            &sessions[n]["recovery"]["rung"],
            &sessions[n]["error"],
        )
    };
    assert_eq!(sessions.len(), 2);
    assert_eq!(came(0), (&json!("default"), &json!("resume"), &Value::Null));
    assert_eq!(came(1), (&json!("fresh"), &json!("resume"), &Value::Null));
    s.agent_states(&RESTART);
    assert_ne!(s.call("agent/status", &json!({}))["pid"], before);
    assert_eq!(seen(&s), ["none none", "new none"]);
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "two");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");

    // An unchanged environment restarts nothing.
    let same = update(
        &mut s,
        &json!({"set": {"TOKEN": "new"}, "whenBusy": "reject"}),
    );
    assert_eq!(
        same,
        json!({"changed": false, "restarted": false, "sessions": []})
    );
    update(&mut s, &json!({"unset": ["TOKEN"]}));
    s.agent_states(&RESTART);
    assert_eq!(seen(&s).last().unwrap(), "none none");
}

#[test]
fn broken_environment_can_be_corrected() {
    let mut s = ready(Server::initialized(&[]), &json!({}), &["default"]);
    s.prompt("one");
    let error = s.call_error(
        "agent/updateEnvironment",
        &json!({"set": {"BROKEN": "yes"}}),
    );
    assert_eq!(error["data"]["kind"], "agentStart");
    s.agent_states(&["stopping", "disconnected", "starting", "disconnected"]);
    assert_eq!(env(&mut s), json!({"BROKEN": "yes"}));
    let mended = update(&mut s, &json!({"unset": ["BROKEN"]}));
    assert_eq!(mended["restarted"], false);
    // The prompt goes to the same agent and its session, not to the default agent.
    let turn = s.prompt("two");
    assert_eq!(turn.one("data-recovery")["data"]["memory"], "kept");
    s.agent_states(&["starting", "ready"]);
}

#[test]
fn invalid_environment_error_hides_the_values() {
    let mut s = ready(Server::initialized(&["-vvv"]), &json!({}), &["default"]);
    let bad = [
        (
            json!({"set": {format!("A={SECRET}"): SECRET}}),
            "set: \"A\" is not a valid variable name",
        ),
        (
            json!({"set": {"": SECRET}}),
            "set: \"\" is not a valid variable name",
        ),
        (
            json!({"set": {"A": format!("{SECRET}\0")}}),
            "must not contain NUL",
        ),
        (json!({"set": {"A": [SECRET]}}), "must be a string or null"),
        (json!({"set": SECRET}), "an object of variables"),
        (
            json!({"unset": [format!("A={SECRET}")]}),
            "unset: \"A\" is not a valid variable name",
        ),
        (
            json!({"set": {"A": SECRET}, "unset": ["A"]}),
            "\"A\" is also in set",
        ),
        (
            json!({"set": {"A": SECRET}, "whenBusy": "never"}),
            "whenBusy",
        ),
    ];
    for (params, why) in &bad {
        let error = s.call_error("agent/updateEnvironment", params);
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    for bad in [
        json!({"A": [SECRET]}),
        json!({format!("A={SECRET}"): ""}),
        json!(SECRET),
    ] {
        let error = s.call_error("agent/connect", &json!({"env": bad}));
        assert!(!error.to_string().contains(SECRET), "{error}");
    }
    assert_eq!(env(&mut s), json!({}));

    // A secret in use appears neither in the log nor in the status, nor in the error of an agent that it
    // breaks.
    update(&mut s, &json!({"set": {"TOKEN": SECRET}}));
    s.agent_states(&RESTART);
    s.prompt("one");
    assert_eq!(env(&mut s), json!({"TOKEN": "[redacted]"}));
    let status = s.call("agent/status", &json!({}));
    assert!(!status.to_string().contains(SECRET), "{status}");
    let error = s.call_error(
        "agent/updateEnvironment",
        &json!({"set": {"BROKEN": SECRET}}),
    );
    assert!(!error.to_string().contains(SECRET), "{error}");
    s.agent_states(&["stopping", "disconnected", "starting", "disconnected"]);
    let stderr = s.finish().stderr;
    assert!(
        stderr.contains("process of the agent started") && !stderr.contains(SECRET),
        "{stderr}"
    );
}
