//! Clients of the daemon that join a session or a turn of others: what is open is judged by their permissions, too, and
//! each learns that the agent may not ask.

use super::client::Client;
use super::{Daemon, asking};
use crate::harness::claude::answers;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World, chosen_options};
use serde_json::{Value, json};

const MAY_NOT_ASK: &str = "The agent may run tools without asking";

/// Allows what acpipe asks about, as another client that approves.
fn approve(client: &mut Client, request: &Value) {
    let options = request["params"]["options"].as_array().unwrap();
    let allows = options.iter().find(|option| option["kind"] == "allow_once");
    let chosen = json!({"outcome": "selected", "optionId": allows.unwrap()["optionId"]});
    client.respond(request, &json!({"outcome": chosen}));
}

/// Returns how many notices of this title a client has received.
fn notices(client: &Client, session: &str, title: &str) -> usize {
    let chunks = client.chunks.get(session).into_iter().flatten();
    chunks
        .filter(|(_, _, chunk)| chunk["data"]["title"] == title)
        .count()
}

#[test]
fn open_request_of_claude_is_judged_by_the_permissions_of_a_client_that_steers() {
    let world = World::new();
    let fake = format!("FAKE_CLAUDE={}", world.script(&json!({})));
    let daemon = Daemon::start_in(world, &[]);
    let agent = ["--protocol", "claude", "-e", &fake, "--", FAKE_CLAUDE];
    let client =
        |mode: &'static str| daemon.client(&[&["--permissions", mode], &agent[..]].concat());
    let mut owner = client("ask");
    owner.ensure("s");
    let call = json!([{"ask": {"tool_name": "Bash", "tool_use_id": "t1", "input": {"command": "rm -rf x"}}}]);
    let prompt = json!({"sessionId": "s", "message": call.to_string()});
    let turn = owner.send("session/prompt", &prompt);
    let request = owner.next("permission/request");
    let mut strict = client("deny");
    strict.call(
        "session/steer",
        &json!({"sessionId": "s", "message": "also this"}),
    );
    owner.next("$/cancelRequest");
    approve(&mut owner, &request);
    owner.answer(turn).unwrap();
    let answers = answers(&daemon.world.log());
    assert_eq!(answers[0]["response"]["behavior"], "deny", "{answers:?}");
    daemon.stop();
}

/// A client that only prompts in a live session learns it from the turn, once.
#[test]
fn each_client_that_restricts_learns_that_the_agent_may_not_ask() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("done"), end("end_turn")]]}));
    let agent =
        format!("[agents.own]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\nasks = \"never\"\n");
    let config = world.file("agents.toml", &agent);
    let daemon = Daemon::start_in(world, &["--config", &config]);
    let client = |mode: &'static str| daemon.client(&["--config", &config, "--permissions", mode]);
    let mut opener = client("approve");
    opener.call("session/ensure", &json!({"sessionId": "s", "agent": "own"}));
    let mut former: Vec<Client> = Vec::new();
    for n in 0..3 {
        let mut strict = client("deny");
        for _ in 0..2 {
            strict.prompt("s");
            opener.prompt("s");
        }
        strict.call("session/clients", &json!({"sessionId": "s"}));
        assert_eq!(notices(&strict, "s", MAY_NOT_ASK), 1, "client {n}");
        former.push(strict);
    }
    daemon.stop();
}

/// The list of allowed tools of a client that has left does not count once the session is opened again.
#[test]
fn list_of_a_client_that_left_is_dropped_when_a_prompt_opens_the_session_again() {
    let (daemon, script) = Daemon::with_script(&asking());
    let client =
        |mode: &'static str| daemon.client(&["--permissions", mode, "--", FAKE_AGENT, &script]);
    let mut opener = client("deny");
    let listing = json!({"sessionId": "s", "options": {"allowedTools": ["Edit"]}});
    opener.call("agent/connect", &json!({}));
    opener.call("session/ensure", &listing);
    let mut weak = client("approve");
    weak.call("session/attach", &json!({"sessionId": "s"}));
    opener.prompt("s");
    opener.call("agent/disconnect", &json!({}));
    drop(opener);
    let others = |message: &Value| message["params"]["clients"].as_array().unwrap().len() - 1;
    while others(&weak.next("session/presence")) > 0 {}
    client("deny").prompt("s");
    weak.prompt("s");
    assert_eq!(chosen_options(&daemon.world.log()), ["yes", "no", "no"]);
    daemon.stop();
}
