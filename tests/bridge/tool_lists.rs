//! `--allow-tool` and `--disallow-tool`: they hold for every agent that acpipe starts.

use crate::acp::peer::Peer;
use crate::harness::claude::{args, processes};
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{ask, end};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World, chosen_options};
use serde_json::{Value, json};

/// Writes the script of an agent that asks about a command and an edit, and a configuration with two agents.
fn prepared(world: &World) -> (String, String) {
    let calls = ["execute", "edit"].map(|kind| {
        let tool = json!({"toolCallId": kind, "title": "do it", "kind": kind});
        ask(&tool, &[("y", "allow_once"), ("n", "reject_once")])
    });
    let [command, edit] = calls;
    let script = world.script(&json!({"session/prompt": [[command, edit, end("end_turn")]]}));
    let agent =
        |name: &str| format!("[agents.{name}]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n");
    let config = world.file("agents.toml", &(agent("one") + &agent("two")));
    (script, config)
}

/// Runs a turn; returns the options that are chosen for its command and its edit.
fn chosen(server: &mut Server, session: &str) -> Vec<String> {
    let before = chosen_options(&server.world.log()).len();
    let id = server.send_prompt(session, "go");
    server.turn(&id);
    let log = server.world.log();
    let chosen = chosen_options(&log).into_iter().skip(before);
    chosen.map(str::to_owned).collect()
}

#[test]
fn lists_hold_for_every_agent_of_a_server() {
    for (options, want) in [
        (
            ["--disallow-tool", "Bash", "--permissions", "approve"],
            ["n", "y"],
        ),
        (
            ["--allow-tool", "Bash", "--permissions", "deny"],
            ["y", "n"],
        ),
    ] {
        let world = World::new();
        let (script, config) = prepared(&world);
        let line = ["--config", &config, "--", FAKE_AGENT, &script];
        let line = [&options[..], &line].concat();
        let mut server = Server::in_world(world, &line);
        for (method, agent) in [
            ("agent/register", "registered"),
            ("agent/connect", "connected"),
        ] {
            let own = json!({"agent": agent, "command": FAKE_AGENT, "args": [script]});
            server.call(method, &own);
        }
        for agent in ["default", "one", "registered", "connected"] {
            let wish = json!({"sessionId": agent, "agent": agent});
            server.call("session/ensure", &wish);
            assert_eq!(chosen(&mut server, agent), want, "{options:?} {agent}");
            // Lists of the session are added to those of the command line.
            let lists = json!({"allowedTools": ["Read"], "disallowedTools": ["WebFetch"]});
            let session = format!("{agent}-listed");
            let wish = json!({"sessionId": session, "agent": agent, "options": lists});
            server.call("session/ensure", &wish);
            assert_eq!(chosen(&mut server, &session), want, "{options:?} {agent}");
        }
        // The session is handed over.
        let wish = json!({"sessionId": "default", "agent": "two"});
        server.call("session/ensure", &wish);
        assert_eq!(chosen(&mut server, "default"), want, "{options:?}");
        server.finish();
    }
}

#[test]
fn lists_hold_for_every_agent_of_an_editor() {
    let world = World::new();
    let (_, config) = prepared(&world);
    let line = [
        "acp",
        "--config",
        &config,
        "--permissions",
        "approve",
        "--disallow-tool",
        "Bash",
        "--agent",
        "one",
        "--agent",
        "two",
    ];
    let mut peer = Peer::start(world.acpipe(&line));
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    peer.result("initialize", &hello).unwrap();
    for agent in ["one", "two"] {
        let about = json!({"acpipe": {"agent": agent}});
        let place = json!({"cwd": world.dir, "mcpServers": [], "_meta": about});
        let session = peer.result("session/new", &place).unwrap();
        let text = json!([{"type": "text", "text": "go"}]);
        let prompt = json!({"sessionId": session["sessionId"], "prompt": text});
        peer.result("session/prompt", &prompt).unwrap();
    }
    assert_eq!(chosen_options(&world.log()), ["n", "y", "n", "y"]);
    peer.close().unwrap();
    peer.wait().unwrap();
}

/// The CLI of Claude Code enforces the list of refused tools.
#[test]
fn claude_code_gets_the_refused_tools_in_every_session() {
    let world = World::new();
    let script = world.script(&json!({}));
    let config = world.file("agents.toml", "[agents.other]\nextends = \"claude\"\n");
    let env = [("CLAUDE_CLI_PATH", FAKE_CLAUDE), ("FAKE_CLAUDE", &script)];
    let plain = ["--config", &config, "--agent", "claude"];
    let refusing = [&["--disallow-tool", "Bash"], &plain[..]].concat();
    let begun = |mut server: Server| {
        server.waive("agent/state");
        server.waive("session/state");
        server.initialize();
        server
    };
    let mut server = begun(Server::launch(world, &plain, Framing::Lines, &env));
    server.call("session/ensure", &json!({"sessionId": "stored"}));
    let id = server.send_steps("stored", &json!([{"say": "x"}, {"result": {}}]));
    server.turn(&id);
    let mut server = begun(server.restart_in(&refusing, &env));
    let listed = json!({"disallowedTools": ["Write"]});
    for (wish, want) in [
        (json!({"sessionId": "stored"}), "Bash"),
        (json!({"sessionId": "own"}), "Bash"),
        (
            json!({"sessionId": "listed", "options": listed}),
            "Write,Bash",
        ),
        (json!({"sessionId": "other", "agent": "other"}), "Bash"),
    ] {
        server.call("session/ensure", &wish);
        let started: Vec<Value> = processes(&server.world.log());
        let last = started.last().unwrap();
        assert_eq!(args(last, "--disallowedTools="), [want], "{wish}");
    }
    server.finish();
}
