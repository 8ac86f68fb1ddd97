//! No process of an agent is left behind, however acpipe, the agent or the supervisor between them ends.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{ACPIPE, LIMIT, World, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Processes that an agent leaves behind: in its group, in their own sessions, without a parent, and ignoring
/// SIGTERM.
pub fn family() -> Vec<Value> {
    let deaf = r#"trap "" TERM; echo; while :; do sleep 1000; done"#;
    let commands = [
        (json!(["sleep", "1000"]), false),
        (json!(["sleep", "1000"]), true),
        (json!(["sh", "-c", "(setsid sleep 1000 &)"]), false),
        (json!(["sh", "-c", deaf]), true),
        (json!(["setsid", "sh", "-c", format!("({deaf}) &")]), true),
    ];
    let spawn = |(command, setsid)| json!({"spawn": {"command": command, "setsid": setsid}});
    commands.into_iter().map(spawn).collect()
}

/// Script of an agent that starts a family of processes. A stubborn agent ignores SIGTERM and the end of its
/// stdin.
fn script(stubborn: bool) -> Value {
    let mut turn = family();
    turn.extend([
        say("x"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ]);
    let mut script = json!({"session/prompt": [turn]});
    if stubborn {
        script["start"] = json!([{"ignoreTerm": true}]);
        script["eof"] = json!([{"hang": true}]);
    }
    script
}

/// Starts acpipe with an agent in a turn and the agent's family, lets `end` stop acpipe, and fails if a
/// process is left.
fn assert_no_process_is_left(stubborn: bool, end: impl FnOnce(&mut Server)) {
    let mut s = Server::ready(&script(stubborn));
    s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    await_leftover_processes(&s);
    end(&mut s);
    if let Some(left) = s.world.leak() {
        s.fail(&left);
    }
}

#[test]
fn uncaught_signal_to_acpipe_leaves_no_process() {
    thread::scope(|all| {
        for fatal in [Signal::KILL, Signal::ABORT, Signal::QUIT, Signal::USR1] {
            for stubborn in [false, true] {
                all.spawn(move || {
                    assert_no_process_is_left(stubborn, |s| {
                        signal(s.pid(), fatal);
                        s.ended();
                    });
                });
            }
        }
    });
}

#[test]
fn orderly_exit_leaves_no_process() {
    let ends: [fn(&mut Server); 5] = [
        Server::close_stdin,
        |s| drop(s.send("shutdown", &json!({}))),
        |s| signal(s.pid(), Signal::TERM),
        |s| signal(s.pid(), Signal::INT),
        |s| signal(s.pid(), Signal::HUP),
    ];
    thread::scope(|all| {
        for end in ends {
            for stubborn in [false, true] {
                all.spawn(move || {
                    assert_no_process_is_left(stubborn, |s| {
                        end(s);
                        s.ended();
                        // No process is left even before the harness waits.
                        assert_eq!(s.world.alive(), [], "stubborn: {stubborn}");
                    });
                });
            }
        }
    });
}

#[test]
fn agent_exit_leaves_no_process() {
    let mut turn = family();
    turn.extend([say("x"), json!({"exit": 4})]);
    let mut s = Server::ready(&json!({"session/prompt": [turn, [say("y"), end("end_turn")]]}));
    let failed = s.prompt("go");
    assert_eq!(failed.summary["errors"][0]["data"]["exitCode"], 4);
    assert_eq!(failed.summary["text"], "x");
    let alive = s.world.alive();
    assert_eq!(alive.len(), 1, "only acpipe: {alive:?}");
    s.agent_states(&["disconnected"]);
    s.finish();
}

#[test]
fn killed_supervisor_is_detected_and_leaves_no_process() {
    let mut turn = family();
    turn.extend([say("x"), json!({"hang": true})]);
    let mut s = Server::ready(&json!({"session/prompt": [turn]}));
    let id = s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    await_leftover_processes(&s);
    signal(supervisors(&s.world)[0], Signal::KILL);
    let turn = s.turn(&id);
    assert_eq!(turn.summary["errors"][0]["kind"], "agentExited");
    s.agent_states(&["disconnected"]);
    let since = Instant::now();
    while s.world.alive().len() > 1 {
        assert!(since.elapsed() < LIMIT, "{:?}", s.world.alive());
        thread::yield_now();
    }
    s.finish();
}

/// Returns the pids of the test's supervisors.
pub fn supervisors(world: &World) -> Vec<i32> {
    let alive = world.alive().into_iter();
    let supervisors = alive.filter(|(_, line)| line.starts_with("supervise-agent "));
    supervisors.map(|(pid, _)| pid).collect()
}

/// Waits until all processes of the agent's family run: each of its five commands ends in a `sleep`. The last
/// of them start with a short delay.
pub fn await_leftover_processes(s: &Server) {
    let since = Instant::now();
    let is_sleep = |line: &str| line.trim_end() == "sleep 1000";
    while s
        .world
        .alive()
        .iter()
        .filter(|(_, line)| is_sleep(line))
        .count()
        < 5
    {
        assert!(since.elapsed() < LIMIT, "{:?}", s.world.alive());
    }
}

#[test]
fn status_measures_the_process_tree() {
    let mut turn = family();
    turn.extend([say("x"), end("end_turn")]);
    let mut s = Server::ready(&json!({"session/prompt": [turn]}));
    let before = s.call("agent/status", &json!({}));
    assert_eq!(before["processes"][0]["pid"], before["pid"]);
    assert_eq!(before["processes"][0]["tree"], 1, "{before}");
    assert!(before["processes"][0]["rssBytes"].as_u64() > Some(100_000));
    s.prompt("go");
    // Simultaneous calls are all answered.
    let asked: Vec<_> = (0..20)
        .map(|_| s.send("agent/status", &json!({})))
        .collect();
    for id in asked {
        let status = s.result(&id);
        assert!(
            status["processes"][0]["tree"].as_u64() >= Some(5),
            "{status}"
        );
        assert_eq!(status["restarts"], 0);
    }
    s.finish();
}

#[test]
fn exit_of_the_client_process_ends_acpipe() {
    let mut s = Server::ready(&json!({"session/prompt": [[say("x"), {"hang": true}]]}));
    let mut client = Command::new("sleep").arg("1000").spawn().unwrap();
    let told = json!({"protocolVersion": 1, "processId": client.id()});
    s.call("initialize", &told);
    s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    client.kill().unwrap();
    client.wait().unwrap();
    // stdin and stdout stay open.
    s.ended();
    assert_eq!(s.world.alive(), []);
}

#[test]
fn unknown_client_process_id_does_not_end_acpipe() {
    let mut s = Server::start(&[]);
    let nobody = json!({"protocolVersion": 1, "processId": 2_000_000_000});
    s.call("initialize", &nobody);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "processId": null}),
    );
    s.finish();
}

