//! MCP servers of sessions: validation, variables, merging with those of a file, and errors for unsupported
//! ones.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::say;
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};

const SECRET: &str = "5eCr3t-t0k3n";

/// Runs of `initialize` for an agent with these MCP capabilities.
fn reaches(mcp: &Value) -> Value {
    json!([[{"reply": {"protocolVersion": 1, "agentCapabilities": {"loadSession": true, "mcpCapabilities": mcp,
        "sessionCapabilities": {"resume": {}}}}}]])
}

/// Returns the servers that the agent received with each call of a method.
fn given(log: &[Value], method: &str) -> Vec<Value> {
    let calls = calls(log, method);
    let servers = calls
        .iter()
        .map(|call| call["params"]["mcpServers"].clone());
    servers.collect()
}

#[test]
fn unsupported_mcp_transport_is_an_error_before_sending() {
    let mut s = Server::initialized(&[]);
    s.connect(&json!({"initialize": reaches(&json!({"sse": true}))}));
    let http = json!([{"name": "docs", "type": "http", "url": format!("http://h/?k={SECRET}")}]);
    let error = s.call_error("session/ensure", &json!({"mcpServers": http}));
    assert_eq!(error["data"]["kind"], "invalidParams", "{error}");
    assert_eq!(error["data"]["server"], "docs");
    let message = error["message"].as_str().unwrap();
    for word in ["\"docs\"", "over http", "stdio and sse", FAKE_AGENT] {
        assert!(message.contains(word), "{message}");
    }
    assert!(!error.to_string().contains(SECRET), "{error}");
    // A refused call does not affect the next one.
    let sse = json!([{"name": "docs", "type": "sse", "url": "http://h"}]);
    s.call("session/ensure", &json!({"mcpServers": sse}));
    let want = json!([{"name": "docs", "type": "sse", "url": "http://h", "headers": []}]);
    assert_eq!(given(&s.finish().log, "session/new"), [want]);
}

#[test]
fn unsupported_mcp_transport_fails_a_queued_session_call() {
    let mut s = Server::initialized(&[]);
    let script = s.world.script(&json!({"initialize": reaches(&json!({}))}));
    let connect = s.send(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    let http = json!([{"name": "docs", "type": "http", "url": "http://h"}]);
    let error = s.call_error("session/ensure", &json!({"mcpServers": http}));
    assert_eq!(error["data"]["field"], "mcpServers", "{error}");
    s.result(&connect);
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    assert_eq!(given(&s.finish().log, "session/new"), [json!([])]);
}

#[test]
fn mcp_variables_use_the_agents_environment() {
    let world = World::new();
    let args = ["--log-level", "trace"];
    let own = [("OF_ACPIPE", "inherited-value"), ("OVERRIDDEN", "not-this")];
    let mut s = Server::launch(world, &args, Framing::Lines, &own);
    s.initialize();
    let script = s.world.script(&json!({
        "initialize": reaches(&json!({"http": true})),
        "session/resume": [[{"reply": {}}]],
    }));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script], "env": {"OVERRIDDEN": "this", "TOKEN": SECRET}}),
    );
    s.agent_states(&["starting", "ready"]);
    let servers = json!([
        {"name": "a", "command": "${OVERRIDDEN}", "args": ["$${X}", "${NONE:-words}"], "env": {"K": "${OF_ACPIPE}"}},
        {"name": "b", "type": "http", "url": "http://h", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    ]);
    s.call("session/ensure", &json!({"mcpServers": servers}));
    // Changes of the environment apply on the next resume.
    s.call(
        "agent/updateEnvironment",
        &json!({"set": {"TOKEN": "another-token"}}),
    );
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let unset = json!([{"name": "c", "command": "c", "args": ["--key", "${MISSING}"]}]);
    let error = s.call_error(
        "session/create",
        &json!({"sessionId": "x", "mcpServers": unset}),
    );
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("\"c\": args[1]: the variable MISSING is not set"),
        "{message}"
    );
    let end = s.finish();
    let want = |token: &str| {
        json!([
            {"name": "a", "command": "this", "args": ["${X}", "words"], "env": [{"name": "K", "value": "inherited-value"}]},
            {"name": "b", "type": "http", "url": "http://h",
                "headers": [{"name": "Authorization", "value": format!("Bearer {token}")}]},
        ])
    };
    assert_eq!(given(&end.log, "session/new"), [want(SECRET)]);
    assert_eq!(given(&end.log, "session/resume"), [want("another-token")]);
    assert!(end.stderr.contains("[hidden]"), "{}", end.stderr);
    for secret in [SECRET, "another-token", "inherited-value"] {
        assert!(!end.stderr.contains(secret), "{}", end.stderr);
    }
}

