//! Effects of options that no other test shows.

use super::acpipe;
use crate::daemon::Daemon;
use crate::harness::server::Server;
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

#[test]
fn each_session_has_its_process_with_child_per_session() {
    for (options, processes) in [(&["--child-per-session"][..], 2), (&[], 1)] {
        let world = World::new();
        // Sessions have the names of their order, in one process or two.
        let new = ["one", "two"].map(|name| {
            let mark = world.dir.join(name);
            let steps = json!([{"reply": {"sessionId": name}}, {"hang": true}]);
            json!({"once": {"mark": mark, "steps": steps}})
        });
        let script = json!({"session/new": [new]});
        let script = world.script(&script);
        let args = [options, &["--", FAKE_AGENT, &script]].concat();
        let mut s = Server::in_world(world, &args);
        for session in ["a", "b"] {
            s.ensure(session);
        }
        let alive = s.world.alive();
        let agents = alive
            .iter()
            .filter(|(_, line)| line.starts_with(FAKE_AGENT));
        assert_eq!(agents.count(), processes, "{options:?}");
        s.finish();
    }
}

#[test]
fn record_limit_ends_the_tape() {
    let world = World::new();
    let run = ["run", "hi", "--ephemeral", "--agent", "demo", "--record"];
    let last = |tape: &str, options: &[&str]| {
        let output = acpipe(&world, &[&run[..], &[tape]].concat(), options);
        assert!(output.status.success(), "{output:?}");
        let tape = fs::read_to_string(world.dir.join(tape)).unwrap();
        tape.lines().last().unwrap().to_owned()
    };
    assert!(last("cut", &["--record-limit", "1K"]).contains(r#""event":"full""#));
    assert!(!last("whole", &[]).contains(r#""event":"full""#));
}

#[test]
fn verbose_logs_to_stderr() {
    let world = World::new();
    let run = ["run", "hi", "--ephemeral", "--agent", "demo"];
    let said = |options: &[&str]| {
        let output = acpipe(&world, &run, options);
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said(&[]), "");
    assert!(said(&["--verbose"]).contains("INFO"));
}

#[test]
fn followed_log_of_the_daemon_shows_later_lines() {
    let world = World::new();
    let log = world.dir.join("state/daemon/log");
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    fs::write(&log, "one\n").unwrap();
    let mut command = world.acpipe(&["daemon", "logs", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "one");
    let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
    file.write_all(b"two\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "two");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn log_file_of_the_daemon_is_named() {
    let daemon = Daemon::start(&["--log-file", "own.log"]);
    let output = daemon.run(&["daemon", "logs"], 0);
    let text = String::from_utf8(output.stderr).unwrap();
    let file = daemon.world.dir.join("own.log");
    assert!(text.contains(&*file.to_string_lossy()), "{text}");
    daemon.stop();
}

#[test]
fn attach_finds_the_session_of_the_directory_and_prints_chunks() {
    let daemon = Daemon::start(&[]);
    let dir = daemon.world.dir.join("there");
    fs::create_dir(&dir).unwrap();
    let there = dir.to_str().unwrap();
    let run = [
        "run",
        "hi",
        "--daemon",
        "--agent",
        "demo",
        "--session",
        "s",
        "--cwd",
        there,
    ];
    daemon.run(&run, 0);
    let shown = daemon.run(&["attach", "--cwd", there], 0);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("demo agent"));
    // Without a running turn there are no chunks.
    let chunks = daemon.run(&["attach", "--cwd", there, "--output", "chunks"], 0);
    assert_eq!(String::from_utf8_lossy(&chunks.stdout), "");
    daemon.stop();
}
