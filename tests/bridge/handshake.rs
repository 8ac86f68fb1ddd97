//! Handshakes with the client and with the agent, and errors of agents that cannot be used.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::say;
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::json;

#[test]
fn initialize_reports_the_server_and_its_default_agent() {
    let world = World::new();
    let mut s = Server::start(&[]);
    let it = s.call(
        "initialize",
        &json!({"protocolVersion": 1, "clientInfo": {"name": "t", "version": "1"}}),
    );
    assert_eq!(it["protocolVersion"], 1);
    assert_eq!(
        it["serverInfo"],
        json!({"name": "acpipe", "version": env!("CARGO_PKG_VERSION")})
    );
    assert_eq!(it["chunkProfile"], 7);
    assert_eq!(it["defaultAgent"]["source"], "demo");
    assert_eq!(it["defaultAgent"]["args"], json!(["demo-agent"]));
    drop(s);

    let mut s = Server::start(&["--", "some-agent", "--acp"]);
    let it = s.initialize();
    assert_eq!(
        it["defaultAgent"],
        json!({"name": "default", "command": "some-agent", "args": ["--acp"], "source": "commandLine"})
    );
    drop(s);

    let env = [("ACPIPE_AGENT", "'some agent' \"a b\" c")];
    let mut s = Server::launch(world, &[], Framing::Lines, &env);
    let it = s.initialize();
    assert_eq!(
        it["defaultAgent"],
        json!({"name": "default", "command": "some agent", "args": ["a b", "c"], "source": "environment"})
    );
}

#[test]
fn handshake_with_the_agent_claims_no_unserved_capability() {
    let mut s = Server::ready(&json!({}));
    s.call(
        "session/create",
        &json!({"sessionId": "b", "cwd": "/tmp", "mcpServers": [{"name": "x", "command": "y", "args": [], "env": []}]}),
    );
    let status = s.call("agent/status", &json!({}));
    assert_eq!(status["protocol"], "acp");
    assert_eq!(status["command"], FAKE_AGENT);
    assert_eq!(status["source"], "client");
    assert_eq!(
        status["agentInfo"],
        json!({"name": "fake-agent", "version": "1.0.0"})
    );
    let alive = s.world.alive();
    let agent = alive.iter().find(|(pid, _)| status["pid"] == *pid);
    let (_, command) = agent.expect("the process that the status names");
    assert!(command.starts_with(FAKE_AGENT), "{command}");
    let log = s.finish().log;
    let initialize = &calls(&log, "initialize")[0]["params"];
    assert_eq!(initialize["protocolVersion"], 1);
    assert_eq!(initialize["clientInfo"]["name"], "acpipe");
    let can = &initialize["clientCapabilities"];
    for (what, pointer) in [
        ("reads", "/fs/readTextFile"),
        ("writes", "/fs/writeTextFile"),
        ("terminals", "/terminal"),
    ] {
        let claimed = can.pointer(pointer).is_some_and(|c| *c != false);
        assert!(!claimed, "{what} are not served: {can}");
    }
    let opened = calls(&log, "session/new");
    let here = std::env::current_dir().unwrap();
    assert_eq!(opened[0]["params"], json!({"cwd": here, "mcpServers": []}));
    assert_eq!(opened[1]["params"]["cwd"], "/tmp");
    assert_eq!(opened[1]["params"]["mcpServers"][0]["name"], "x");
}