/// Writes a file of servers; clients use one of their names, too.
fn config(world: &World) -> String {
    let text = json!({"mcpServers": {
        "ours": {"command": "from-the-file", "env": {"TOKEN": SECRET}},
        "shared": {"command": "from-the-file"},
    }, "more": "of others"});
    world.file("mcp.json", &text.to_string())
}

#[test]
fn mcp_file_servers_yield_to_those_of_the_session() {
    let world = World::new();
    let file = config(&world);
    let args = ["--mcp-config", &file, "--log-level", "trace"];
    let mut s = Server::launch(world, &args, Framing::Lines, &[]);
    s.initialize();
    s.connect(&json!({"initialize": reaches(&json!({})), "session/resume": [[{"reply": {}}]]}));
    s.ensure("default");
    let own = json!([{"name": "shared", "command": "own"}]);
    s.call(
        "session/create",
        &json!({"sessionId": "b", "mcpServers": own}),
    );
    s.call("agent/updateEnvironment", &json!({"set": {"X": "another"}}));
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let end = s.finish();
    let ours = json!({"name": "ours", "command": "from-the-file", "args": [], "env": [{"name": "TOKEN", "value": SECRET}]});
    let shared =
        |command: &str| json!({"name": "shared", "command": command, "args": [], "env": []});
    let want = [
        json!([ours, shared("from-the-file")]),
        json!([shared("own"), ours]),
    ];
    assert_eq!(given(&end.log, "session/new"), want);
    let mut resumed = given(&end.log, "session/resume");
    resumed.sort_by_key(|servers| servers[0]["name"].to_string());
    assert_eq!(resumed, want);
    assert!(end.stderr.contains("[hidden]"), "{}", end.stderr);
    assert!(!end.stderr.contains(SECRET), "{}", end.stderr);
}

#[test]
fn run_reports_errors_of_its_mcp_file() {
    let world = World::new();
    let file = config(&world);
    let script = world
        .script(&json!({"session/prompt": [[say("done"), {"reply": {"stopReason": "end_turn"}}]]}));
    let run = |file: &str| {
        let args = [
            "run",
            "--mcp-config",
            file,
            "hello",
            "--",
            FAKE_AGENT,
            &script,
        ];
        world.acpipe(&args).output().unwrap()
    };
    assert_eq!(run(&file).status.code(), Some(0));
    let log = world.log();
    assert_eq!(given(&log, "session/new")[0][0]["name"], "ours");
    let marked = world.file("marked.json", "\u{feff}{\"mcpServers\": {}}");
    assert_eq!(run(&marked).status.code(), Some(0));
    let wrong = world.file("wrong.json", r#"{"mcpServers": {"a": {"command": 7}}}"#);
    for (file, why) in [
        (wrong.as_str(), "mcpServers.a.command: must be a string"),
        ("/nowhere/mcp.json", "/nowhere/mcp.json: No such file"),
        ("/dev/zero", "/dev/zero: the file is larger than 1 MiB"),
    ] {
        let out = run(file);
        let stderr = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
    }
}
