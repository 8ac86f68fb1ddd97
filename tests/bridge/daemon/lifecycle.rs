//! Start, stop, restart and crash of the daemon.

use super::client::Client;
use super::{Daemon, asking};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, chosen_options, signal, words};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Stdio;

fn turn(text: &str) -> Value {
    json!({"session/prompt": [[say(text), end("end_turn")]]})
}

#[test]
fn one_daemon_runs_until_it_is_stopped() {
    let daemon = Daemon::start(&[]);
    let pid = daemon.pid();
    let again = daemon.run(&["daemon", "start"], 75);
    let text = String::from_utf8(again.stderr).unwrap();
    assert!(text.contains("already running"), "{text}");
    assert_eq!(daemon.pid(), pid);
    daemon.run(&["daemon", "stop"], 0);
    let status = daemon.run(&["daemon", "status", "--json"], 1);
    assert_eq!(status.stdout, b"{\"running\":false}\n");
    let nothing = daemon.run(&["daemon", "stop"], 0);
    let text = String::from_utf8(nothing.stderr).unwrap();
    assert!(text.contains("no daemon is running"), "{text}");
    assert_eq!(daemon.world.leak(), None);
}

#[test]
fn restart_keeps_sessions_and_options() {
    let world = World::new();
    let script = world.script(&turn("answer"));
    let daemon = Daemon::start_in(world, &["--agent", "demo", "--max-sessions", "7"]);
    let options = ["--", FAKE_AGENT, &script];
    let mut client = daemon.client(&options);
    client.ensure("kept");
    assert_eq!(client.prompt("kept")["text"], "answer");
    let before = daemon.pid();
    daemon.run(&["daemon", "restart"], 0);
    client.read_to_end();
    assert_ne!(daemon.pid(), before);
    let mut client = daemon.client(&options);
    assert_eq!(
        client.welcome["accepted"]["args"],
        json!(["--agent", "demo", "--max-sessions", "7"])
    );
    client.ensure("kept");
    let list = client.call("message/list", &json!({"sessionId": "kept"}));
    assert_eq!(list["messages"].as_array().unwrap().len(), 2, "{list}");
    daemon.stop();
}

/// The variables of the caller count for the daemon itself as for `daemon run`, and not for clients without them. A restart
/// without variables keeps those of the start.
#[test]
fn daemon_has_the_variables_of_its_start_or_restart() {
    let world = World::new();
    let script = world.script(&asking());
    for mode in ["deny", "approve"] {
        let rules = format!("[permissions]\ndefault = {mode:?}\n");
        world.file(&format!("{mode}.toml"), &rules);
    }
    let agent = format!("{FAKE_AGENT:?} {script:?}");
    let daemon = Daemon { world };
    let command = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = daemon.command(args);
        command.envs(variables.iter().copied()).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let mut chosen = Vec::new();
    let mut go = |mut client: Client| {
        let id = format!("s{}", chosen.len());
        client.ensure(&id);
        client.prompt(&id);
        chosen = chosen_options(&daemon.world.log())
            .into_iter()
            .map(str::to_owned)
            .collect();
        chosen.last().unwrap().clone()
    };
    let own = || {
        let hello = json!({"socketVersion": 2, "acpipe": "test", "purpose": "control", "cwd": "/"});
        let mut client = Client::greet(&daemon.socket(), &hello).unwrap();
        client.initialize();
        assert_eq!(
            client.welcome["accepted"]["args"],
            json!(["--max-sessions", "7"])
        );
        client
    };
    let start = ["daemon", "start", "--max-sessions", "7"];
    let variables = [("ACPIPE_CONFIG", "deny.toml"), ("ACPIPE_AGENT", &agent)];
    command(&start, &variables);
    assert_eq!(go(own()), "no");
    assert_eq!(go(daemon.client(&["--", FAKE_AGENT, &script])), "yes");
    command(&["daemon", "restart"], &[]);
    assert_eq!(go(own()), "no");
    // Options replace those of the start, and keep its configuration.
    command(&["daemon", "restart", "--max-sessions", "7"], &[]);
    assert_eq!(go(own()), "no");
    command(&["daemon", "restart"], &[("ACPIPE_CONFIG", "approve.toml")]);
    assert_eq!(go(own()), "yes");
    daemon.stop();
}

#[test]
fn restart_names_the_options_that_no_longer_hold() {
    let options = words("--permissions deny -e A=typed --max-sessions 7");
    let daemon = Daemon::start(&options);
    let note = |line: &str| {
        let output = daemon.run(&words(line), 0);
        String::from_utf8(output.stderr).unwrap()
    };
    let text = note("daemon restart");
    assert!(!text.contains("no longer hold"), "{text}");
    let text = note("daemon restart --max-sessions 8");
    let expected = "options of the earlier daemon that no longer hold: ";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("--permissions") && text.contains("--env"),
        "{text}"
    );
    assert!(
        !text.contains("--max-sessions") && !text.contains("typed"),
        "{text}"
    );
    daemon.stop();
}

