//! Supervisors: the program itself, an installed acpipe, or none.

use crate::examples::example;
use crate::harness::{ACPIPE, MARK, World, end, prompts, say, within};
use serde_json::json;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Name of a supervisor's process.
const SUPERVISOR: &str = "supervise-agent";

fn names(world: &World) -> Vec<String> {
    let mut names: Vec<String> = world.alive().into_iter().map(|(_, name)| name).collect();
    names.sort();
    names
}

#[tokio::test]
async fn agent_without_supervisor_ends_with_its_group_and_its_escaped_tools() {
    let world = World::new();
    let spawn = |setsid: bool| json!({"spawn": {"command": ["sleep", "600"], "setsid": setsid}});
    let steps = vec![spawn(false), spawn(true), say("spawned"), end("end_turn")];
    let acpipe = world.builder(&prompts(&[steps]));
    let acpipe = acpipe.without_supervisor().start().unwrap();
    let session = within(acpipe.session("chat").ensure()).await.unwrap();
    let turn = within(session.prompt("go").into_future()).await.unwrap();
    within(turn.summary()).await.unwrap();
    world.wait_until("both tools run", |world| {
        names(world) == ["fake-agent", "sleep", "sleep"]
    });
    let status = within(acpipe.agent_status("default")).await.unwrap();
    assert_eq!(status.processes[0].tree, Some(3), "{status:?}");
    within(acpipe.shutdown()).await;
    world.wait_until("no process is left", |world| world.alive().is_empty());
}

/// Runs in a process of its own, for the tests below: its `PATH` decides about the supervisor.
#[tokio::test]
#[ignore = "started by other tests"]
async fn probe() {
    let world = World::new();
    let builder = acpipe::Acpipe::builder()
        .cwd(&world.dir)
        .without_login_shell()
        .agent(world.agent(&json!({})));
    let acpipe = builder.start().unwrap();
    let _session = within(acpipe.session("chat").ensure()).await.unwrap();
    println!("\nprocesses: {}", names(&world).join(" "));
    within(acpipe.shutdown()).await;
    assert_eq!(world.alive(), []);
}

fn probed_with(path: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "supervision::probe", "--ignored", "--nocapture"])
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|l| l.strip_prefix("processes: "));
    line.unwrap().to_owned()
}

#[test]
fn installed_acpipe_of_the_same_version_is_the_supervisor() {
    let world = World::new();
    assert_eq!(
        probed_with(Path::new(ACPIPE).parent().unwrap()),
        format!("fake-agent {SUPERVISOR}")
    );
    let other = world.dir.join("acpipe");
    std::fs::write(&other, "#!/bin/sh\necho acpipe 0.0.0\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&other, executable).unwrap();
    assert_eq!(probed_with(&world.dir), "fake-agent");
}

#[test]
fn program_that_calls_init_supervises_its_agents_even_if_it_is_killed() {
    let world = World::new();
    let mut chat = Command::new(example("chat"))
        .arg(format!("{ACPIPE} demo-agent"))
        .env("PATH", "/nowhere")
        .env(MARK, &world.mark)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = chat.stdin.take().unwrap();
    writeln!(stdin, "hello").unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(chat.stdout.take().unwrap());
    stdout.read_line(&mut answer).unwrap();
    let own = i32::try_from(chat.id()).unwrap();
    let alive = world.alive();
    let supervisor = alive.iter().find(|(pid, _)| *pid != own && is_chat(*pid));
    let (_, name) = supervisor.unwrap();
    assert_eq!(name, SUPERVISOR, "{alive:?}");
    chat.kill().unwrap();
    chat.wait().unwrap();
    world.wait_until("no process is left", |world| world.alive().is_empty());
}

fn is_chat(pid: i32) -> bool {
    let file = std::fs::read_link(format!("/proc/{pid}/exe"));
    file.is_ok_and(|file| file.ends_with("examples/chat"))
}
