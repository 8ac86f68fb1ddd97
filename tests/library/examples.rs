//! The programs in `examples/`, with the demo agent.

use crate::harness::{ACPIPE, MARK, World};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the path of an example, which is built first: tests of this file alone do not build it.
pub fn example(name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--locked", "--quiet", "--examples"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            // As in tests/bridge/own_agents.rs: with the variable, ring is built again.
            .env_remove("CARGO_MANIFEST_DIR")
            .status();
        assert!(built.unwrap().success());
    });
    Path::new(ACPIPE).with_file_name("examples").join(name)
}

/// Runs an example with the demo agent; returns its output.
fn run(name: &str, stdin: &str) -> String {
    let world = World::new();
    let mut child = Command::new(example(name))
        .arg(format!("{ACPIPE} demo-agent"))
        .current_dir(&world.dir)
        .env(MARK, &world.mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(world.alive(), []);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn chat_answers_each_line() {
    let output = run("chat", "hello\nand again\n");
    assert!(
        output.contains("hello") && output.contains("and again"),
        "{output}"
    );
}

#[test]
fn bot_works_in_several_sessions() {
    let output = run("bot", "");
    for session in ["docs", "tests", "changelog"] {
        assert!(output.contains(&format!("{session}: ")), "{output}");
    }
}

#[test]
fn policy_reports_what_it_denied() {
    let output = run("policy", "");
    assert!(output.contains("tools: "), "{output}");
}
