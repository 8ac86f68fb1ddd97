//! Manual pages.

use crate::harness::World;
use std::fs;
use std::process::Output;

/// Runs a program on a page; `None` if the program is not installed.
fn check(world: &World, program: &str, args: &[&str], page: &str) -> Option<Output> {
    let mut command = world.command(program);
    let variables = [
        ("LC_ALL", "C.UTF-8"),
        ("MANROFFSEQ", ""),
        ("MANWIDTH", "80"),
    ];
    match command.args(args).arg(page).envs(variables).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        done => Some(done.unwrap()),
    }
}

#[test]
fn manual_pages_have_no_faults() {
    let world = World::new();
    let dir = world.dir.join("man");
    let mut make = world.acpipe(&["man", "--dir", dir.to_str().unwrap()]);
    assert!(make.status().unwrap().success());
    for entry in fs::read_dir(&dir).unwrap() {
        let page = entry.unwrap().path();
        let page = page.to_str().unwrap();
        let man = ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"];
        if let Some(done) = check(&world, "man", &man, page) {
            let faults = String::from_utf8_lossy(&done.stderr);
            assert!(
                done.status.success() && faults.is_empty(),
                "{page}: {faults}"
            );
        }
        if let Some(done) = check(&world, "mandoc", &["-Tlint", "-Wwarning"], page) {
            let found = String::from_utf8_lossy(&done.stdout);
            // The pages have no date.
            let faults = found.lines().filter(|line| !line.contains(" date"));
            assert_eq!(faults.collect::<Vec<_>>(), [""; 0], "{page}");
        }
    }
}

#[test]
fn manual_page_is_printed() {
    let world = World::new();
    let done = world.acpipe(&["man"]).output().unwrap();
    let page = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success());
    assert!(page.contains(".TH acpipe 1 \" \""), "{page}");
    assert!(page.contains("\nacpipe\\-run(1)\n"), "{page}");
    // Examples keep their lines.
    assert!(page.contains("\n.nf\n"), "{page}");
}
