//! The agent's environment: reading it, changing it, and the effects of a change on a running agent.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, resumable, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;

const SECRET: &str = "5eCr3t-t0k3n";

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

/// A variable that ends the agent at its start can be removed again, and the values are not shown.
#[test]
fn changed_environment_restarts_the_agent_and_restores_sessions() {
    let mut s = Server::initialized(&["-vvv", "-e", "TOKEN=first"]);
    let script = s.world.script(&resumable(json!({})));
    let seen = s.world.dir.join("seen");
    let line = "[ -z \"$BROKEN\" ] || exit 7";
    let shown = seen.display();
    let text = format!(
        "#!/bin/sh\necho \"${{TOKEN-none}}\" >> '{shown}'\n{line}\nexec '{FAKE_AGENT}' '{script}'\n"
    );
    let agent = json!({"command": s.world.executable("agent.sh", &text)});
    s.call("agent/connect", &agent);
    s.agent_states(&["starting", "ready"]);
    for session in ["default", "fresh"] {
        s.ensure(session);
    }
    assert_eq!(s.prompt("one").summary["text"], "one");
    let status = s.call("agent/status", &json!({}));
    let update = |set: Value| json!({ "set": set });
    let params = update(json!({"TOKEN": SECRET}));
    let changed = s.call("agent/updateEnvironment", &params);
    assert_eq!(changed["restarted"], true);
    let sessions = changed["sessions"].as_array().unwrap().iter();
    let came = sessions.map(|s| (&s["sessionId"], &s["recovery"]["rung"], &s["error"]));
    let (resume, none) = (json!("resume"), Value::Null);
    let want = [json!("default"), json!("fresh")];
    let want = want.each_ref().map(|session| (session, &resume, &none));
    assert_eq!(came.collect::<Vec<_>>(), want);
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let after = s.call("agent/status", &json!({}));
    assert_ne!(status["pid"], after["pid"]);
    let turn = s.prompt("two");
    assert_eq!(turn.summary["text"], "two");
    assert_eq!(turn.one("data-recovery")["data"]["rung"], "resume");
    let env = s.call("agent/getEnvironment", &json!({}));
    assert_eq!(env["env"], json!({"TOKEN": "[redacted]"}));

    let params = update(json!({"BROKEN": SECRET}));
    let error = s.call_error("agent/updateEnvironment", &params);
    assert_eq!(error["data"]["kind"], "agentStart");
    s.agent_states(&["stopping", "disconnected", "starting", "disconnected"]);
    s.call("agent/updateEnvironment", &json!({"unset": ["BROKEN"]}));
    let turn = s.prompt("three");
    assert_eq!(turn.one("data-recovery")["data"]["memory"], "kept");
    s.agent_states(&["starting", "ready"]);
    let seen = fs::read_to_string(seen).unwrap();
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        ["first", SECRET, SECRET, SECRET]
    );
    let stderr = s.finish().stderr;
    assert!(stderr.contains("process of the agent started"), "{stderr}");
    for text in [error.to_string(), after.to_string(), stderr] {
        assert!(!text.contains(SECRET), "{text}");
    }
}
