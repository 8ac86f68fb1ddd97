//! Clients that join the session of another client in the daemon.

use super::plain::{SESSION, first_choice};
use super::situations::Situation;
use super::{Shown, seen};
use crate::daemon::Daemon;
use serde_json::{Value, json};
use std::process::{Output, Stdio};

/// `attach` without a terminal, in the turn of another client, which answers the requests.
pub fn attach(situation: &Situation) -> Shown {
    let world = situation.world();
    let agent = situation.held().agent(&world);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let daemon = Daemon::start_in(world, &[]);
    let mut owner =
        daemon.client(&[&["--permissions", situation.permissions, "--"], &agent[..]].concat());
    let opened = owner.try_call("session/ensure", &json!({"sessionId": SESSION}));
    let turn = json!({"sessionId": SESSION, "message": "go"});
    let turn = (opened.unwrap()["error"].is_null()).then(|| owner.send("session/prompt", &turn));
    let mut command = daemon.command(&["attach", SESSION]);
    let attach = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(turn) = turn {
        let joined = |message: &Value| message["params"]["clients"].as_array().unwrap().len() == 2;
        while !joined(&owner.next("session/presence")) {}
        // The agent waits for this before it answers the prompt.
        owner.send("session/ensure", &json!({"sessionId": "release"}));
        let answer = |request: &Value| first_choice(request).unwrap_or_default();
        owner.answer_with(turn, answer).unwrap();
    }
    let shown = shown(&attach.wait_with_output().unwrap());
    drop(owner);
    daemon.stop();
    Shown::without_chunks(vec![shown])
}

fn shown(output: &Output) -> String {
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    seen::output(&stdout, &stderr, output.status.code())
}
