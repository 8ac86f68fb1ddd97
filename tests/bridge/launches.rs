//! acpipe and its supervisors are killed together, by name or one after the other: no process is left, at the
//! latest after the next start of acpipe.

use crate::harness::run::Run;
use crate::harness::server::Server;
use crate::harness::steps::say;
use crate::harness::{FAKE_AGENT, LIMIT, World, signal, words};
use crate::supervisor::{await_leftover_processes, family, supervisors};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

/// Starts acpipe with an agent in a turn, and with the processes that the agent starts.
fn busy() -> Server {
    let mut turn = family();
    turn.extend([say("x"), json!({"hang": true})]);
    let mut s = Server::ready(&json!({"session/prompt": [turn]}));
    s.send_prompt("default", "go");
    s.await_chunk("default", |c| c["delta"] == "x");
    await_leftover_processes(&s);
    s
}

/// Returns the names that `killall`, `pkill` and `pidof` compare: the name of the process and that of its
/// first argument.
fn names(pid: i32) -> [String; 2] {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let line = read("cmdline");
    let first = line.split('\0').next().unwrap_or_default();
    let base = Path::new(first).file_name().unwrap_or_default();
    [
        read("comm").trim_end().to_owned(),
        base.to_string_lossy().into_owned(),
    ]
}

/// Kills acpipe and its supervisors. All are stopped first, so none of them can react.
fn kill_all_of_acpipe(s: &mut Server) {
    let mut all = supervisors(&s.world);
    assert!(!all.is_empty());
    all.push(s.pid());
    for fatal in [Signal::STOP, Signal::KILL] {
        for &pid in &all {
            signal(pid, fatal);
        }
    }
    s.kill();
}

fn records(world: &World) -> Vec<PathBuf> {
    let entries = fs::read_dir(world.dir.join("state/launches")).into_iter();
    entries
        .flatten()
        .map(|entry| entry.unwrap().path())
        .collect()
}

fn await_only(world: &World, pid: i32) {
    let since = Instant::now();
    while world.alive().iter().any(|(alive, _)| *alive != pid) {
        assert!(since.elapsed() < LIMIT, "{:?}", world.alive());
        thread::yield_now();
    }
}

#[test]
fn killall_acpipe_leaves_no_process() {
    let mut s = busy();
    let alive = s.world.alive().into_iter();
    // As `pkill -9 acpipe` does; `killall` and `pidof` match whole names only.
    let named = alive.filter(|(pid, _)| names(*pid).iter().any(|name| name.contains("acpipe")));
    let named: Vec<i32> = named.map(|(pid, _)| pid).collect();
    assert_eq!(named, [s.pid()]);
    s.kill();
    if let Some(left) = s.world.leak() {
        s.fail(&left);
    }
}

#[test]
fn a_stopped_supervisor_ends_its_agent_when_acpipe_is_killed() {
    let mut s = busy();
    let supervisors = supervisors(&s.world);
    assert!(!supervisors.is_empty());
    for pid in supervisors {
        signal(pid, Signal::STOP);
        let since = Instant::now();
        let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        while !stat().contains(") T ") {
            assert!(since.elapsed() < LIMIT);
        }
    }
    s.kill();
    if let Some(left) = s.world.leak() {
        s.fail(&left);
    }
}

#[test]
fn next_start_ends_processes_of_killed_acpipe_and_supervisors() {
    let mut s = busy();
    kill_all_of_acpipe(&mut s);
    let left = s.world.alive();
    assert!(left.len() >= 5, "{left:?}");
    assert_eq!(records(&s.world).len(), 1);

    let mut s = s.next(&[]);
    s.initialize();
    let own = s.pid();
    await_only(&s.world, own);
    let end = s.finish();
    assert!(end.stderr.contains("orphaned process"), "{}", end.stderr);
    assert!(end.stderr.contains("sleep 1000"), "{}", end.stderr);
}

