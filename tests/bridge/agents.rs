//! Several agents in one acpipe, each under its own name: each has its own processes, restarts, environment
//! and sessions, and a session can be handed over to another agent.

use crate::harness::server::Server;
use crate::harness::steps::{end, resumable, say};
use crate::harness::{FAKE_AGENT, World, await_blocked_writer, calls, counted};
use serde_json::{Value, json};

/// Script of an agent that answers every prompt with its name and resumes its sessions.
fn named(name: &str) -> Value {
    resumable(json!({
        "session/new": [[{"reply": {"sessionId": format!("{name}-session")}}]],
        "session/prompt": [[say(name), end("end_turn")]],
    }))
}

/// Connects a fake agent under a name, with its own log, and claims the notifications of its states.
fn connect(server: &mut Server, name: &str, script: &Value) -> Value {
    let file = server.world.dir.join(format!("{name}.json"));
    std::fs::write(&file, script.to_string()).unwrap();
    let log = server.world.dir.join(format!("{name}.log"));
    let status = server.call(
        "agent/connect",
        &json!({"agent": name, "command": FAKE_AGENT, "args": [file], "env": {"FAKE_AGENT_LOG": log}}),
    );
    assert_eq!(
        (&status["agent"], &status["state"]),
        (&json!(name), &json!("ready"))
    );
    states(server, name, &["starting", "ready"]);
    status
}

/// Claims the next `agent/state` notifications, which must be these of agent `name`.
fn states(server: &mut Server, name: &str, states: &[&str]) {
    for state in states {
        let news = server.notification("agent/state");
        assert_eq!(
            (&news["agent"], &news["state"]),
            (&json!(name), &json!(state))
        );
    }
}

