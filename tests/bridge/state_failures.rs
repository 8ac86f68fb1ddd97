//! State that cannot be stored: a run that names no session has its answer and a note, whatever fails; for all
//! others, a session that cannot be stored is an error.

use crate::daemon::Daemon;
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, words};
use serde_json::json;
use std::fs;
use std::process::{Output, Stdio};

/// Fault of the state directory.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// A file has its name.
    NoDirectory,
    /// No file can be created in it, also by root.
    ReadOnly,
    /// Files can be created, and have no room.
    Full,
    /// The disk becomes full within the turn.
    FullInTurn,
}

const STATES: [State; 4] = [
    State::NoDirectory,
    State::ReadOnly,
    State::Full,
    State::FullInTurn,
];

/// Text of the agent, twice. The log of a turn has no room for it in [`State::FullInTurn`].
fn text() -> String {
    "x".repeat(20 << 10)
}

fn world(state: State) -> World {
    let mut world = World::new();
    let dir = world.dir.join("state");
    match state {
        State::NoDirectory => fs::write(dir, "").unwrap(),
        State::ReadOnly => {
            fs::create_dir(&dir).unwrap();
            std::os::unix::fs::symlink("/proc", dir.join("sessions")).unwrap();
        }
        State::Full => world.room = Some(0),
        State::FullInTurn => world.room = Some(64),
    }
    world
}

/// Runs acpipe with the fake agent.
fn run(world: &World, args: &[&str]) -> Output {
    let script = json!({"session/prompt": [[say(&text()), say(&text()), end("end_turn")]]});
    let path = world.script(&script);
    let args = [args, &["--", FAKE_AGENT, &path]].concat();
    let mut command = world.acpipe(&args);
    // The limit of the file size is that of the agent, too.
    command.env_remove("FAKE_AGENT_LOG").stdin(Stdio::null());
    command.output().unwrap()
}

#[test]
fn run_without_a_named_session_has_its_answer_whatever_is_wrong_with_the_state() {
    for state in STATES {
        for format in ["text", "json"] {
            let done = run(&world(state), &["run", "-o", format, "go"]);
            assert_eq!(done.status.code(), Some(0), "{state:?}: {done:?}");
            let answer = String::from_utf8(done.stdout).unwrap();
            assert!(answer.contains(&[text(), text()].concat()), "{state:?}");
            let stderr = String::from_utf8(done.stderr).unwrap();
            assert_eq!(stderr.lines().count(), 1, "{state:?}: {stderr}");
            assert!(
                stderr.contains("this run is not stored"),
                "{state:?}: {stderr}"
            );
        }
        let quiet = run(&world(state), &["run", "-q", "go"]);
        assert_eq!(quiet.status.code(), Some(0), "{state:?}: {quiet:?}");
        assert!(quiet.stderr.is_empty(), "{state:?}: {quiet:?}");
    }
}

#[test]
fn empty_log_of_a_full_disk_is_no_session() {
    let world = world(State::Full);
    run(&world, &["run", "go"]);
    let listed = world
        .acpipe(&["sessions", "list", "--all"])
        .output()
        .unwrap();
    assert!(
        listed.status.success() && listed.stdout.is_empty(),
        "{listed:?}"
    );
}

#[test]
fn run_of_a_named_session_fails_if_the_session_cannot_be_stored() {
    for state in STATES {
        let done = run(&world(state), &["run", "--session", "s", "go"]);
        assert_eq!(done.status.code(), Some(74), "{state:?}: {done:?}");
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert!(!stderr.contains("not stored:"), "{state:?}: {stderr}");
    }
}

#[test]
fn client_of_a_server_gets_storage_for_every_session() {
    for state in STATES {
        let world = world(state);
        let script = json!({"session/prompt": [[say(&text()), say(&text()), end("end_turn")]]});
        let path = world.script(&script);
        let mut command = world.acpipe(&["serve", "--", FAKE_AGENT, &path]);
        command.env_remove("FAKE_AGENT_LOG");
        let calls = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "session/ensure", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": {"message": "go"}}),
        ];
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut server = command.spawn().unwrap();
        let mut stdin = server.stdin.take().unwrap();
        for call in calls {
            std::io::Write::write_all(&mut stdin, format!("{call}\n").as_bytes()).unwrap();
        }
        let mut answers =
            std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
        let is_storage = answers.any(|line| line.unwrap().contains(r#""kind":"storage""#));
        assert!(is_storage, "{state:?}");
        drop(stdin);
        server.wait().unwrap();
    }
}

#[test]
fn run_in_the_daemon_fails_if_the_daemon_cannot_store_it() {
    let daemon = Daemon {
        world: World::new(),
    };
    let sessions = daemon.world.dir.join("state/sessions");
    daemon.run(&["daemon", "start", "--agent", "demo"], 0);
    fs::remove_dir_all(&sessions).unwrap_or_default();
    std::os::unix::fs::symlink("/proc", &sessions).unwrap();
    let done = daemon.run(&["run", "--daemon", "--agent", "demo", "hello"], 74);
    assert!(done.stdout.is_empty(), "{done:?}");
    daemon.run(&["daemon", "stop"], 0);
}

#[test]
fn log_file_that_cannot_be_written_is_a_note() {
    let world = World::new();
    let args = words("run -vv --log-file /dev/full --agent demo hello");
    let done = world.acpipe(&args).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(!done.stdout.is_empty(), "{done:?}");
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!(
        stderr.matches("--log-file: cannot write").count(),
        1,
        "{stderr}"
    );
    let args = words("run --log-file /proc/none --agent demo hello");
    let done = world.acpipe(&args).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{done:?}");
}

#[test]
fn files_that_options_name_fail_with_74() {
    let world = World::new();
    let tape = world.dir.join("tape").display().to_string();
    let args = ["run", "-q", "--record", &tape, "--agent", "demo", "hello"];
    assert!(world.acpipe(&args).output().unwrap().status.success());
    for args in [
        &["trace", "-o", "/dev/full", &tape][..],
        &["trace", "-o", "/proc/none/x", &tape],
        &["schema", "--dir", "/proc/none"],
        &["man", "--dir", "/proc/none"],
    ] {
        let done = world.acpipe(args).output().unwrap();
        assert_eq!(done.status.code(), Some(74), "{args:?}: {done:?}");
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    }
}