#[test]
fn processes_are_listed_and_ended_on_demand() {
    let mut s = busy();
    let listed = |world: &World, args: &[&str]| -> Vec<Value> {
        let args = [&["processes", "--json"], args].concat();
        let output = world.acpipe(&args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect()
    };
    let acpipe = s.pid();
    let running = listed(&s.world, &[]);
    assert!(running.len() >= 7, "{running:?}");
    assert!(
        running
            .iter()
            .all(|p| p["left"] == false && p["acpipe"] == acpipe),
        "{running:?}"
    );
    // Processes of a running acpipe are not ended.
    let ended = listed(&s.world, &["--end"]);
    assert!(ended.is_empty(), "{ended:?}");
    let alive = s.world.alive();
    assert!(alive.len() >= 9, "{alive:?}");

    kill_all_of_acpipe(&mut s);
    let left = listed(&s.world, &[]);
    assert!(left.len() >= 5, "{left:?}");
    assert!(left.iter().all(|p| p["left"] == true), "{left:?}");
    let ended = listed(&s.world, &["--end"]);
    // The agent itself may have exited at the end of its stdin.
    assert!(ended.len() >= 5, "{ended:?}");
    assert_eq!(s.world.alive(), [], "ended: {ended:?}");
    assert!(records(&s.world).is_empty(), "{:?}", records(&s.world));
    let left = listed(&s.world, &[]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn concurrent_starts_end_only_leftover_processes() {
    let mut s = busy();
    kill_all_of_acpipe(&mut s);
    let script = s
        .world
        .script(&json!({"session/prompt": [[say("y"), {"reply": {"stopReason": "end_turn"}}]]}));
    let runs: Vec<_> = (0..6)
        .map(|_| {
            let mut run = s.world.acpipe(&["run", "hello", "--", FAKE_AGENT, &script]);
            run.stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            run.spawn().unwrap()
        })
        .collect();
    let mut told = 0;
    for run in runs {
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"y\n");
        told += usize::from(String::from_utf8_lossy(&output.stderr).contains("orphaned process"));
    }
    assert_eq!(told, 1);
    assert_eq!(s.world.alive(), []);
    assert!(records(&s.world).is_empty());
}

#[test]
fn process_with_the_id_of_a_dead_acpipe_is_left_alone() {
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let run = Run::new(&["processes", "--end"]);
    let launches = run.world.dir.join("state/launches");
    fs::create_dir_all(&launches).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    for (name, record) in [
        ("a", json!({"format": 1, "pid": other.id(), "started": 1, "boot": boot.trim(), "graceMs": 0}).to_string()),
        ("b", json!({"format": 1, "pid": other.id(), "started": 1, "boot": "another"}).to_string()),
        ("c", "torn".to_owned()),
    ] {
        fs::write(launches.join(name).with_extension("json"), record).unwrap();
    }
    let output = run.world.acpipe(&["processes", "--end"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(other.try_wait().unwrap().is_none());
    assert!(records(&run.world).is_empty());
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn launch_record_exists_while_acpipe_runs() {
    let mut s = Server::start(&[]);
    s.initialize();
    // A thread writes the record. The first process waits for it.
    s.connect(&json!({}));
    assert_eq!(records(&s.world).len(), 1);
    s.close_stdin();
    s.ended();
    assert!(!s.world.dir.join("state").exists());
}

#[test]
fn too_few_file_descriptors_are_an_error() {
    let mut world = World::new();
    for limit in (3..40).step_by(3) {
        world.open_files = Some(limit);
        for verb in [
            "run hello",
            "serve",
            "demo-agent",
            "sessions list",
            "processes",
        ] {
            let output = world.acpipe(&words(verb)).stdin(Stdio::null()).output();
            let output = output.unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let about = format!("{verb} with {limit}: {stderr}");
            assert!(!stderr.contains("panicked"), "{about}");
            assert_ne!(output.status.code(), Some(101), "{about}");
            assert!(output.status.success() || !stderr.is_empty(), "{about}");
        }
    }
}
