//! Files that acpipe writes, in places where another user has put something.

use super::{STRANGER, acpipe, give_away, open_to_all, run, stderr};
use crate::daemon::Daemon;
use crate::harness::World;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

/// Beginning of a tape, which `--record` replaces.
const TAPE: &str = "{\"tape\":1,\"acpipe\":\"0.1.0\",\"startedAt\":\"2026-11-24T13:05:44Z\"}\n";

/// Commands that write to a file, with their exit codes if they must not.
fn writers(file: &str) -> [(Vec<String>, i32); 3] {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    [
        (
            words(&format!("run --ephemeral --agent demo --record {file} hi")),
            2,
        ),
        (
            words(&format!(
                "run --ephemeral --agent demo -vvv --log-file {file} hi"
            )),
            2,
        ),
        (words(&format!("trace a -o {file}")), 74),
    ]
}

#[test]
fn configuration_of_another_user_is_not_changed() {
    let world = World::new();
    for is_link in [false, true] {
        let (file, own) = (world.dir.join("named.toml"), world.dir.join("own.toml"));
        let _ = fs::remove_file(&file);
        fs::write(&own, "agent = \"demo\"\n").unwrap();
        if is_link {
            symlink(&own, &file).unwrap();
        } else {
            fs::copy(&own, &file).unwrap();
        }
        if !give_away(&file) {
            return;
        }
        let config = file.to_str().unwrap();
        let add = [
            "agents",
            "add",
            "x",
            "-e",
            "TOKEN=secret",
            "--config",
            config,
            "--",
            "x",
        ];
        let said = write_to(&world, &add.map(str::to_owned), 2);
        let owner = format!("belongs to user {STRANGER}");
        assert!(said.contains(&owner) && said.contains("choose"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "agent = \"demo\"\n");
    }
}

fn write_to(world: &World, args: &[String], code: i32) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = acpipe(world, &world.dir, &args);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{args:?}: {}",
        stderr(&output)
    );
    stderr(&output)
}

#[test]
fn file_of_another_user_is_not_written() {
    let world = World::new();
    run(&world, &world.dir, "a");
    let file = world.dir.join("output");
    for (args, code) in writers(file.to_str().unwrap()) {
        fs::write(&file, TAPE).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        if !give_away(&file) {
            return;
        }
        let said = write_to(&world, &args, code);
        let owner = format!("belongs to user {STRANGER}");
        assert!(said.contains(&owner) && said.contains("choose"), "{said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), TAPE, "{args:?}");
    }
}

#[test]
fn output_does_not_follow_a_link_of_another_user() {
    for target in ["target", "missing"] {
        let world = World::new();
        run(&world, &world.dir, "a");
        let own = world.dir.join(target);
        let link = world.dir.join("link");
        for (args, code) in writers(link.to_str().unwrap()) {
            fs::write(world.dir.join("target"), TAPE).unwrap();
            let _ = fs::remove_file(&link);
            symlink(&own, &link).unwrap();
            if !give_away(&link) {
                return;
            }
            write_to(&world, &args, code);
            let kept = fs::read_to_string(world.dir.join("target")).unwrap();
            assert_eq!(kept, TAPE, "{args:?}");
            assert!(!world.dir.join("missing").exists(), "{args:?}");
        }
    }
}

#[test]
fn output_follows_the_links_of_the_user() {
    let world = World::new();
    run(&world, &world.dir, "a");
    let link = world.dir.join("link");
    symlink("between", &link).unwrap();
    symlink(world.dir.join("target"), world.dir.join("between")).unwrap();
    for (args, _) in writers(link.to_str().unwrap()) {
        write_to(&world, &args, 0);
        let target = fs::metadata(world.dir.join("target")).unwrap();
        assert!(target.len() > 0, "{args:?}");
        assert_eq!(target.mode() & 0o777, 0o600, "{args:?}");
        fs::remove_file(world.dir.join("target")).unwrap();
    }
}

/// A log that is appended to keeps the mode that its owner gave it.
#[test]
fn own_file_that_is_replaced_becomes_readable_by_its_owner_only() {
    let world = World::new();
    run(&world, &world.dir, "a");
    let file = world.dir.join("output");
    for (args, _) in writers(file.to_str().unwrap()) {
        fs::write(&file, TAPE).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        write_to(&world, &args, 0);
        let is_log = args.iter().any(|arg| arg == "--log-file");
        let wanted = if is_log { 0o666 } else { 0o600 };
        let mode = fs::metadata(&file).unwrap().mode() & 0o777;
        assert_eq!(mode, wanted, "{args:?}");
    }
}

/// Puts a link of another user in place of a file of the daemon. Returns `false` if the tests may not.
fn plant(world: &World, name: &str, target: &Path) -> bool {
    let dir = world.dir.join("state/daemon");
    fs::create_dir_all(&dir).unwrap();
    open_to_all(&dir);
    symlink(target, dir.join(name)).unwrap();
    give_away(&dir.join(name))
}

#[test]
fn link_in_place_of_a_file_of_the_daemon_is_refused() {
    for (name, is_own) in [
        ("log", false),
        ("log", true),
        ("lock", false),
        ("lock", true),
    ] {
        let daemon = Daemon {
            world: World::new(),
        };
        let target = daemon.world.dir.join("mine");
        fs::write(&target, "mine\n").unwrap();
        let link = daemon.world.dir.join("state/daemon").join(name);
        if is_own {
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(&target, &link).unwrap();
        } else if !plant(&daemon.world, name, &target) {
            return;
        }
        let output = daemon.command(&["daemon", "start"]).output().unwrap();
        assert!(!output.status.success(), "{name}: {output:?}");
        let said = stderr(&output);
        assert!(
            said.contains(link.to_str().unwrap()) && said.contains("remove it"),
            "{name}: {said}"
        );
        assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n", "{name}");
        let logs = daemon.command(&["daemon", "logs"]).output().unwrap();
        let shown = String::from_utf8_lossy(&logs.stdout).into_owned();
        assert!(!shown.contains("mine"), "{name}: {shown}");
        // It is done as the message says.
        fs::remove_file(&link).unwrap();
        daemon.run(&["daemon", "start"], 0);
        daemon.stop();
    }
}

#[test]
fn link_in_place_of_a_file_that_is_being_written_is_not_followed() {
    let world = World::new();
    let target = world.dir.join("notes.txt");
    fs::write(&target, "mine\n").unwrap();
    let sessions = world.dir.join("state/sessions");
    fs::create_dir_all(&sessions).unwrap();
    for name in ["a.card", "a.new", "a.index-new"] {
        symlink(&target, sessions.join(name)).unwrap();
    }
    let output = run(&world, &world.dir, "a");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(&target).unwrap(), "mine\n");
    assert!(sessions.join("a.json").is_file());
}
