//! Runs that go on with a session.

use crate::harness::run::Run;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Sessions that several runs share, and their agent.
struct Home {
    world: World,
    script: String,
}

impl Home {
    /// With an agent that resumes what it is asked for, and answers so.
    fn new(prompts: &Value) -> Self {
        Self::with(&json!({
            "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
                "sessionCapabilities": {"resume": {}}}}}]],
            "session/resume": [[{"reply": {}}]],
            "session/prompt": prompts,
        }))
    }

    fn with(script: &Value) -> Self {
        let world = World::new();
        let script = world.script(script);
        Self { world, script }
    }

    fn answering() -> Self {
        Self::new(&json!([[say("answer"), end("end_turn")]]))
    }

    fn state(&self) -> PathBuf {
        self.world.dir.join("state")
    }

    fn log(&self, id: &str) -> PathBuf {
        self.state().join(format!("sessions/{id}.jsonl"))
    }

    /// acpipe with these arguments, and no agent.
    fn acpipe(&self, args: &[&str]) -> Run {
        let state = self.state();
        Run::new(args).env("ACPIPE_STATE_DIR", state.to_str().unwrap())
    }

    /// A run with the agent.
    fn run(&self, args: &[&str]) -> Run {
        let args = [&["run"], args].concat();
        self.acpipe(&args).agent(&[FAKE_AGENT, &self.script])
    }
}

#[test]
fn a_named_session_is_made_and_gone_on_with() {
    let home = Home::answering();
    let first = home.run(&["--session", "mine", "one"]).go().expect(0);
    assert_eq!(first.stderr, "");
    let second = home.run(&["--session", "mine", "two"]).go().expect(0);
    assert_eq!(second.text(), "answer\n");
    assert_eq!(calls(&second.log, "session/resume").len(), 1);
    assert!(second.stderr.contains("2 messages"), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    let quiet = home.run(&["-q", "--session", "mine", "three"]).go();
    assert_eq!(quiet.expect(0).stderr, "");
    let log = fs::read_to_string(home.log("mine")).unwrap();
    assert_eq!(log.matches(r#""record":"prompt""#).count(), 3);
}

#[test]
fn continue_takes_the_newest_session_of_directory_and_agent() {
    let home = Home::answering();
    let none = home.run(&["-c", "go"]).go().expect(1);
    assert!(none.stderr.contains("begin one"), "{}", none.stderr);
    assert!(none.log.is_empty(), "no agent is started");
    let none = home.run(&["-c", "-o", "json", "go"]).go().expect(1).json();
    assert_eq!(none["errors"][0]["kind"], "sessionNotFound");
    home.run(&["--session", "a", "one"]).go().expect(0);
    home.run(&["--session", "b", "one"]).go().expect(0);
    home.run(&["--session", "a", "two"]).go().expect(0);
    let dir = home.world.dir.to_str().unwrap();
    let elsewhere = ["--cwd", dir, "--session", "elsewhere", "one"];
    home.run(&elsewhere).go().expect(0);
    let summary = home.run(&["-c", "-o", "json", "go"]).go().expect(0).json();
    assert_eq!(summary["sessionId"], "a");
    let there = home.run(&["--continue", "--cwd", dir, "-o", "json", "go"]);
    assert_eq!(there.go().expect(0).json()["sessionId"], "elsewhere");
    let other = home.acpipe(&["run", "-c", "go"]).agent(&["another-agent"]);
    let other = other.go().expect(1);
    assert!(other.stderr.contains(r#""a", of "#), "{}", other.stderr);
}

#[test]
fn a_run_that_nobody_named_can_be_continued() {
    let home = Home::answering();
    let first = home.run(&["-o", "json", "one"]).go().expect(0).json();
    let second = home.run(&["-c", "-o", "json", "two"]).go().expect(0).json();
    assert_eq!(first["sessionId"], second["sessionId"]);
}

#[test]
fn a_run_that_did_not_begin_leaves_nothing() {
    let home = Home::answering();
    for args in [&["run", "go"][..], &["run", "--session", "a", "go"]] {
        let run = home.acpipe(args).agent(&["no-such-agent"]);
        run.go().expect(127);
        let kept = fs::read_dir(home.state().join("sessions")).unwrap();
        assert_eq!(kept.count(), 0, "{args:?}");
    }
}

#[test]
fn lost_memory_is_told() {
    let home = Home::with(&json!({"session/prompt": [[say("answer"), end("end_turn")]]}));
    home.run(&["--session", "mine", "one"]).go().expect(0);
    let second = home.run(&["--session", "mine", "two"]).go().expect(0);
    assert!(
        second.stderr.contains("remembers nothing") && second.stderr.contains("--reinject"),
        "{}",
        second.stderr
    );
    let again = ["--session", "mine", "--reinject", "100", "three"];
    let third = home.run(&again).go().expect(0);
    assert!(third.stderr.contains("characters"), "{}", third.stderr);
}

#[test]
fn what_does_not_go_together_is_a_mistake() {
    let home = Home::answering();
    let cases: &[&[&str]] = &[
        &["--session", "a", "--continue", "go"],
        &["--session", "a", "--persist", "never", "go"],
        &["--continue", "--persist", "never", "go"],
        &["--session", "", "go"],
    ];
    for args in cases {
        let outcome = home.run(args).go().expect(2);
        assert_eq!(outcome.text(), "", "{args:?}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
    }
    let outcome = home.run(&["-c", "go"]).env("PERSIST_MESSAGES", "false");
    outcome.go().expect(2);
}

#[test]
fn only_a_run_that_is_to_go_on_needs_the_store() {
    let home = Home::answering();
    // It cannot be made; and it is there, but nothing can be made in it.
    let file = home.world.file("file", "");
    let full = home.world.dir.join("full");
    fs::create_dir(&full).unwrap();
    std::os::unix::fs::symlink("/proc", full.join("sessions")).unwrap();
    for state in [file.as_str(), full.to_str().unwrap()] {
        let plain = home.run(&["--state-dir", state, "go"]).go().expect(0);
        assert_eq!(plain.text(), "answer\n");
        assert!(plain.stderr.contains("not kept"), "{}", plain.stderr);
        assert_eq!(plain.stderr.lines().count(), 1, "{}", plain.stderr);
        let quiet = home.run(&["-q", "--state-dir", state, "go"]).go();
        assert_eq!(quiet.expect(0).stderr, "");
        let named = ["--state-dir", state, "--session", "a", "go"];
        let named = home.run(&named).go().expect(74);
        assert!(named.stderr.contains(state), "{}", named.stderr);
        assert!(calls(&named.log, "session/prompt").is_empty());
    }
}