#[test]
fn agent_without_leftovers_ends_without_delay() {
    let mut s = Server::initialized(&[]);
    let ends = (0..5).map(|_| {
        s.connect(&json!({}));
        let since = Instant::now();
        s.call("agent/disconnect", &json!({}));
        s.agent_states(&["stopping", "disconnected"]);
        since.elapsed()
    });
    // The fastest attempt counts, since the machine may be busy. The grace period for leftover processes is
    // 500 ms.
    assert!(ends.min() < Some(Duration::from_millis(400)));
    s.finish();
}

#[test]
fn agent_keeps_the_open_file_limit() {
    let world = World::new();
    let told = world.dir.join("limits");
    let tells = format!("ulimit -Sn > {}", told.display());
    let agent = world.executable("agent", &format!("#!/bin/sh\n{tells}\n"));
    let limited = format!(r#"ulimit -Sn 100; exec "{ACPIPE}" run hello -- "{agent}""#);
    let mut run = Command::new("sh");
    run.args(["-c", &limited])
        .env("ACPIPE_STATE_DIR", world.dir.join("state"));
    assert!(!run.output().unwrap().status.success());
    assert_eq!(fs::read_to_string(told).unwrap().trim(), "100");
}

#[test]
fn running_acpipe_binary_can_be_replaced() {
    let world = World::new();
    let other = world.dir.join("acpipe");
    fs::hard_link(ACPIPE, &other).unwrap();
    let mut serve = world.command(other.to_str().unwrap());
    serve.arg("serve");
    let mut s = Server::of(world, serve, Framing::Lines);
    s.initialize();
    fs::remove_file(&other).unwrap();
    fs::write(&other, "another version").unwrap();
    s.connect(&json!({}));
    s.finish();
}