/// All users of the machine can read a command line.
#[test]
fn command_line_of_the_daemon_has_no_values_of_variables() {
    let daemon = Daemon::start(&["-e", "TOKEN=value-of-the-start"]);
    for command in ["status", "restart", "status"] {
        daemon.run(&["daemon", command], 0);
        let alive = daemon.world.alive();
        assert!(!alive.is_empty());
        let shown = alive.iter().find(|(_, line)| line.contains("value-of"));
        assert_eq!(shown, None);
        let client = daemon.client(&[]);
        assert_eq!(
            client.welcome["accepted"]["args"],
            json!(["-e", "TOKEN=value-of-the-start"])
        );
    }
    let status = daemon.run(&["daemon", "status", "--json"], 0).stdout;
    let status: Value = serde_json::from_slice(&status).unwrap();
    assert_eq!(status["daemon"]["args"], json!(["-e", "TOKEN=[hidden]"]));
    daemon.stop();
}

#[test]
fn status_has_no_values_of_the_variable_that_names_the_agent() {
    let daemon = Daemon {
        world: World::new(),
    };
    let mut start = daemon.command(&["daemon", "start"]);
    start.env(
        "ACPIPE_AGENT",
        "env A=value-of-the-agent agent --token value-of-it",
    );
    assert!(start.stdin(Stdio::null()).status().unwrap().success());
    let status = daemon.run(&["daemon", "status", "--json"], 0).stdout;
    let status: Value = serde_json::from_slice(&status).unwrap();
    let agent = &status["daemon"]["variables"]["agent"];
    assert_eq!(agent, "env 'A=[hidden]' agent --token '[hidden]'");
    daemon.stop();
}

/// A daemon that cannot start again is not stopped.
#[test]
fn restart_without_its_configuration_leaves_the_daemon_running() {
    let world = World::new();
    let config = world.file("own.toml", "[permissions]\ndefault = \"deny\"\n");
    let daemon = Daemon { world };
    let mut start = daemon.command(&["daemon", "start"]);
    start.env("ACPIPE_CONFIG", &config).stdin(Stdio::null());
    assert!(start.status().unwrap().success());
    let pid = daemon.pid();
    for text in [None, Some("not TOML")] {
        std::fs::remove_file(&config).unwrap();
        if let Some(text) = text {
            std::fs::write(&config, text).unwrap();
        }
        for options in [&[][..], &["--max-sessions", "7"]] {
            let refused = daemon.run(&[&["daemon", "restart"], options].concat(), 2);
            let error = String::from_utf8(refused.stderr).unwrap();
            assert!(
                error.contains("still runs") && error.contains("own.toml"),
                "{error}"
            );
            assert_eq!(daemon.pid(), pid);
        }
        std::fs::write(&config, "").unwrap();
    }
    daemon.run(&["daemon", "restart"], 0);
    assert_ne!(daemon.pid(), pid);
    daemon.stop();
}

#[test]
fn restart_with_options_that_cannot_start_leaves_the_daemon_running() {
    let daemon = Daemon::start(&["--listen", "127.0.0.1:0"]);
    let pid = daemon.pid();
    let file = daemon.world.file("no.pem", "x");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let busy = other.local_addr().unwrap().to_string();
    let loopback = ["--listen", "127.0.0.1:0"];
    let variable = "OTEL_EXPORTER_OTLP_ENDPOINT";
    for (options, why) in [
        (&["--listen", "0.0.0.0:0"][..], "without TLS"),
        (&["--tls-cert", "/nope", "--tls-key", "/nope"], "/nope"),
        (&["--tls-cert", &file, "--tls-key", &file], "no.pem"),
        (&["--allow-origin", "x"], "--allow-origin"),
        (&["--otlp=ftp://x"], "--otlp"),
        (&["--otlp=https://u:password@x"], "--otlp"),
        (&["--otlp"], variable),
        (&["--listen", &busy], &busy),
    ] {
        let args = [&["daemon", "restart"], &loopback[..], options].concat();
        let mut restart = daemon.command(&args);
        let output = restart.env(variable, "no address").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains("still runs") && error.contains(why),
            "{options:?}: {error}"
        );
        assert_eq!(daemon.pid(), pid, "{options:?}");
    }
    // The earlier daemon has this port until it ends.
    let status = daemon.run(&["daemon", "status", "--json"], 0);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    let own = status["daemon"]["listening"][0].as_str().unwrap();
    let own = own.strip_prefix("http://").unwrap();
    daemon.run(&["daemon", "restart", "--listen", own], 0);
    assert_ne!(daemon.pid(), pid);
    daemon.stop();
}

