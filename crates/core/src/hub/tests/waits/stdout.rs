//! Tests of lines on an agent's stdout that are no messages, in the errors of its start.

use super::{Play, S};
use crate::hub::tests::play::settings;
use crate::hub::{AgentInput, Exit};
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use serde_json::json;
use std::time::Instant;

/// Number of the call that starts the agent.
const CONNECT: u64 = 2;

/// Starts an agent with this argument that prints these lines on stdout.
fn printed(argument: &str, lines: &[&str]) -> Play {
    let mut settings = settings(Instant::now());
    settings.secrets.add_values(["hunter-of-secrets"]);
    settings.default_agent.spec.args = vec![argument.to_owned()];
    let (mut play, _) = Play::of(settings, &[(Timeout::Initialize, 60)]);
    play.started();
    for line in lines {
        play.say(line);
    }
    play
}

/// Returns the error of a start whose agent exits after these lines on stdout and on stderr.
fn exit_error(argument: &str, stdout: &[&str], stderr: &str) -> Error {
    let mut play = printed(argument, stdout);
    play.hear(AgentInput::Exited(Exit {
        code: Some(0),
        stderr: stderr.to_owned(),
        ..Exit::default()
    }));
    play.error(CONNECT).clone()
}

#[test]
fn start_error_has_the_text_that_the_agent_printed_on_stdout() {
    let lines = [
        "agent is no longer maintained",
        r#"{"text": "part of a conversation""#,
        "install agent2 with hunter-of-secrets",
    ];
    let error = exit_error("acp", &lines, "");
    assert_eq!(
        error.message,
        "the agent exited before it was ready: exit code 0; end of stdout: agent is no longer maintained | install agent2 with [hidden]"
    );
    let text = "agent is no longer maintained\ninstall agent2 with [hidden]\n";
    assert_eq!(error.data()["stdout"], text);
}

#[test]
fn line_that_looks_like_an_error_is_preferred_on_stderr_and_on_stdout() {
    for (stdout, stderr, shown) in [
        ("bye", "Error: no key", "stderr: Error: no key"),
        ("Error: no key", "bye", "stdout: Error: no key"),
        ("bye", "farewell", "last line of stderr: farewell"),
    ] {
        let error = exit_error("acp", &[stdout], stderr);
        let found = error.message.split("; ").nth(1);
        assert_eq!(found, Some(shown));
    }
}

#[test]
fn argument_that_was_given_is_no_advice() {
    let advice = "many agents need an argument for that, such as acp or --acp";
    for (argument, is_advised) in [("acp", false), ("--experimental-acp", false), ("x", true)] {
        let error = exit_error(argument, &[], "");
        assert!(error.message.contains("until its stdin is closed"));
        assert_eq!(error.message.contains(advice), is_advised, "{argument}");
    }
}

#[test]
fn timeout_of_the_start_has_the_text_on_stdout() {
    let mut play = printed("acp", &["Welcome! Press Enter"]);
    let notices = play.wait_notices(S(3));
    let note = notices[0].1["note"].as_str().unwrap();
    let last = "last line of stdout: Welcome! Press Enter";
    assert!(note.ends_with(last), "{note}");
    play.pass(S(60));
    let error = play.error(CONNECT);
    let last = "; stdout: Welcome! Press Enter";
    assert!(error.message.ends_with(last), "{error}");
    assert_eq!(error.data()["stdout"], json!("Welcome! Press Enter\n"));
}