#[test]
fn auth_required_is_reported_from_connect_session_and_prompt() {
    let refusal = json!({"error": {"code": -32000, "message": "Authentication required"}});
    let hello = json!({"reply": {"protocolVersion": 1, "authMethods": [
        {"id": "login", "name": "Log in with a browser", "description": "opens one"},
        {"id": "key"},
        {"no": "id"},
    ]}});
    let methods = json!([
        {"id": "login", "name": "Log in with a browser", "description": "opens one", "type": "agent"},
        {"id": "key", "name": "key", "description": null, "type": "agent"},
    ]);

    let mut s = Server::initialized(&[]);
    let script = s.world.script(&json!({"initialize": [[refusal]]}));
    let error = s.call_error(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    assert_eq!(error["code"], -32000);
    assert_eq!(error["data"]["kind"], "authRequired");
    assert_eq!(error["data"]["authMethods"], json!([]));
    s.agent_states(&["starting", "stopping", "disconnected"]);

    let status = s.connect(&json!({
        "initialize": [[hello]],
        "session/new": [[refusal], [{"default": true}]],
        "session/prompt": [[say("so far"), refusal]],
    }));
    assert_eq!(status["authMethods"], methods);
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["code"], -32000);
    assert_eq!(error["data"]["kind"], "authRequired");
    assert_eq!(error["data"]["authMethods"], methods);
    assert_eq!(error["data"]["agentMessage"], "Authentication required");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("auth required") && message.contains("Log in with a browser"),
        "{message}"
    );
    // A refused session does not exist: it can be created once the user has signed in.
    s.ensure("default");
    let turn = s.prompt("x");
    assert_eq!(turn.summary["errors"][0]["kind"], "authRequired");
    assert_eq!(turn.summary["errors"][0]["data"]["authMethods"], methods);
    assert_eq!(turn.summary["text"], "so far");
    assert_eq!(turn.last()["type"], "error");
}

#[test]
fn start_failure_is_explained() {
    let world = World::new();
    let plain = world.file("plain", "#!/bin/sh\n");
    let orphan = world.executable("orphan", "#!/no/such/interpreter\n");
    let garbage = world.executable("garbage", "\u{7f}ELFnot really");
    let dir = world.dir.to_str().unwrap().to_owned();
    let mut s = Server::launch(world, &[], Framing::Lines, &[]);
    s.initialize();
    // Params, kind and code of the error, and a part of its message.
    let cases = json!([
        [{"command": "no-such-agent"}, "agentNotFound", -32010, "PATH"],
        [{"command": "/no/such/agent"}, "agentNotFound", -32010, "/no/such/agent"],
        [{"command": "./no-such-agent", "cwd": dir}, "agentNotFound", -32010, "./no-such-agent"],
        [{"command": "sh", "env": {"PATH": "/nowhere"}}, "agentNotFound", -32010, "PATH"],
        [{"command": "a\u{0}b"}, "agentNotFound", -32010, "PATH"],
        [{"command": plain}, "agentStart", -32011, "not executable"],
        [{"command": orphan}, "agentStart", -32011, "interpreter"],
        [{"command": "./orphan", "cwd": dir}, "agentStart", -32011, "interpreter"],
        [{"command": garbage}, "agentStart", -32011, "cannot start"],
        [{"command": dir}, "agentStart", -32011, "cannot start"],
        [{"command": FAKE_AGENT, "cwd": "/no/such/dir"}, "invalidParams", -32602, "cwd"],
        [{"command": FAKE_AGENT, "cwd": plain}, "invalidParams", -32602, "not a directory"],
    ]);
    for case in cases.as_array().unwrap() {
        let error = s.call_error("agent/connect", &case[0]);
        let seen = [&error["data"]["kind"], &error["code"]];
        assert_eq!(seen, [&case[1], &case[2]], "{case}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains(case[3].as_str().unwrap()),
            "{case}: {message}"
        );
        s.agent_states(&["starting"]);
        let state = json!({"agent": "default", "state": "disconnected", "reason": message, "waitingFor": null});
        assert_eq!(s.notification("agent/state"), state, "{case}");
    }
    s.connect(&json!({}));
}

