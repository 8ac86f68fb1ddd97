//! Rules for the source files, checked over their text.

mod messages;
mod names;
mod owners;
mod prose;
mod timers;

use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of lines in a source file.
const CEILING: usize = 500;

/// Largest number of lines in a source file that has all methods of a type with state. Moving some of them to another file
/// would only hide its size.
const CEILING_OF_OWNERS: usize = 800;

/// Files that may start processes: the supervisor, which starts agents, and the code that starts supervisors,
/// agents without one, the daemon, or the user's pager.
const MAKE_PROCESSES: &[&str] = &[
    "crates/host/src/daemon/process.rs",
    "crates/host/src/pager.rs",
    "crates/host/src/supervised.rs",
    "crates/host/src/supervised/group.rs",
    "crates/host/src/supervisor.rs",
];

/// Returns the violations in a file.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !text.starts_with("//!") {
        wrong.push(format!("{path}: it does not begin with //!"));
    }
    let code = code(text);
    if code.contains("Command::new") && !MAKE_PROCESSES.contains(&path) {
        wrong.push(format!(
            "{path}: Command::new: only a keeper, and who starts it, make processes"
        ));
    }
    wrong
}

/// Returns a file's text without its tests.
fn production(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    &text[..tests.unwrap_or(text.len())]
}

/// Returns the violation in a file that has too many lines.
fn overlong(path: &str, text: &str, ceiling: usize) -> Option<String> {
    let lines = text.lines().count();
    (lines > ceiling).then(|| format!("{path}: {lines} lines, more than {ceiling}"))
}

/// Returns a file's text without its comments and tests.
fn code(text: &str) -> String {
    let lines = production(text).lines();
    let lines = lines.filter(|l| !l.trim_start().starts_with("//"));
    lines.flat_map(|l| [l, "\n"]).collect()
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Returns the source files of the program: of the top package and of all crates.
fn program(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root.join(folder), &mut files);
    }
    files
}

/// Returns the room of a source file: its crate, or its folder in the top package.
fn room(path: &str) -> &str {
    let room = path.split('/').nth(1).unwrap_or_default();
    room.trim_end_matches(".rs")
}

#[test]
fn sources_follow_the_rules_of_their_rooms() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = program(root);
    assert!(files.len() > 30, "{files:?}");
    files.sort();
    let owners = owners::whole(root);
    let mut wrong = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap();
        let is_test = file
            .file_stem()
            .is_some_and(|s| s.to_string_lossy().starts_with("tests"))
            || path.contains("/tests/");
        let text = fs::read_to_string(&file).unwrap();
        if is_test {
            assert!(text.starts_with("//!"), "{path}");
        } else {
            wrong.extend(violations(path, &text));
            let ceiling = if owners.contains(path) {
                CEILING_OF_OWNERS
            } else {
                CEILING
            };
            wrong.extend(overlong(path, &text, ceiling));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn sources_have_no_build_script_and_no_mod_rs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = program(root);
    let odd = |file: &&PathBuf| file.ends_with("mod.rs") || file.ends_with("src/build.rs");
    let odd: Vec<_> = files.iter().filter(odd).collect();
    assert!(odd.is_empty(), "modules are x.rs beside x/: {odd:?}");
    assert!(!root.join("build.rs").exists());
}

/// The rules themselves must be able to fail.
#[test]
fn violations_of_source_rules_are_found() {
    let ok = "//! Doc.\n// tokio:: in a comment\nfn x() {}\n#[cfg(test)]\nmod tests {\n Instant::now\n}\n";
    assert_eq!(violations("crates/core/src/x.rs", ok), Vec::<String>::new());
    let long = format!("//! Doc.\n{}", "x\n".repeat(CEILING));
    let found = overlong("src/x.rs", &long, CEILING).unwrap();
    assert!(found.contains("501 lines"), "{found}");
    assert_eq!(overlong("src/x.rs", &long, CEILING_OF_OWNERS), None);
    let cases = [
        ("src/x.rs", "fn x() {}\n", "begin with"),
        (
            "src/cli/x.rs",
            "//! D.\nCommand::new(x);\n",
            "make processes",
        ),
    ];
    for (path, text, why) in cases {
        let wrong = violations(path, text).join("\n");
        assert!(wrong.contains(why), "{path}: {wrong}");
    }
    assert!(
        violations(
            "crates/host/src/supervised.rs",
            "//! D.\nCommand::new(x);\n"
        )
        .is_empty()
    );
}
