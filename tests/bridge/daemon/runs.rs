//! `acpipe run --daemon`: what a run prints and returns, and what stays when it ends.

use super::{Daemon, with_agent};
use crate::chat::READY;
use crate::harness::steps::{end, say, until_cancelled};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World, calls, signal, words};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Output, Stdio};

/// Returns the texts of stdout and stderr.
fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap())
}

/// Starts a run and waits for its first line on stdout.
fn started(daemon: &Daemon, args: &[&str]) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = daemon.command(args);
    let mut run = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(run.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    (run, stdout)
}

#[test]
fn run_through_the_daemon_has_the_output_of_a_run_without_it() {
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [[
        say("one\n"), say("two"), end("end_turn"),
    ]]}));
    for format in ["text", "json", "chunks", "sse"] {
        let outputs = ["--no-daemon", "--daemon"].map(|place| {
            let line = format!("run -o {format} {place} go");
            texts(&daemon.run(&with_agent(&line, &script), 0))
        });
        let [own, daemons] = outputs.map(|[out, err]| (normal(&out), err));
        assert_eq!(own, daemons, "{format}");
    }
    daemon.stop();
}

/// Replaces the ids and times of a run's output.
fn normal(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let json = line.strip_prefix("data: ").unwrap_or(line);
        let Ok(mut value) = serde_json::from_str::<Value>(json) else {
            return line.to_owned();
        };
        for name in [
            "sessionId",
            "turnId",
            "messageId",
            "durationMs",
            "overheadMs",
            "id",
        ] {
            if let Some(member) = value.get_mut(name) {
                *member = Value::Null;
            }
        }
        value["messageMetadata"]["acp"] = Value::Null;
        value["metadata"] = Value::Null;
        value.to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn next_run_of_a_session_finds_its_agent_running() {
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [
        [say("first"), end("end_turn")],
        [say("second"), end("end_turn")],
    ]}));
    let first = with_agent("run --daemon --session s go", &script);
    let [out, _] = texts(&daemon.run(&first, 0));
    assert_eq!(out, "first\n");
    // Without an agent on the command line, by name and as the newest session.
    let [out, err] = texts(&daemon.run(&["run", "--daemon", "--session", "s", "go"], 0));
    assert_eq!(out, "second\n");
    assert!(err.contains("continuing session \"s\""), "{err}");
    daemon.run(&["run", "--daemon", "-c", "go"], 0);
    let log = daemon.world.log();
    assert_eq!(calls(&log, "initialize").len(), 1);
    assert_eq!(calls(&log, "session/prompt").len(), 3);
    daemon.stop();
}

#[test]
fn every_run_in_a_live_session_warns_that_its_agent_does_not_ask() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("done"), end("end_turn")]]}));
    let agent =
        format!("[agents.own]\ncommand = {FAKE_AGENT:?}\nargs = [{script:?}]\nasks = \"never\"\n");
    let config = world.file("agents.toml", &agent);
    let daemon = Daemon::start_in(world, &["--config", &config]);
    let line =
        format!("run --config {config} --daemon --agent own --session s --permissions deny go");
    for _ in 0..2 {
        let [_, err] = texts(&daemon.run(&words(&line), 0));
        let warnings = err.matches("The agent may run tools without asking");
        assert_eq!(warnings.count(), 1, "{err}");
    }
    daemon.stop();
}

#[test]
fn configuration_sends_runs_to_the_daemon_and_an_option_does_not() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("x"), end("end_turn")]]}));
    let config = world.file("config.toml", "attach = true\n");
    let daemon = Daemon { world };
    let run = |options: &str| {
        let line = format!("run --config {config}{options} go");
        daemon.run(&with_agent(&line, &script), 0);
    };
    run(" --no-daemon");
    assert!(!daemon.socket().exists());
    run("");
    // The run has started the daemon.
    assert!(daemon.pid() > 0);
    daemon.stop();
}

#[test]
fn options_of_all_clients_are_refused() {
    let daemon = Daemon {
        world: World::new(),
    };
    for option in [&["--ephemeral"][..], &["--persist", "never"]] {
        let args = [&["run", "--daemon"], option, &["--agent", "demo", "go"]].concat();
        let [out, err] = texts(&daemon.run(&args, 2));
        assert_eq!(out, "");
        assert!(
            err.contains(&option.join(" ")) && err.contains("--no-daemon"),
            "{err}"
        );
    }
    assert!(!daemon.socket().exists());
}

