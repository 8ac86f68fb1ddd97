//! Files of other users in places where acpipe looks for its own: they decide nothing, and nothing is written to them.

use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};
use std::path::Path;
use std::process::Output;

/// A user who does not run the tests.
const STRANGER: u32 = 65534;

/// Gives a file to another user. Returns `false` if the tests may not, because root does not run them.
fn give_away(path: &Path) -> bool {
    if rustix::process::geteuid().is_root() {
        lchown(path, Some(STRANGER), Some(STRANGER)).unwrap();
        return true;
    }
    // Written directly, since the test runner hides the output of a test that passes.
    let note = "SKIPPED: only root can give a file to another user";
    let _ = writeln!(std::io::stderr(), "{note}");
    false
}

fn open_to_all(dir: &Path) {
    fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
}

/// Runs acpipe without a terminal. The variable of sudo must not count.
fn acpipe(world: &World, cwd: &Path, args: &[&str]) -> Output {
    let mut command = world.acpipe(args);
    command.env_remove("SUDO_UID").current_dir(cwd);
    command.stdin(std::process::Stdio::null()).output().unwrap()
}

fn run(world: &World, cwd: &Path, session: &str) -> Output {
    let script = world.script(&json!({"session/prompt": [[say("answer"), end("end_turn")]]}));
    let args = ["run", "hi", "--session", session, "--", FAKE_AGENT, &script];
    acpipe(world, cwd, &args)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn project_file_of_another_user_has_no_effect_and_is_named() {
    let world = World::new();
    let below = world.dir.join("common/project");
    fs::create_dir_all(&below).unwrap();
    open_to_all(&world.dir.join("common"));
    let file = world.dir.join("common/.acpipe.toml");
    // Read, it would end the run with a usage error.
    fs::write(&file, "unknown_key = 1\n").unwrap();
    assert_eq!(run(&world, &below, "a").status.code(), Some(2));
    if !give_away(&file) {
        return;
    }
    let output = run(&world, &below, "a");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let note = format!(
        "{} has no effect: it belongs to user {STRANGER}",
        file.display()
    );
    assert!(stderr(&output).contains(&note), "{}", stderr(&output));
}

#[test]
fn directories_of_other_users_are_not_searched_for_a_project_file() {
    let world = World::new();
    let home = world.dir.join("stranger");
    let own = home.join("shared/project");
    fs::create_dir_all(&own).unwrap();
    fs::write(home.join(".acpipe.toml"), "unknown_key = 1\n").unwrap();
    if !give_away(&home.join("shared")) {
        return;
    }
    let output = run(&world, &own, "a");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn state_directory_of_another_user_is_refused_by_every_command() {
    for part in ["", "trusted", "sessions", "profiles"] {
        let world = World::new();
        let state = world.dir.join("state");
        fs::create_dir_all(state.join(part)).unwrap();
        open_to_all(&state);
        if !give_away(&state.join(part)) {
            return;
        }
        let script = world.script(&json!({}));
        for args in [
            &["run", "hi", "--session", "a", "--", FAKE_AGENT, &script][..],
            &["serve", "--", FAKE_AGENT, &script],
            &["acp", "--", FAKE_AGENT, &script],
            &["sessions", "list"],
            &["permissions", "show"],
            &["daemon", "start"],
            &["agents", "trust"],
        ] {
            let output = acpipe(&world, &world.dir, args);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(74), "{part:?} {args:?}: {said}");
            let owner = format!("belongs to user {STRANGER}");
            assert!(
                said.contains(&owner) && said.contains("--state-dir"),
                "{args:?}: {said}"
            );
        }
        assert_eq!(fs::read_dir(state.join(part)).unwrap().count(), 0);
    }
}

#[test]
fn link_in_place_of_a_log_is_not_followed() {
    let world = World::new();
    let (target, sessions) = (
        world.dir.join("notes.txt"),
        world.dir.join("state/sessions"),
    );
    fs::write(&target, "mine\n").unwrap();
    fs::create_dir_all(&sessions).unwrap();
    symlink(&target, sessions.join("a.jsonl")).unwrap();
    let output = run(&world, &world.dir, "a");
    assert_eq!(output.status.code(), Some(74), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
}

#[test]
fn log_of_another_user_in_an_open_directory_is_not_continued() {
    let world = World::new();
    run(&world, &world.dir, "a");
    open_to_all(&world.dir.join("state/sessions"));
    let log = world.dir.join("state/sessions/a.jsonl");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o666)).unwrap();
    if !give_away(&log) {
        return;
    }
    let output = run(&world, &world.dir, "a");
    assert_eq!(output.status.code(), Some(74), "{}", stderr(&output));
}

#[test]
fn own_state_directory_that_others_can_write_is_named() {
    let world = World::new();
    let state = world.dir.join("state");
    fs::create_dir_all(&state).unwrap();
    open_to_all(&state);
    let said = stderr(&run(&world, &world.dir, "a"));
    let note = format!(
        "every user of this machine can create files in {}",
        state.display()
    );
    assert!(said.contains(&note), "{said}");
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    let said = stderr(&run(&world, &world.dir, "a"));
    assert!(!said.contains("every user"), "{said}");
}

#[test]
fn default_configuration_of_another_user_is_refused() {
    let world = World::new();
    let file = world.dir.join("config/acpipe/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    assert_eq!(run(&world, &world.dir, "a").status.code(), Some(0));
    if !give_away(&file) {
        return;
    }
    let output = run(&world, &world.dir, "a");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(
        said.contains(&format!("belongs to user {STRANGER}")),
        "{said}"
    );
    // A file that the user names is their choice.
    let named = ["agents", "--config", file.to_str().unwrap()];
    assert_eq!(acpipe(&world, &world.dir, &named).status.code(), Some(0));
}
