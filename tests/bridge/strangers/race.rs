//! Files that another user exchanges while acpipe reads them.

use super::{acpipe, give_away, open_to_all, stderr};
use crate::harness::World;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of commands in a race.
const RUNS: usize = 30;

/// Runs a command many times while two files are exchanged, and checks that it never has this exit code.
fn race(world: &World, cwd: &Path, (own, other): (&Path, &Path), args: &[&str], never: i32) {
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                renameat_with(CWD, own, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        for _ in 0..RUNS {
            let output = acpipe(world, cwd, args);
            if output.status.code() == Some(never) {
                ends.store(true, Ordering::Relaxed);
                panic!("the file of another user was read: {}", stderr(&output));
            }
        }
        ends.store(true, Ordering::Relaxed);
    });
}

#[test]
fn exchanged_projects_file_of_another_user_is_not_read() {
    let world = World::new();
    let common = world.dir.join("common");
    let project = common.join("project");
    fs::create_dir_all(&project).unwrap();
    open_to_all(&common);
    let (own, other) = (common.join(".acpipe.toml"), common.join("other"));
    fs::write(&own, "").unwrap();
    fs::write(&other, "unknown_key = 1\n").unwrap();
    if give_away(&other) {
        let args = ["agents", "show", "demo"];
        race(&world, &project, (&own, &other), &args, 2);
    }
}

#[test]
fn exchanged_configuration_of_another_user_is_not_read() {
    let world = World::new();
    let dir = world.dir.join("config/acpipe");
    fs::create_dir_all(&dir).unwrap();
    open_to_all(&dir);
    let (own, other) = (dir.join("config.toml"), dir.join("other"));
    fs::write(&own, "").unwrap();
    // The agent exists only in the file of the other user.
    fs::write(&other, "[agents.x]\ncommand = \"true\"\n").unwrap();
    if give_away(&other) {
        let args = ["agents", "show", "x"];
        race(&world, &world.dir, (&own, &other), &args, 0);
    }
}
