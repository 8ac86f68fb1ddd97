//! Files of other users in places where acpipe looks for its own: they decide nothing, and nothing is written to them.

mod race;
mod written;

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
fn directories_of_other_users_are_passed_over_in_the_search() {
    let world = World::new();
    let own = world.dir.join("own");
    let project = own.join("stranger/shared/project");
    fs::create_dir_all(&project).unwrap();
    // The file is the user's, and another user could have moved it there.
    fs::write(own.join("stranger/.acpipe.toml"), "unknown_key = 1\n").unwrap();
    if !give_away(&own.join("stranger")) {
        return;
    }
    let output = run(&world, &project, "a");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let file = own.join(".acpipe.toml");
    fs::write(&file, "unknown_key = 1\n").unwrap();
    let output = run(&world, &project, "a");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(file.to_str().unwrap()));
}

/// Puts something into a directory that all can write, below the user's own project, and gives it away.
type Put = fn(&Path);

#[test]
fn nothing_of_another_user_hides_the_projects_file_of_the_user() {
    let file: Put = |at| fs::write(at.join(".acpipe.toml"), "agent = \"demo\"\n").unwrap();
    let private: Put = |at| {
        let file = at.join(".acpipe.toml");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    };
    let link: Put = |at| symlink("/nonexistent", at.join(".acpipe.toml")).unwrap();
    let own_target: Put = |at| {
        fs::write(at.join("target"), "agent = \"demo\"\n").unwrap();
        symlink(at.join("target"), at.join(".acpipe.toml")).unwrap();
    };
    let directory: Put = |at| fs::create_dir(at.join(".acpipe.toml")).unwrap();
    let socket: Put = |at| {
        drop(std::os::unix::net::UnixListener::bind(at.join(".acpipe.toml")).unwrap());
    };
    let git: Put = |at| fs::write(at.join(".git"), "").unwrap();
    let git_directory: Put = |at| fs::create_dir(at.join(".git")).unwrap();
    for (at, put) in [
        file,
        private,
        link,
        own_target,
        directory,
        socket,
        git,
        git_directory,
    ]
    .into_iter()
    .enumerate()
    {
        let world = World::new();
        let below = world.dir.join("project/open");
        fs::create_dir_all(&below).unwrap();
        open_to_all(&below);
        let own = world.dir.join("project/.acpipe.toml");
        fs::write(&own, "unknown_key = 1\n").unwrap();
        put(&below);
        for name in [".acpipe.toml", ".git"] {
            let path = below.join(name);
            if path.symlink_metadata().is_ok() && !give_away(&path) {
                return;
            }
        }
        let output = run(&world, &below, "a");
        assert_eq!(output.status.code(), Some(2), "{at}: {}", stderr(&output));
        assert!(stderr(&output).contains(own.to_str().unwrap()), "{at}");
        fs::write(&own, "").unwrap();
        let output = run(&world, &below, "a");
        assert_eq!(output.status.code(), Some(0), "{at}: {}", stderr(&output));
        let note = format!("{} has no effect", below.join(".acpipe.toml").display());
        let has_file = below.join(".acpipe.toml").symlink_metadata().is_ok();
        assert_eq!(stderr(&output).contains(&note), has_file, "{at}");
    }
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

#[test]
fn default_configuration_that_every_user_can_write_is_refused() {
    let world = World::new();
    let file = world.dir.join("config/acpipe/config.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let output = run(&world, &world.dir, "a");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("chmod o-w"), "{}", stderr(&output));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o664)).unwrap();
    assert_eq!(run(&world, &world.dir, "a").status.code(), Some(0));
}

#[test]
fn own_link_to_the_configuration_is_followed_and_that_of_another_user_is_not() {
    let world = World::new();
    let (target, link) = (
        world.dir.join("dotfiles/acpipe.toml"),
        world.dir.join("config/acpipe/config.toml"),
    );
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    fs::write(&target, "agent = \"demo\"\n").unwrap();
    symlink("../../dotfiles/acpipe.toml", &link).unwrap();
    let show = || acpipe(&world, &world.dir, &["agents", "default"]);
    assert!(
        String::from_utf8_lossy(&show().stdout).starts_with("demo"),
        "{:?}",
        show()
    );
    // A change keeps the link.
    let unset = ["agents", "default", "--unset"];
    assert!(acpipe(&world, &world.dir, &unset).status.success());
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), "");
    if !give_away(&link) {
        return;
    }
    let output = show();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("belongs to user {STRANGER}")));
}

#[test]
fn trusted_copy_that_every_user_can_write_is_not_used() {
    let world = World::new();
    let project = world.dir.join("project");
    fs::create_dir(&project).unwrap();
    let text = "[agents.own]\ncommand = \"true\"\n";
    fs::write(project.join(".acpipe.toml"), text).unwrap();
    let trust = acpipe(&world, &project, &["agents", "trust"]);
    assert!(trust.status.success(), "{trust:?}");
    let is_locked = || {
        let list = acpipe(&world, &project, &["agents", "list"]);
        stderr(&list).contains("agents trust")
    };
    assert!(!is_locked());
    let copies = fs::read_dir(world.dir.join("state/trusted")).unwrap();
    for copy in copies {
        let mode = fs::Permissions::from_mode(0o666);
        fs::set_permissions(copy.unwrap().path(), mode).unwrap();
    }
    assert!(is_locked());
}

#[test]
fn gc_skips_a_log_of_another_user_and_removes_the_rest() {
    let world = World::new();
    let sessions = world.dir.join("state/sessions");
    for session in ["a", "b", "c"] {
        run(&world, &world.dir, session);
    }
    open_to_all(&sessions);
    // With and without the card of the user.
    fs::remove_file(sessions.join("b.json")).unwrap();
    fs::write(sessions.join("left.json"), "{}").unwrap();
    for log in ["a.jsonl", "b.jsonl"] {
        if !give_away(&sessions.join(log)) {
            return;
        }
    }
    for dry in [&["-n"][..], &[]] {
        let args = [&["sessions", "gc", "--older-than", "0s"], dry].concat();
        let output = acpipe(&world, &world.dir, &args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        for log in ["a.jsonl", "b.jsonl"] {
            let path = sessions.join(log);
            let note = format!("skipped {}: it belongs to user {STRANGER}", path.display());
            assert_eq!(
                stderr(&output).matches(&note).count(),
                1,
                "{}",
                stderr(&output)
            );
        }
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains("left.json") && out.contains("c, "), "{out}");
    }
    assert!(sessions.join("a.jsonl").exists() && sessions.join("b.jsonl").exists());
    assert!(!sessions.join("c.jsonl").exists() && !sessions.join("left.json").exists());
}
