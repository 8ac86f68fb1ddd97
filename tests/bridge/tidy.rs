//! Rules for the source files, checked over their text.

mod imports;
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

/// Names that the code of a room must not contain: `(room, names, reason)`.
const FORBIDDEN: &[(&str, &[&str], &str)] = &[
    (
        "src/proto",
        &[
            "crate::core",
            "crate::shell",
            "crate::cli",
            "crate::demo",
            "crate::agent",
        ],
        "proto knows nobody",
    ),
    (
        "crates/core/src",
        &[
            "crate::shell",
            "crate::cli",
            "crate::demo",
            "crate::library",
            "crate::agent",
        ],
        "core knows proto only",
    ),
    (
        "crates/host/src",
        &[
            "crate::cli",
            "crate::demo",
            "crate::library",
            "crate::agent",
        ],
        "shell knows core and proto",
    ),
    (
        "crates/agent/src",
        &[
            "crate::core",
            "crate::shell",
            "crate::cli",
            "crate::demo",
            "crate::library",
        ],
        "an agent needs no client",
    ),
    (
        "src/demo",
        &[
            "crate::core",
            "crate::shell",
            "crate::cli",
            "crate::library",
        ],
        "the demo agent is an agent like others",
    ),
    (
        "src/library",
        &["crate::cli", "crate::demo"],
        "the library needs no command line",
    ),
    (
        "src/cli",
        &["crate::library"],
        "the command line and the library are client faces beside each other",
    ),
    ("src/proto", WORLD, "proto is pure"),
    ("crates/core/src", WORLD, "core is pure"),
    ("crates/core/src", SHARED, "nobody else changes what core holds"),
    (
        "src",
        &["unbounded_channel", "mpsc::channel()"],
        "everything is bounded",
    ),
];

/// Files that may start processes: the supervisor, which starts agents, and the code that starts supervisors,
/// agents without one, the daemon, or the user's pager.
const MAKE_PROCESSES: &[&str] = &[
    "crates/host/src/daemon/process.rs",
    "crates/host/src/pager.rs",
    "crates/host/src/supervised.rs",
    "crates/host/src/supervised/group.rs",
    "crates/host/src/supervisor.rs",
];

/// Paths of the types that implement a dialect. Outside of the dialects, only `crates/dialects/src/lib.rs` creates them.
const DIALECTS: &[&str] = &[
    "acp::Acp",
    "acp::{self, Acp",
    "acp::per_session",
    "claude::Claude",
    "claude::{self, Claude",
];

/// Types of state that another thread can change.
const SHARED: &[&str] = &["Mutex", "RwLock", "Atomic", "OnceLock"];

const WORLD: &[&str] = &[
    "tokio::",
    "use tokio;",
    "std::fs",
    "std::process",
    "std::net",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "println!",
    "async fn",
];

/// Returns the violations in a file.
fn violations(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if !text.starts_with("//!") {
        wrong.push(format!("{path}: it does not begin with //!"));
    }
    // A check for a panic does not access the outside world.
    let code = code(text).replace("std::thread::panicking", "");
    let within = |room: &str| path.starts_with(&format!("{room}/")) || path == format!("{room}.rs");
    for (room, words, why) in FORBIDDEN.iter().filter(|(room, ..)| within(room)) {
        for word in words.iter().filter(|w| code.contains(**w)) {
            wrong.push(format!("{path}: {word} in {room}: {why}"));
        }
    }
    let is_dialect = ["crates/dialects/src/acp", "crates/dialects/src/claude", "crates/dialects/src"];
    if within("crates/core/src") && !is_dialect.iter().any(|room| within(room)) {
        for word in DIALECTS.iter().filter(|w| code.contains(**w)) {
            wrong.push(format!(
                "{path}: {word}: only core/dialects.rs creates dialects"
            ));
        }
    }
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

#[test]
fn sources_follow_the_rules_of_their_rooms() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
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
fn main_only_calls_cli() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let main = code(&fs::read_to_string(root.join("src/main.rs")).unwrap());
    for room in ["proto", "core", "shell", "demo"] {
        assert!(!main.contains(&format!("acpipe::{room}")), "{main}");
    }
}

#[test]
fn sources_have_no_build_script_and_no_mod_rs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for odd in ["src/mod.rs", "build.rs"] {
        assert!(!root.join(odd).exists(), "{odd}");
    }
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let modules = files.iter().filter(|f| f.ends_with("mod.rs"));
    assert_eq!(modules.count(), 0, "modules are x.rs beside x/");
}

/// The rules themselves must be able to fail.
#[test]
fn violations_of_source_rules_are_found() {
    let ok = "//! Doc.\n// tokio:: in a comment\nfn x() {}\n#[cfg(test)]\nmod tests {\n Instant::now\n}\n";
    assert_eq!(violations("src/core/x.rs", ok), Vec::<String>::new());
    let long = format!("//! Doc.\n{}", "x\n".repeat(CEILING));
    let found = overlong("src/core/x.rs", &long, CEILING).unwrap();
    assert!(found.contains("501 lines"), "{found}");
    assert_eq!(overlong("src/core/x.rs", &long, CEILING_OF_OWNERS), None);
    let dialect = "//! D.\nuse super::acp::{self, Acp};\n";
    assert!(violations("crates/dialects/src/lib.rs", dialect).is_empty());
    assert!(violations("src/core/acp/x.rs", dialect).is_empty());
    let cases = [
        ("src/core/agent/x.rs", dialect, "only core/dialects.rs"),
        ("src/core/x.rs", "fn x() {}\n", "begin with"),
        ("src/core/x.rs", "//! D.\nuse tokio::sync;\n", "tokio::"),
        (
            "crates/core/src/lib.rs",
            "//! D.\nuse crate::shell::x;\n",
            "core knows proto only",
        ),
        (
            "src/core/a/b.rs",
            "//! D.\nuse crate::cli;\n",
            "core knows proto only",
        ),
        (
            "src/proto/x.rs",
            "//! D.\nlet x: crate::core::X;\n",
            "proto knows nobody",
        ),
        (
            "src/proto/x.rs",
            "//! D.\nInstant::now();\n",
            "proto is pure",
        ),
        (
            "src/shell/x.rs",
            "//! D.\nuse crate::cli::x;\n",
            "shell knows",
        ),
        (
            "src/cli/x.rs",
            "//! D.\nCommand::new(x);\n",
            "make processes",
        ),
        (
            "src/core/x.rs",
            "//! D.\nuse std::sync::Mutex;\n",
            "nobody else",
        ),
        (
            "src/shell/x.rs",
            "//! D.\nmpsc::unbounded_channel();\n",
            "bounded",
        ),
    ];
    for (path, text, why) in cases {
        let wrong = violations(path, text).join("\n");
        assert!(wrong.contains(why), "{path}: {wrong}");
    }
    assert!(violations("crates/host/src/supervised.rs", "//! D.\nCommand::new(x);\n").is_empty());
}
