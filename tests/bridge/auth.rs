//! Sign-in to agents and logout, with every type of method.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::say;
use crate::harness::{FAKE_AGENT, World, calls, claude};
use serde_json::{Value, json};

const SECRET: &str = "5eCr3t-t0k3n";

const RESTART: [&str; 4] = ["stopping", "disconnected", "starting", "ready"];

/// Error of an agent that requires a sign-in.
fn refusal() -> Value {
    json!({"error": {"code": -32000, "message": "Authentication required"}})
}

/// Runs of `initialize` for an agent that offers every type of sign-in method.
fn hello() -> Value {
    let methods = json!([
        {"id": "browser", "name": "Log in with a browser"},
        {"id": "key", "name": "Use a key", "type": "env_var", "link": "https://keys", "vars": [
            {"name": "TOKEN"}, {"name": "ORG", "optional": true, "secret": false}]},
        {"id": "shell", "name": "Log in by hand", "type": "terminal", "args": ["login"], "env": {"A": "b"}},
    ]);
    json!([[{"reply": {"protocolVersion": 1, "authMethods": methods,
        "agentCapabilities": {"auth": {"logout": {}}, "sessionCapabilities": {"resume": {}}}}}]])
}

fn authenticate(s: &mut Server, method: &str) -> Value {
    s.call("agent/authenticate", &json!({"methodId": method}))
}

#[test]
fn failed_session_opens_after_sign_in_without_a_restart() {
    for child_per_session in [false, true] {
        let mut s = Server::initialized(&[]);
        let script = s.world.script(&json!({
            "initialize": hello(),
            "authenticate": [[{"reply": {}}]],
            "logout": [[{"reply": {}}]],
            "session/new": [[refusal()], [{"default": true}]],
            "session/prompt": [[refusal()], [say("signed in"), {"reply": {"stopReason": "end_turn"}}]],
        }));
        let agent =
            json!({"command": FAKE_AGENT, "args": [script], "childPerSession": child_per_session});
        let status = s.call("agent/connect", &agent);
        s.agent_states(&["starting", "ready"]);
        assert_eq!(status["capabilities"]["logout"], true);
        let error = s.call_error("session/ensure", &json!({}));
        assert_eq!(error["data"]["kind"], "authRequired");
        let done = json!({"done": true, "run": null});
        assert_eq!(authenticate(&mut s, "browser"), done);
        s.ensure("default");
        let log = s.world.log();
        let [hello] = calls(&log, "initialize")[..] else {
            panic!("{child_per_session}: {log:?}");
        };
        let can = &hello["params"]["clientCapabilities"];
        assert_eq!(can["auth"]["terminal"], true);
        assert_eq!(s.prompt("x").summary["errors"][0]["kind"], "authRequired");
        authenticate(&mut s, "browser");
        assert_eq!(s.prompt("x").summary["text"], "signed in");
        assert_eq!(s.call("agent/logout", &json!({})), json!({}));
        let log = s.finish().log;
        let asked = calls(&log, "authenticate").into_iter();
        let asked: Vec<&Value> = asked.map(|call| &call["params"]).collect();
        assert_eq!(asked, [&json!({"methodId": "browser"}); 2]);
        assert_eq!(calls(&log, "logout").len(), 1);
    }
}

#[test]
fn sign_in_by_key_sets_the_environment_and_authenticates() {
    let world = World::new();
    let args = ["--log-level", "trace"];
    let mut s = Server::launch(world, &args, Framing::Lines, &[]);
    s.initialize();
    let script = s.world.script(
        &json!({"initialize": hello(), "authenticate": [[{"reply": {}}]],
        "session/resume": [[{"reply": {}}]]}),
    );
    let seen = s.world.dir.join("seen");
    let text = format!(
        "#!/bin/sh\necho \"${{TOKEN-none}}\" >> '{}'\nexec '{FAKE_AGENT}' '{script}'\n",
        seen.display()
    );
    let program = s.world.executable("agent.sh", &text);
    s.call("agent/connect", &json!({"command": program}));
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    assert_eq!(s.prompt("one").summary["text"], "one");
    let keys = json!({"methodId": "key", "env": {"TOKEN": SECRET}});
    assert_eq!(s.call("agent/authenticate", &keys)["done"], true);
    s.agent_states(&RESTART);
    assert_eq!(s.prompt("two").summary["text"], "two");
    // The agent already has this key, so it is authenticated without a restart.
    assert_eq!(authenticate(&mut s, "key")["done"], true);
    assert_eq!(
        std::fs::read_to_string(seen).unwrap(),
        format!("none\n{SECRET}\n")
    );
    let end = s.finish();
    let order = ["authenticate", "session/resume"];
    let methods: Vec<&str> = end
        .log
        .iter()
        .filter_map(|l| l["method"].as_str())
        .collect();
    let first: Vec<&str> = methods.into_iter().filter(|m| order.contains(m)).collect();
    assert_eq!(first, ["authenticate", "session/resume", "authenticate"]);
    assert!(end.stderr.contains("[hidden]"), "{}", end.stderr);
    assert!(!end.stderr.contains(SECRET), "{}", end.stderr);
}

#[test]
fn claude_sign_in_returns_the_login_command() {
    let mut s = claude::server(&[], &json!({}));
    let status = s.connect_claude(&json!({}));
    assert_eq!(status["authMethods"][0]["args"], json!(["auth", "login"]));
    assert_eq!(
        authenticate(&mut s, "login")["run"]["args"],
        json!(["auth", "login"])
    );
    let keys = json!({"methodId": "apiKey", "env": {"ANTHROPIC_API_KEY": SECRET}});
    assert_eq!(s.call("agent/authenticate", &keys)["done"], true);
    s.agent_states(&RESTART);
    let error = s.call_error("agent/logout", &json!({}));
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("`claude auth logout`"),
        "{error}"
    );
}