/// Returns the lines that an agent received.
fn log(world: &World, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(world.dir.join(format!("{name}.log"))).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn ensure(server: &mut Server, session: &str, agent: &str) -> Value {
    server.call(
        "session/ensure",
        &json!({"sessionId": session, "agent": agent}),
    )
}

fn prompt(server: &mut Server, session: &str, text: &str) -> Value {
    let id = server.send_prompt(session, text);
    server.turn(&id).summary
}

#[test]
fn sessions_of_two_agents_run_and_end_independently() {
    let mut server = Server::initialized(&[]);
    let held =
        json!({"session/prompt": [[say("alpha"), {"wait": "session/cancel"}, end("cancelled")]]});
    connect(&mut server, "alpha", &held);
    connect(&mut server, "beta", &named("beta"));
    let a = ensure(&mut server, "a", "alpha");
    let b = ensure(&mut server, "b", "beta");
    assert_eq!(
        (&a["agentName"], &b["agentName"]),
        (&json!("alpha"), &json!("beta"))
    );
    let held = server.send_prompt("a", "one");
    server.await_chunk("a", |chunk| chunk["type"] == "text-delta");
    assert_eq!(prompt(&mut server, "b", "two")["text"], "beta");
    let listed = server.call("agent/list", &json!({}));
    let listed = listed["agents"].as_array().unwrap().iter();
    let listed = listed.map(|a| json!([a["agent"], a["state"], a["sessions"]]));
    let want = json!([
        ["default", "disconnected", 0],
        ["alpha", "ready", 1],
        ["beta", "ready", 1]
    ]);
    assert_eq!(listed.collect::<Value>(), want);
    // Neither a change of the environment of `beta` nor its end disturbs `alpha` and its sessions.
    let set = json!({"agent": "beta", "set": {"ONLY_BETA": "1"}});
    let updated = server.call("agent/updateEnvironment", &set);
    assert_eq!(updated["sessions"][0]["recovery"]["rung"], "resume");
    let again = ["stopping", "disconnected", "starting", "ready"];
    states(&mut server, "beta", &again);
    for (name, is_set) in [("alpha", false), ("beta", true)] {
        let env = server.call("agent/getEnvironment", &json!({"agent": name}));
        assert_eq!(env["env"]["ONLY_BETA"] == "1", is_set, "{name}");
    }
    server.call("agent/disconnect", &json!({"agent": "beta"}));
    states(&mut server, "beta", &["stopping", "disconnected"]);
    server.call("session/cancel", &json!({"sessionId": "a"}));
    assert_eq!(server.turn(&held).summary["stopReason"], "cancelled");
    server.finish();
}

/// The flood ends only on a cancel, after more updates than acpipe can forward during the other turns.
#[test]
fn turns_end_while_a_second_agent_floods_and_a_third_crashes() {
    const UPDATES: u64 = 500_000;
    let mut server = Server::initialized(&[]);
    let flood = json!({"session/prompt": [[
        {"repeat": {"times": UPDATES, "until": "session/cancel", "steps": [say("{i},")]}},
        end("cancelled"),
    ]]});
    let mut crashing = named("crashing");
    crashing["session/prompt"] = json!([[say("before"), {"exit": 1}]]);
    connect(&mut server, "flooding", &flood);
    connect(&mut server, "crashing", &crashing);
    // Without a script the agent repeats the prompt.
    connect(&mut server, "quiet", &json!({}));
    for name in ["flooding", "crashing", "quiet"] {
        ensure(&mut server, name, name);
    }
    let flood = server.send_prompt("flooding", "go");
    server.await_chunk("flooding", |chunk| chunk["type"] == "text-delta");

    for round in 0..3 {
        let crash = server.send_prompt("crashing", "go");
        let texts: Vec<String> = (0..5).map(|n| format!("turn {n} of {round}")).collect();
        // All but the first wait in acpipe's queue, so the next turn does not depend on the client's speed.
        let prompt = |text: &String| server.send_prompt("quiet", text);
        let turns: Vec<_> = texts.iter().map(prompt).collect();
        for (turn, text) in turns.iter().zip(&texts) {
            let turn = server.turn(turn);
            assert_eq!(turn.summary["stopReason"], "end_turn");
            assert_eq!(&turn.text(), text);
        }
        let crash = server.turn(&crash);
        assert_eq!(crash.text(), "before");
        assert_eq!(crash.summary["errors"][0]["kind"], "agentExited");
        if round > 0 {
            states(&mut server, "crashing", &["starting", "ready"]);
        }
        states(&mut server, "crashing", &["disconnected"]);
    }
    assert!(
        server.answer_within(&flood, 0).is_none(),
        "the flood ended before the turns beside it"
    );

    server.call("session/cancel", &json!({"sessionId": "flooding"}));
    let flood = server.turn(&flood);
    assert_eq!(flood.summary["stopReason"], "cancelled");
    let text = flood.text();
    let updates = text.matches(',').count() as u64;
    assert!(text == counted(updates), "updates are missing");
    for name in ["flooding", "quiet"] {
        assert_eq!(calls(&log(&server.world, name), "initialize").len(), 1);
    }
    server.finish();
}

/// Little of a flood waits in acpipe and in the kernel, so a client that reads slowly soon gets the rest.
#[test]
fn a_flood_that_waits_for_the_client_is_not_long_ahead_of_another_agent() {
    const AHEAD: usize = 128 * 1024;
    let mut server = Server::initialized(&[]);
    let flood = json!({"session/prompt": [[
        {"repeat": {"times": 500_000, "until": "session/cancel", "steps": [say("{i},")]}},
        end("cancelled"),
    ]]});
    let said = server.world.dir.join("said");
    let quiet = json!({"session/prompt": [[
        say("quiet"),
        {"once": {"mark": said, "steps": []}},
        end("end_turn"),
    ]]});
    let flooding = connect(&mut server, "flooding", &flood);
    connect(&mut server, "quiet", &quiet);
    for name in ["flooding", "quiet"] {
        ensure(&mut server, name, name);
    }
    server.set_reading(false);
    let flood = server.send_prompt("flooding", "go");
    await_blocked_writer(i32::try_from(flooding["pid"].as_i64().unwrap()).unwrap());
    let quiet = server.send_prompt("quiet", "go");
    while !said.exists() {
        std::thread::yield_now();
    }
    server.set_reading(true);
    server.await_chunk("quiet", |chunk| chunk["type"] == "text-delta");
    let ahead = server.numbered("flooding").into_values();
    let ahead: usize = ahead.map(|chunk| chunk.to_string().len()).sum();
    assert!(ahead < AHEAD, "{ahead} bytes of the flood were ahead");

    server.call("session/cancel", &json!({"sessionId": "flooding"}));
    assert_eq!(server.turn(&quiet).text(), "quiet");
    assert_eq!(server.result(&flood)["stopReason"], "cancelled");
    server.take_chunks("flooding");
    server.finish();
}

#[test]
fn session_moves_to_another_agent_with_its_history_and_back() {
    let mut server = Server::initialized(&[]);
    connect(&mut server, "alpha", &named("alpha"));
    connect(&mut server, "beta", &named("beta"));
    ensure(&mut server, "work", "alpha");
    assert_eq!(
        prompt(&mut server, "work", "the first question")["text"],
        "alpha"
    );

    let moved = ensure(&mut server, "work", "beta");
    let receipt = &moved["recovery"];
    assert_eq!(moved["agentName"], "beta");
    assert_eq!(receipt["rung"], "new");
    assert_eq!(receipt["memory"], "lost");
    assert_eq!(receipt["handedOverFrom"], "alpha");
    assert!(receipt["reinjected"].as_u64().unwrap() > 0, "{receipt}");
    assert_eq!(
        prompt(&mut server, "work", "the second question")["text"],
        "beta"
    );
    let log_of_beta = log(&server.world, "beta");
    let given = calls(&log_of_beta, "session/prompt")[0]["params"]["prompt"].to_string();
    for said in ["the first question", "alpha", "the second question"] {
        assert!(given.contains(said), "{said}: {given}");
    }

    let back = ensure(&mut server, "work", "alpha");
    let receipt = &back["recovery"];
    assert_eq!(
        (&receipt["rung"], &receipt["memory"]),
        (&json!("resume"), &json!("kept"))
    );
    assert_eq!(receipt["missed"], 2);
    assert_eq!(receipt["handedOverFrom"], "beta");
    assert_eq!(back["agentSessionId"], "alpha-session");
    assert_eq!(
        prompt(&mut server, "work", "the third question")["text"],
        "alpha"
    );
    let log_of_alpha = log(&server.world, "alpha");
    let given = calls(&log_of_alpha, "session/prompt")[1]["params"]["prompt"].to_string();
    assert!(given.contains("the second question"), "{given}");
    assert!(!given.contains("the first question"), "{given}");
    let history = server.call("message/list", &json!({"sessionId": "work"}));
    assert_eq!(history["total"], 6);
    server.finish();
}

#[test]
fn stored_session_is_restored_by_the_agent_of_its_name() {
    let mut server = Server::initialized(&[]);
    connect(&mut server, "alpha", &named("alpha"));
    ensure(&mut server, "work", "alpha");
    prompt(&mut server, "work", "one");
    let mut server = server.restart(&[]);
    server.initialize();
    // An agent of the same name has the same sessions, even with another command line.
    let file = server.world.dir.join("other.json");
    std::fs::write(&file, named("alpha").to_string()).unwrap();
    let wrapped =
        json!({"agent": "alpha", "command": "env", "args": ["OTHER=1", FAKE_AGENT, file]});
    server.call("agent/connect", &wrapped);
    states(&mut server, "alpha", &["starting", "ready"]);
    let session = server.call("session/ensure", &json!({"sessionId": "work"}));
    assert_eq!(session["agentName"], "alpha");
    assert_eq!(session["recovery"]["rung"], "resume");
    // Without `agent/connect` the stored command line starts the agent.
    let mut server = server.restart(&[]);
    server.initialize();
    let session = server.call("session/ensure", &json!({"sessionId": "work"}));
    assert_eq!(session["recovery"]["rung"], "resume");
    states(&mut server, "alpha", &["starting", "ready"]);
    server.finish();
}

#[test]
fn invalid_agent_names_are_refused() {
    let mut server = Server::initialized(&[]);
    for (method, params) in [
        ("agent/status", json!({"agent": "nobody"})),
        ("agent/connect", json!({"agent": "nobody"})),
        (
            "session/ensure",
            json!({"sessionId": "s", "agent": "nobody"}),
        ),
    ] {
        let error = server.call_error(method, &params);
        let message = error["message"].as_str().unwrap();
        assert_eq!(error["data"]["field"], "agent", "{method}");
        assert!(
            message.contains("nobody") && message.contains("agent/connect"),
            "{message}"
        );
    }
    for name in ["", "-x", "a b", "ä", &"x".repeat(65)] {
        let params = json!({"agent": name, "command": FAKE_AGENT});
        let error = server.call_error("agent/connect", &params);
        assert_eq!(error["data"]["field"], "agent", "{name}");
    }
    assert_eq!(
        server.call("agent/list", &json!({}))["agents"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    server.finish();
}
