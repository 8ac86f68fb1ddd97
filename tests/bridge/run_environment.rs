//! The command line: selection of the agent, its environment and directory, and exit codes.

use crate::harness::run::Run;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, calls};
use serde_json::{Value, json};
use std::fs;

#[test]
fn acpipe_agent_variable_selects_the_agent() {
    let world = World::new();
    let script =
        world.script(&json!({"session/prompt": [[say("from the environment"), end("end_turn")]]}));
    let odd = world.dir.join("an odd 'name'");
    fs::create_dir(&odd).unwrap();
    let link = odd.join("agent \"x\"");
    std::os::unix::fs::symlink(FAKE_AGENT, &link).unwrap();
    let quoted = shlex::try_quote(link.to_str().unwrap())
        .unwrap()
        .into_owned();
    let command = format!("{quoted} \"{script}\"");
    let outcome = Run::new(&["run", "go"])
        .env("ACPIPE_AGENT", &command)
        .go()
        .expect(0);
    assert_eq!(outcome.text(), "from the environment\n");
    assert_eq!(outcome.stderr, "");

    // The command after -- takes precedence, and a blank value counts as unset.
    let outcome = Run::new(&["run", "go"])
        .env("ACPIPE_AGENT", &command)
        .script(&json!({"session/prompt": [[say("after --"), end("end_turn")]]}))
        .go()
        .expect(0);
    assert_eq!(outcome.text(), "after --\n");
    let outcome = Run::new(&["run", "hello"])
        .env("ACPIPE_AGENT", " ")
        .go()
        .expect(127);
    assert!(outcome.stderr.contains("no agent"), "{}", outcome.stderr);
}