#[test]
fn exit_before_the_handshake_reports_the_cause() {
    let mut s = Server::initialized(&[]);
    let cases = [
        (
            json!({"start": [{"stderr": "first"}, {"stderr": "fatal: no config"}, {"exit": 3}]}),
            json!(3),
        ),
        (
            json!({"initialize": [[{"stderr": "fatal: no config"}, {"exit": 0}]]}),
            json!(0),
        ),
    ];
    for (script, code) in cases {
        let script = s.world.script(&script);
        let error = s.call_error(
            "agent/connect",
            &json!({"command": FAKE_AGENT, "args": [script]}),
        );
        assert_eq!(error["code"], -32011);
        assert_eq!(error["data"]["kind"], "agentStart");
        assert_eq!(error["data"]["exitCode"], code);
        let stderr = error["data"]["stderr"].as_str().unwrap();
        assert!(stderr.ends_with("fatal: no config\n"), "{stderr}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("fatal: no config"), "{message}");
        s.agent_states(&["starting"]);
        let state = s.notification("agent/state");
        assert_eq!(state["state"], "disconnected");
        assert_eq!(state["reason"], message);
    }
    let error = s.call_error(
        "agent/connect",
        &json!({"command": "sh", "args": ["-c", "kill -9 $$"]}),
    );
    assert_eq!(error["data"]["kind"], "agentStart");
    assert_eq!(error["data"]["signal"], 9);
    s.agent_states(&["starting"]);
    assert_eq!(s.notification("agent/state")["state"], "disconnected");
}

#[test]
fn calls_out_of_order_are_refused() {
    let mut s = Server::start(&[]);
    let ready = [
        ("agent/connect", json!({})),
        ("agent/status", json!({})),
        ("agent/disconnect", json!({})),
        ("session/ensure", json!({})),
        ("session/create", json!({"sessionId": "x"})),
        ("session/prompt", json!({"message": "x"})),
        ("session/cancel", json!({})),
        ("session/subscribe", json!({"chunks": true})),
    ];
    for (method, params) in &ready {
        let error = s.call_error(method, params);
        assert_eq!(error["code"], -32021, "{method}");
        assert_eq!(error["data"]["kind"], "outOfOrder", "{method}");
        assert!(error["message"].as_str().unwrap().contains("initialize"));
    }
    for version in [json!(0), json!(2), json!(99)] {
        let error = s.call_error("initialize", &json!({"protocolVersion": version}));
        assert_eq!(error["code"], -32602, "{version}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("protocolVersion"), "{message}");
    }
    s.initialize();

    // The demo agent never starts by accident.
    let error = s.call_error("session/ensure", &json!({}));
    assert_eq!(error["data"]["kind"], "outOfOrder");
    assert!(error["message"].as_str().unwrap().contains("agent/connect"));
    assert_eq!(
        s.call_error("session/prompt", &json!({"message": "x"}))["data"]["kind"],
        "sessionNotFound"
    );
    assert_eq!(s.call("agent/status", &json!({}))["state"], "disconnected");
    assert_eq!(s.call("agent/disconnect", &json!({})), json!({}));
    assert_eq!(
        s.call("session/cancel", &json!({})),
        json!({"cancelled": false})
    );

    let status = s.connect(&json!({}));
    let same = json!({"command": status["command"], "args": status["args"]});
    assert_eq!(s.call("agent/connect", &same)["pid"], status["pid"]);
    let error = s.call_error("agent/connect", &json!({"command": "other"}));
    assert_eq!(error["data"]["kind"], "outOfOrder");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("agent/disconnect"), "{message}");
}

#[test]
fn agent_gets_the_requested_environment_and_directory() {
    let world = World::new();
    let seen = world.dir.join("seen");
    let dir = world.dir.to_str().unwrap().to_owned();
    world.executable(
        "agent",
        &format!("#!/bin/sh\npwd > seen\necho \"$KEPT,$SET,${{GONE-unset}},$1\" >> seen\nexec '{FAKE_AGENT}'\n"),
    );
    let env = [("KEPT", "kept"), ("GONE", "was here")];
    let mut s = Server::launch(world, &["--env", "SET=by acpipe"], Framing::Lines, &env);
    s.initialize();
    // The path is relative to the agent's working directory, and no shell expands the arguments.
    s.call(
        "agent/connect",
        &json!({"command": "./agent", "args": ["$HOME; x"], "cwd": dir, "env": {"SET": "by the client", "GONE": null}}),
    );
    s.agent_states(&["starting", "ready"]);
    assert_eq!(s.ensure("default")["cwd"], dir);
    let seen = std::fs::read_to_string(seen).unwrap();
    assert_eq!(seen, format!("{dir}\nkept,by the client,unset,$HOME; x\n"));
}
