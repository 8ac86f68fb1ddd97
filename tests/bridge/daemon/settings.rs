//! Each client of the daemon has the settings of its own command line and directory.

use super::Daemon;
use super::client::Client;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;

#[test]
fn clients_with_other_options_have_other_agents() {
    let world = World::new();
    let scripts = ["one", "two"]
        .map(|text| world.script(&json!({"session/prompt": [[say(text), end("end_turn")]]})));
    let daemon = Daemon::start_in(world, &[]);
    for (script, text) in scripts.iter().zip(["one", "two"]) {
        let mut client = daemon.client(&["--", FAKE_AGENT, script]);
        client.ensure(text);
        let summary = client.prompt(text);
        assert_eq!(summary["text"], text);
    }
    daemon.stop();
}

#[test]
fn agents_of_a_project_are_named_only_in_its_directory() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("own"), end("end_turn")]]}));
    let config = format!("[agents.helper]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\n");
    let file = world.file("one.toml", &config);
    let daemon = Daemon::start_in(world, &[]);
    let mut with = daemon.client(&["--config", &file]);
    with.call("agent/connect", &json!({"agent": "helper"}));
    let own = json!({"sessionId": "s", "agent": "helper"});
    with.call("session/ensure", &own);
    let names = |client: &mut Client| {
        let list = client.call("agent/list", &json!({}));
        let agents = list["agents"].as_array().unwrap().iter();
        agents
            .map(|agent| agent["agent"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&mut with), ["default", "helper"]);
    let mut without = daemon.client(&[]);
    assert_eq!(names(&mut without), ["default"]);
    let error = without.error("agent/connect", &json!({"agent": "helper"}));
    assert_eq!(error["data"]["field"], "agent");
    // A session of another window keeps its agent.
    without.call("session/attach", &json!({"sessionId": "s"}));
    let summary = without.prompt("s");
    assert_eq!(summary["text"], "own");
    daemon.stop();
}

#[test]
fn equal_command_lines_share_an_agent_process() {
    let (daemon, script) = Daemon::with_script(&json!({}));
    let options = ["--", FAKE_AGENT, &script];
    let mut first = daemon.client(&options);
    first.ensure("a");
    let mut second = daemon.client(&options);
    second.ensure("b");
    let is_agent =
        |(_, line): &(i32, String)| line.contains(&script) && !line.contains("supervise-agent");
    let alive = daemon.world.alive().into_iter();
    assert_eq!(alive.filter(is_agent).count(), 1);
    daemon.stop();
}

#[test]
fn lists_of_agents_that_are_requested_together_are_those_of_their_clients() {
    let (daemon, script) = Daemon::with_script(&json!({}));
    let mut clients: Vec<Client> = ["one", "two"]
        .iter()
        .map(|name| daemon.client(&["--env", &format!("NAME={name}"), "--", FAKE_AGENT, &script]))
        .collect();
    // Two lists are open at once: the second call is handled while the programs of the first one are searched for.
    let calls: Vec<u64> = clients
        .iter_mut()
        .map(|client| client.send("agent/list", &json!({"builtIn": true})))
        .collect();
    for (client, call) in clients.iter_mut().zip(calls) {
        let list = client.answer(call).unwrap();
        let agents = list["result"]["agents"].as_array().unwrap();
        let defaults = agents.iter().filter(|agent| agent["isDefault"] == true);
        let names: Vec<&str> = defaults
            .map(|agent| agent["agent"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["default"], "{list}");
    }
    daemon.stop();
}