#[test]
fn command_with_daemon_starts_it_and_leaves_it_running() {
    let world = World::new();
    let script = world.script(&turn("through the daemon"));
    let daemon = Daemon { world };
    let mut child = daemon
        .command(&["serve", "--daemon", "--", FAKE_AGENT, &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "agent/connect"}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "session/ensure", "params": {"sessionId": "s"}}),
        json!({"jsonrpc": "2.0", "id": 4, "method": "session/prompt", "params": {"sessionId": "s", "message": "hi"}}),
        json!({"jsonrpc": "2.0", "id": 5, "method": "shutdown"}),
    ];
    for line in &lines[..4] {
        writeln!(stdin, "{line}").unwrap();
    }
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut answers = std::io::BufRead::lines(&mut reader).map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<Value>(&line).unwrap()
    });
    let prompted = answers.find(|answer| answer["id"] == 4).unwrap();
    assert_eq!(prompted["result"]["text"], "through the daemon");
    // The client's shutdown ends its connection only.
    writeln!(stdin, "{}", lines[4]).unwrap();
    let done = answers.find(|answer| answer["id"] == 5).unwrap();
    assert_eq!(done["result"], json!({}));
    assert!(answers.next().is_none());
    assert!(child.wait().unwrap().success());
    drop(stdin);
    daemon.pid();
    daemon.stop();
}

#[test]
fn crash_of_the_daemon_loses_nothing_and_leaves_no_agent() {
    let world = World::new();
    let script = world.script(&json!({
        "session/prompt": [[say("seen"), {"wait": "session/cancel"}, end("cancelled")]],
    }));
    let daemon = Daemon::start_in(world, &[]);
    let options = ["--", FAKE_AGENT, &script];
    let mut client = daemon.client(&options);
    client.ensure("s");
    client.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "one", "turnId": "t"}),
    );
    while !client
        .chunks
        .get("s")
        .is_some_and(|all| all.iter().any(|(.., c)| c["delta"] == "seen"))
    {
        client.next("session/chunk");
    }
    signal(daemon.pid(), Signal::KILL);
    client.read_to_end();
    assert_eq!(daemon.world.leak(), None);
    let seen = client.chunks.remove("s").unwrap();
    daemon.run(&["daemon", "start"], 0);
    let mut client = daemon.client(&options);
    client.ensure("s");
    let logged = super::client::logged(&mut client, "s");
    assert_eq!(&logged[..seen.len()], &seen[..]);
    daemon.stop();
}

#[test]
fn invalid_first_lines_are_refused() {
    let daemon = Daemon::start(&[]);
    let hello = |version: u32, args: Value| json!({"socketVersion": version, "acpipe": "9.9.9", "purpose": "client", "cwd": "/", "args": args});
    for (hello, words) in [
        (json!([]), ""),
        (json!({"socketVersion": 2}), ""),
        (hello(2, json!(["agents", "list"])), ""),
        (hello(2, json!(["serve", "--no-such"])), ""),
        (hello(2, json!(["demo-agent"])), ""),
        (hello(99, json!(["serve"])), "9.9.9 acpipe daemon restart"),
    ] {
        let client = Client::greet(&daemon.socket(), &hello).unwrap();
        let message = client.welcome["refused"]["message"].as_str();
        let message = message.unwrap_or_else(|| panic!("{hello}: {}", client.welcome));
        let (version, command) = words.split_once(' ').unwrap_or_default();
        let names = message.contains(version) && message.contains(command);
        assert!(names, "{hello}: {message}");
    }
    daemon.stop();
}

#[test]
fn configuration_can_ask_for_the_daemon_but_a_project_cannot() {
    let daemon = Daemon::start(&[]);
    let config = daemon.world.dir.join("config/acpipe");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "attach = true\n").unwrap();
    let before = daemon.run(&["serve", "--no-daemon"], 0);
    assert!(before.stderr.is_empty(), "{before:?}");
    let refused = daemon.run(&["serve", "--record", "tape"], 2);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cannot be used with the daemon"));
    daemon.world.file(".acpipe.toml", "attach = true\n");
    std::fs::remove_file(config.join("config.toml")).unwrap();
    // The directory of the test is the home directory, in which a file is not of a project.
    let project = daemon.world.dir.join("project");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::write(project.join(".acpipe.toml"), "attach = true\n").unwrap();
    let mut command = daemon.command(&["serve"]);
    let output = command
        .current_dir(&project)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("user's own configuration file"), "{text}");
    daemon.stop();
}
