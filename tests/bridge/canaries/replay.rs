//! `acpipe replay`: a tape is repeated to a client with the same secrets, and to one with others.

use super::{assert_records_silent, assert_silent, canary, records};
use crate::harness::run::Run;
use crate::harness::steps::{end, say};
use crate::harness::{ACPIPE, FAKE_AGENT};
use serde_json::json;

#[test]
fn replay_repeats_and_reports_no_secret() {
    let (world, paths, options) = records();
    let script = world.script(&json!({"session/prompt": [[
        {"stderr": format!("the-marker {}", canary("flag"))}, say(&canary("flag")), end("end_turn"),
    ]]}));
    let run = |options: &[String], way: &str, agent: &[&str]| {
        let servers = json!({"mcpServers": {"m": {"command": "m", "env": {"A": canary(way)}}}});
        let servers = world.file(&format!("{way}.json"), &servers.to_string());
        let mut run = Run::new(&["run", "-o", "chunks"]).agent(agent);
        for option in options {
            run = run.arg(option);
        }
        let flag = format!("FLAG={}", canary(way));
        run.arg("-e")
            .arg(&flag)
            .arg("--mcp-config")
            .arg(&servers)
            .arg("go")
            .go()
            .expect(0)
    };
    run(&options, "flag", &[FAKE_AGENT, &script]);
    assert_records_silent(&paths, &[canary("flag")], "the-marker");
    for way in ["flag", "other"] {
        let (_world, again, options) = records();
        let replayed = run(&options, way, &[ACPIPE, "replay", "--at-once", &paths[1]]);
        let canaries = [canary("flag"), canary("other")];
        assert_silent("replay", &replayed.show(), &canaries);
        assert_records_silent(&again, &canaries, "the-marker");
    }
}

#[test]
fn replay_refuses_an_unexpected_message_without_its_content() {
    let (world, paths, options) = records();
    let script = world.script(&json!({"session/prompt": [[say("hi"), end("end_turn")]]}));
    let mut run = Run::new(&["run", "-e", "FLAG=the-marker"]).agent(&[FAKE_AGENT, &script]);
    for option in &options {
        run = run.arg(option);
    }
    run.arg("go").go().expect(0);
    let secret = canary("own");
    let line = |id: u32, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"env": {"A": secret}}, "token": secret});
    let input = format!(
        "{}\n{}\nnot json {secret}\n",
        line(1, "other/method"),
        line(2, "session/delete")
    );
    let replayed = Run::new(&["replay", "--at-once", &paths[1]])
        .stdin(input)
        .go();
    let shown = replayed.show();
    assert!(shown.contains("other/method"), "{shown}");
    assert_silent("replay", &shown, &[secret]);
}
