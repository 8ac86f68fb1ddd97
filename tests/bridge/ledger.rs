//! `acpipe permissions show`: the decisions of stored sessions.

use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{ask, end, say, until_cancelled};
use crate::harness::{FAKE_AGENT, World};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

const OPTIONS: &[(&str, &str)] = &[("yes", "allow_once"), ("no", "reject_once")];

fn question(id: &str, command: &str) -> Value {
    let call = json!({"toolCallId": id, "title": command, "kind": "execute", "rawInput": {"command": command}});
    ask(&call, OPTIONS)
}

/// Creates a run of acpipe with a common store.
fn acpipe(world: &World, args: &[&str]) -> Run {
    Run::new(args).env(
        "ACPIPE_STATE_DIR",
        world.dir.join("state").to_str().unwrap(),
    )
}

fn run(world: &World, id: &str, policy: &str, steps: &[Value]) -> Run {
    let script = world.script(&json!({"session/prompt": [steps]}));
    let args = ["run", "--session", id, "--permissions", policy, "go"];
    acpipe(world, &args).agent(&[FAKE_AGENT, &script])
}

fn show(world: &World, args: &[&str]) -> Outcome {
    acpipe(world, &[&["permissions", "show"], args].concat()).go()
}

fn rows(outcome: &Outcome) -> Vec<Value> {
    let text = outcome.text();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn decisions_of_all_sessions_are_listed_in_their_order() {
    let world = World::new();
    for (id, policy, command) in [
        ("b", "approve", "ls"),
        ("a", "deny", "rm x"),
        ("b", "deny", "rm y"),
    ] {
        let steps = [question("t", command), say("done"), end("end_turn")];
        run(&world, id, policy, &steps).go().expect(0);
    }
    let all = rows(&show(&world, &["--json"]).expect(0));
    let told = |row: &Value| {
        let text = |field: &str| row[field].as_str().unwrap().to_owned();
        (
            text("sessionId"),
            text("title"),
            row["approved"] == true,
            text("by"),
            text("rule"),
        )
    };
    let want = [
        ("b", "ls", true, "approve"),
        ("a", "rm x", false, "deny"),
        ("b", "rm y", false, "deny"),
    ];
    let want = want.map(|(id, title, approved, policy)| {
        (
            id.to_owned(),
            title.to_owned(),
            approved,
            "policy".to_owned(),
            format!("permissions \"{policy}\""),
        )
    });
    assert_eq!(all.iter().map(told).collect::<Vec<_>>(), want);
    assert_eq!(all[0]["optionId"], "yes");
    let turns = all.iter().map(|row| row["turnId"].as_str().unwrap());
    let turns: std::collections::BTreeSet<&str> = turns.collect();
    assert_eq!(turns.len(), all.len(), "{turns:?}");

    let text = show(&world, &["a"]).expect(0).text();
    assert_eq!(text.lines().count(), 2, "{text}");
    for word in [
        "TIME",
        "  a  ",
        "execute",
        "refused",
        "policy",
        "permissions \"deny\"",
        "rm x",
    ] {
        assert!(text.contains(word), "{word:?} in {text}");
    }
    let refused = rows(&show(&world, &["--refused", "--json", "b"]).expect(0));
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0]["title"], "rm y");
    let elsewhere = show(&world, &["--cwd", "/"]).expect(0);
    assert_eq!(elsewhere.text(), "");
    assert!(
        elsewhere.stderr.contains("no matching decisions"),
        "{}",
        elsewhere.stderr
    );
    let unknown = show(&world, &["c"]).expect(1);
    assert!(
        unknown.stderr.contains("session \"c\" not found"),
        "{}",
        unknown.stderr
    );
    // The id is looked up in the sessions of the directory.
    assert_eq!(
        rows(&show(&world, &["a", "--cwd", ".", "--json"]).expect(0)).len(),
        1
    );
}

#[test]
fn decisions_of_a_locked_session_are_listed() {
    let world = World::new();
    let [wait, stop] = until_cancelled();
    let steps = [question("t", "ls"), say("begun"), wait, stop];
    let mut running = run(&world, "a", "approve", &steps).start();
    running.await_stdout("begun");
    let rows = rows(&show(&world, &["--json"]).expect(0));
    assert_eq!(rows.len(), 1);
    running.signal(Signal::INT);
    running.end().expect(130);
}

#[test]
fn unreadable_decision_is_reported() {
    let world = World::new();
    let steps = [question("t", "ls"), end("end_turn")];
    run(&world, "a", "approve", &steps).go().expect(0);
    let log = world.dir.join("state/sessions/a.jsonl");
    let mut text = fs::read_to_string(&log).unwrap();
    text += "{\"record\":\"decision\",\"at\":\"2026-01-01T00:00:00Z\",\"turnId\":\"x\",\"decision\":{}}\n";
    fs::write(&log, text).unwrap();
    let shown = show(&world, &["a"]).expect(0);
    assert_eq!(shown.text().lines().count(), 2);
    let told = "cannot read 1 decisions of session \"a\"";
    assert!(shown.stderr.contains(told), "{}", shown.stderr);
}

#[test]
fn log_readers_skip_decision_records() {
    let world = World::new();
    let steps = [question("t", "ls"), say("done"), end("end_turn")];
    run(&world, "a", "approve", &steps).go().expect(0);
    let log = fs::read_to_string(world.dir.join("state/sessions/a.jsonl")).unwrap();
    assert_eq!(log.matches(r#""record":"decision""#).count(), 1);
    assert!(log.contains("questionId"), "{log}");
    for args in [
        &["show", "a"][..],
        &["export", "a"],
        &["export", "a", "-o", "chunks"],
    ] {
        let read = acpipe(&world, &[&["sessions"], args].concat())
            .go()
            .expect(0);
        assert_eq!(read.stderr, "", "{args:?}");
        assert!(read.text().contains("done"), "{args:?}");
        assert!(!read.text().contains("questionId"), "{args:?}");
    }
    let copy = acpipe(&world, &["sessions", "export", "a", "-o", "log"])
        .go()
        .expect(0);
    assert_eq!(copy.text(), log);
}