#[test]
fn turn_goes_on_when_the_terminal_of_a_run_closes() {
    let wait = json!({"wait": "session/cancel"});
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [[
        say("begun\n"), wait, say("ended"), end("end_turn"),
    ]]}));
    let args = with_agent("run --daemon --session s go", &script);
    let (mut run, _stdout) = started(&daemon, &args);
    signal(i32::try_from(run.id()).unwrap(), Signal::HUP);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    let mut client = daemon.client(&[]);
    let session = client.call("session/get", &json!({"sessionId": "s"}));
    assert_eq!(session["activity"], "running", "{session}");
    client.call("session/attach", &json!({"sessionId": "s", "afterSeq": 0}));
    client.call("session/cancel", &json!({"sessionId": "s"}));
    let last = client.call("message/last", &json!({"sessionId": "s"}));
    assert_eq!(last["message"]["role"], "assistant", "{last}");
    daemon.stop();
}

#[test]
fn first_ctrl_c_cancels_the_turn() {
    let steps = [&[say("begun\n")][..], &until_cancelled()].concat();
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [steps]}));
    let args = with_agent("run --daemon --session s go", &script);
    let (mut run, _stdout) = started(&daemon, &args);
    signal(i32::try_from(run.id()).unwrap(), Signal::INT);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(calls(&daemon.world.log(), "session/cancel").len(), 1);
    daemon.stop();
}

#[test]
fn max_time_limits_a_turn_in_the_daemon() {
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [until_cancelled()]}));
    let line = "run --daemon --max-time 100ms go";
    daemon.run(&with_agent(line, &script), 124);
    daemon.stop();
}

#[test]
fn run_without_the_daemon_names_the_daemon_that_has_the_session() {
    let (daemon, script) =
        Daemon::with_script(&json!({"session/prompt": [[say("x"), end("end_turn")]]}));
    daemon.run(&with_agent("run --daemon --session s go", &script), 0);
    let [_, err] = texts(&daemon.run(&["run", "--session", "s", "go"], 75));
    assert!(
        err.contains("session \"s\" is open in the daemon; use --daemon, or `acpipe attach s`"),
        "{err}"
    );
    daemon.stop();
}

#[test]
fn list_of_sessions_shows_what_the_daemon_works_on() {
    let steps = [&[say("begun\n")][..], &until_cancelled()].concat();
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [steps]}));
    let args = with_agent("run --daemon --session s go", &script);
    let (mut run, _stdout) = started(&daemon, &args);
    let [table, _] = texts(&daemon.run(&["sessions", "list"], 0));
    assert!(
        table.contains("STATE") && table.contains("running"),
        "{table}"
    );
    let [line, _] = texts(&daemon.run(&["sessions", "list", "--json"], 0));
    let session: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(session["activity"], "running", "{session}");
    assert_eq!(session["clients"], 1, "{session}");
    signal(i32::try_from(run.id()).unwrap(), Signal::INT);
    run.wait().unwrap();
    daemon.run(&["daemon", "stop"], 0);
    let [table, _] = texts(&daemon.run(&["sessions", "list"], 0));
    assert!(!table.contains("STATE"), "{table}");
    assert_eq!(daemon.world.leak(), None);
}

#[test]
fn run_whose_daemon_is_killed_says_so() {
    let steps = [&[say("begun\n")][..], &until_cancelled()].concat();
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [steps]}));
    let args = ["run", "--daemon", "go", "--", FAKE_AGENT, &script];
    let (mut run, _stdout) = started(&daemon, &args);
    signal(daemon.pid(), Signal::KILL);
    assert_eq!(run.wait().unwrap().code(), Some(1));
    assert_eq!(daemon.world.leak(), None);
}

#[test]
fn chat_leaves_its_session_in_the_daemon() {
    let modes = json!({"currentModeId": "plan", "availableModes": [
        {"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}]});
    let (daemon, script) = Daemon::with_script(&json!({
        "session/new": [[{"reply": {"sessionId": "fake-1", "modes": modes}}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("first"), end("end_turn")], [say("second"), end("end_turn")]],
    }));
    let mut screen = Screen::new(World::new());
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let state = daemon.world.dir.join("state");
    let [state, cwd] = [&state, &daemon.world.dir].map(|dir| dir.to_str().unwrap());
    let place = ["--state-dir", state, "--cwd", cwd];
    let agent = ["--", FAKE_AGENT, &script];
    let args = [&["run", "--daemon", "--session", "s"], &place[..], &agent].concat();
    screen.start(&args, "");
    screen.await_text(READY);
    screen.keys("hello\n");
    screen.await_text("first\n\n");
    screen.await_text(READY);
    screen.keys("/mode code\n");
    screen.await_text("acpipe: mode code\n");
    screen.await_text(READY);
    screen.keys("again\n");
    screen.await_text("second\n\n");
    screen.await_text(READY);
    screen.keys("\x04");
    screen.await_text("acpipe: the session stays in the daemon: acpipe attach s\n");
    assert_eq!(screen.end().0, 0);
    let log = daemon.world.log();
    assert_eq!(calls(&log, "session/prompt").len(), 2);
    daemon.stop();
}