#[test]
fn unclosed_quote_is_a_usage_error() {
    let outcome = Run::new(&["run", "go"])
        .env("ACPIPE_AGENT", "agent 'x")
        .go()
        .expect(2);
    assert!(
        outcome.stderr.contains("ACPIPE_AGENT"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn run_env_options_set_and_unset_variables() {
    let world = World::new();
    let seen = world.dir.join("env");
    let agent = world.executable(
        "agent",
        &format!(
            "#!/bin/sh\nenv > '{}'\npwd > '{}.pwd'\nexec '{FAKE_AGENT}'\n",
            seen.display(),
            seen.display()
        ),
    );
    Run::new(&[
        "run",
        "-e",
        "SET=a=b \"c\"",
        "--env",
        "GONE",
        "--env",
        "EMPTY=",
        "-e",
        "TWICE=1",
        "-e",
        "TWICE=2",
        "go",
    ])
    .env("GONE", "was here")
    .env("KEPT", "still")
    .agent(&[&agent])
    .go()
    .expect(0);
    let env = fs::read_to_string(&seen).unwrap();
    let has = |line: &str| env.lines().any(|l| l == line);
    assert!(has("SET=a=b \"c\""), "{env}");
    assert!(has("EMPTY="), "{env}");
    assert!(has("KEPT=still"), "{env}");
    assert!(has("TWICE=2"), "{env}");
    assert!(!env.contains("GONE"), "{env}");
}

#[test]
fn cwd_applies_to_agent_and_session() {
    let world = World::new();
    let dir = world.dir.join("some dir");
    fs::create_dir(&dir).unwrap();
    let seen = world.dir.join("pwd");
    let agent = world.executable(
        "agent",
        &format!(
            "#!/bin/sh\npwd > '{}'\nexec '{FAKE_AGENT}'\n",
            seen.display()
        ),
    );
    let whole = dir.to_str().unwrap();
    let outcome = Run::new(&["run", "--cwd", whole, "go"])
        .agent(&[&agent])
        .go()
        .expect(0);
    let params = &calls(&outcome.log, "session/new")[0]["params"];
    assert_eq!(params["cwd"], whole);
    assert_eq!(fs::read_to_string(&seen).unwrap().trim(), whole);

    // A relative path becomes absolute, as ACP requires.
    let outcome = Run::new(&["run", "--cwd", "src", "go"])
        .agent(&[&agent])
        .go()
        .expect(0);
    let params = &calls(&outcome.log, "session/new")[0]["params"];
    let here = std::env::current_dir().unwrap();
    assert_eq!(params["cwd"], json!(here.join("src")));

    let outcome = Run::new(&["run", "--cwd", "/no/such/dir", "go"])
        .agent(&[&agent])
        .go()
        .expect(2);
    assert!(
        outcome.stderr.contains("/no/such/dir"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn exit_codes_depend_on_the_outcome() {
    let error = |code: i64, message: &str| json!({"error": {"code": code, "message": message}});
    let prompt = |steps: &[Value]| json!({"session/prompt": [steps]});
    let cases = [
        (0, "done", prompt(&[say("x"), end("end_turn")])),
        (1, "nothing said", prompt(&[end("end_turn")])),
        (65, "no stop reason", prompt(&[json!({"reply": {}})])),
        (0, "refused", prompt(&[end("refusal")])),
        (0, "cut", prompt(&[end("max_tokens")])),
        (0, "odd", prompt(&[end("odd")])),
        (1, "max turns", prompt(&[end("max_turn_requests")])),
        // Ended by the agent itself, without a request to cancel.
        (1, "broken off", prompt(&[end("cancelled")])),
        (1, "error", prompt(&[error(-32603, "x")])),
        (1, "crash", prompt(&[json!({"exit": 0})])),
        (1, "session", json!({"session/new": [[error(-32603, "x")]]})),
        (69, "network", prompt(&[error(-32603, "ECONNREFUSED")])),
        (77, "sign in", prompt(&[error(-32000, "x")])),
        (
            77,
            "sign in",
            json!({"session/new": [[error(-32000, "x")]]}),
        ),
        (77, "sign in", json!({"initialize": [[error(-32000, "x")]]})),
        (
            76,
            "version",
            json!({"initialize": [[{"reply": {"protocolVersion": 2}}]]}),
        ),
        (76, "error", json!({"initialize": [[error(-32603, "x")]]})),
        (65, "malformed", json!({"session/new": [[{"reply": {}}]]})),
        (
            74,
            "cut off",
            prompt(&[json!({"closeStdout": true}), json!({"hang": true})]),
        ),
        (126, "died early", json!({"start": [{"exit": 0}]})),
    ];
    for (code, what, script) in cases {
        let args = ["run", "go", "--timeout", "close=100ms"];
        let outcome = Run::new(&args).script(&script).go();
        assert_eq!(
            outcome.status.code(),
            Some(code),
            "{what}: {}",
            outcome.show()
        );
        assert_eq!(
            outcome.stderr.is_empty(),
            what == "done",
            "{what}: {}",
            outcome.stderr
        );
        // One line for the user, no JSON, no debug output.
        assert!(
            outcome.stderr.lines().count() <= 1,
            "{what}: {}",
            outcome.stderr
        );
    }
    let world = World::new();
    let plain = world.file("plain", "");
    for (code, agent) in [
        (127, "no-such-agent"),
        (127, "/no/such"),
        (126, plain.as_str()),
    ] {
        let outcome = Run::new(&["run", "go"]).agent(&[agent]).go().expect(code);
        assert!(outcome.stderr.starts_with("acpipe: "), "{}", outcome.stderr);
        assert_eq!(outcome.text(), "");
    }
}

#[test]
fn invalid_command_lines_exit_with_2() {
    for args in [
        &[][..],
        &["nonsense"],
        &["run", "--no-such-flag", "x"],
        &["run", "-o", "yaml", "x"],
        &["run", "--env", "=x", "x"],
        &["run", "--max-line", "0", "x"],
        &["run", "--max-line", "many", "x"],
        &["run", "--permissions", "maybe", "x"],
        &["run", "-q", "-v", "x"],
        &["serve", "extra"],
        &["run", "--cwd"],
    ] {
        let outcome = Run::new(args).go().expect(2);
        assert_eq!(outcome.text(), "", "{args:?}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
    }
}
