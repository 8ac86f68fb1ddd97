//! Numbers and names on the pages that are those of the code: limits, keys of the configuration, environment variables.

use super::pages::page;
use crate::cli::config::policy_of;
use acpipe_model::limits::{Limits, Timeout};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[test]
fn time_limits_are_those_of_the_code() {
    let page = page("limits.md");
    let limits = Limits::default();
    for wait in Timeout::ALL {
        let name = format!("| `{}` | ", wait.name());
        let row = page.lines().find(|line| line.starts_with(&name));
        let row = row.unwrap_or_else(|| panic!("limits.md has no row {name}"));
        let limit = limits.of(wait);
        let limit = limit.map_or("none".to_owned(), |limit| format!("{} s", limit.as_secs()));
        let may_last = if wait.may_be_unlimited() { "yes" } else { "no" };
        let cells = format!(" | {limit} | {may_last} | ");
        assert!(row.contains(&cells), "{row}\n  lacks {cells}");
    }
}

/// Limits on pages: page, words on it, and the file and value of the constant.
const SIZES: &[(&str, &str, &str, &str)] = &[
    (
        "limits",
        "64 MiB (`--max-line`)",
        "crates/json/src/frame.rs",
        "64 * 1024 * 1024",
    ),
    (
        "limits",
        "in the first 4 KiB",
        "crates/json/src/frame.rs",
        "4096",
    ),
    (
        "limits",
        "the last 256 bytes",
        "crates/json/src/frame.rs",
        "256",
    ),
    (
        "limits",
        "| `Content-Length` | 4 GiB |",
        "crates/json/src/frame/client.rs",
        "1 << 32",
    ),
    (
        "limits",
        "| parameters of a request | 1 MiB;",
        "crates/json/src/density.rs",
        "1 << 20",
    ),
    (
        "limits",
        "one value for 32 bytes",
        "crates/json/src/density.rs",
        "32",
    ),
    (
        "limits",
        "16,384 in one list",
        "crates/json/src/input.rs",
        "16_384",
    ),
    (
        "limits",
        "| 32 MiB | is taken: the largest update does not count |",
        "crates/core/src/log/storage.rs",
        "32 << 20",
    ),
    (
        "limits",
        "| 64 MiB | is taken | the connection is closed |",
        "crates/host/src/connections/output.rs",
        "64 << 20",
    ),
    (
        "limits",
        "| 256 MiB | is taken if nothing else waits |",
        "crates/host/src/stdin_queue.rs",
        "256 << 20",
    ),
    (
        "limits",
        "| a batch | 1024 messages |",
        "src/cli/rpc/batch.rs",
        "1024",
    ),
    (
        "limits",
        "| batches that wait for responses | 16 |",
        "src/cli/rpc/batch.rs",
        "16",
    ),
    (
        "limits",
        "have gathered | 64 MiB |",
        "src/cli/rpc/batch.rs",
        "64 << 20",
    ),
    (
        "limits",
        "`configOptions`) | 1 MiB |",
        "crates/model/src/setting/view.rs",
        "1 << 20",
    ),
    (
        "limits",
        "of a summary | 4 MiB each |",
        "crates/core/src/turn.rs",
        "4 << 20",
    ),
    (
        "limits",
        "| 16384, with",
        "src/cli/rpc/calls.rs",
        "16 * 1024",
    ),
    (
        "limits",
        "with 4 MiB of ids |",
        "src/cli/rpc/calls.rs",
        "4 << 20",
    ),
    (
        "limits",
        "| 64 KiB; 2 KiB if several agents share stdout | chunks are",
        "crates/host/src/direct_client.rs",
        "FULL / 4",
    ),
    (
        "limits",
        "| 256 KiB; 8 KiB if several agents share stdout | agents are",
        "crates/host/src/output.rs",
        "256 * 1024",
    ),
    (
        "limits",
        "8 KiB if several agents share stdout | agents are",
        "crates/host/src/output.rs",
        "8 * 1024",
    ),
    ("limits", "at most 256, of", "src/cli/rpc/reads.rs", "256"),
    (
        "limits",
        "client does not read | 1024 |",
        "crates/host/src/drive.rs",
        "1024",
    ),
    (
        "limits",
        "of a session | 256; none",
        "crates/core/src/client_requests.rs",
        "256",
    ),
    (
        "limits",
        "next prompt | 256 KiB |",
        "crates/core/src/session/decisions.rs",
        "256 << 10",
    ),
    (
        "limits",
        "| 4 KiB for each field |",
        "crates/core/src/turn/tools/question.rs",
        "4 << 10",
    ),
    (
        "limits",
        "| 32, of 16 MiB together",
        "crates/core/src/session/queue.rs",
        "32",
    ),
    (
        "limits",
        "| 32, of 16 MiB together",
        "crates/core/src/session/queue.rs",
        "16 << 20",
    ),
    (
        "limits",
        "| attempts of a prompt | 3 |",
        "crates/core/src/retry.rs",
        "3",
    ),
    (
        "limits",
        "| `turnId` | 256 bytes |",
        "crates/core/src/hub/commands/prompts.rs",
        "256",
    ),
    (
        "limits",
        "| agents that clients define | 64 |",
        "crates/core/src/hub/catalog/registration.rs",
        "64",
    ),
    (
        "limits",
        "| name of an agent | 64 bytes |",
        "crates/core/src/agent_names.rs",
        "64",
    ),
    (
        "agents",
        "at least two letters",
        "crates/core/src/agent_names.rs",
        "2",
    ),
    (
        "configuration",
        "at most 64 letters",
        "crates/core/src/agent_names.rs",
        "64",
    ),
    (
        "configuration",
        "up to 32 in a row",
        "src/cli/config/agents.rs",
        "32",
    ),
    (
        "limits",
        "| live sessions | 64 if",
        "crates/core/src/hub/router/room.rs",
        "64",
    ),
    (
        "limits",
        "else 1024 (`--max-sessions`)",
        "crates/core/src/hub/router/room.rs",
        "1024",
    ),
    (
        "limits",
        "ids of a session | 8 |",
        "crates/core/src/session/session_agents.rs",
        "8",
    ),
    (
        "limits",
        "completed turn | 3 |",
        "crates/core/src/agent/restarts.rs",
        "3",
    ),
    (
        "limits",
        "on a load | 512 MiB |",
        "crates/core/src/session/restore/history.rs",
        "512 << 20",
    ),
    (
        "limits",
        "| 32,768 characters",
        "crates/core/src/session/restoring.rs",
        "32 << 10",
    ),
    (
        "limits",
        "10,000 chunks (1000 by default)",
        "crates/core/src/hub/commands/history.rs",
        "(10_000, 1000)",
    ),
    (
        "limits",
        "1000 entries (100 by default)",
        "crates/core/src/hub/page.rs",
        "(1000, 100)",
    ),
    (
        "limits",
        "1000 entries (100 by default)",
        "crates/core/src/hub/agent_events/listings.rs",
        "(1000, 100)",
    ),
    (
        "limits",
        "deeper than 112 levels",
        "crates/json/src/depth.rs",
        "112",
    ),
    (
        "limits",
        "than 127 levels",
        "crates/json/src/depth.rs",
        "127",
    ),
    (
        "limits",
        "a start after 2 s",
        "crates/core/src/agent/timeouts.rs",
        "Duration::from_secs(2)",
    ),
    (
        "limits",
        "opening after\n2 s",
        "crates/core/src/session/wait_notices.rs",
        "Duration::from_secs(2)",
    ),
    (
        "limits",
        "a turn after 10 s of silence",
        "crates/core/src/session/wait_notices.rs",
        "Duration::from_secs(10)",
    ),
    (
        "limits",
        "from 10 s on",
        "crates/host/src/drive.rs",
        "Duration::from_secs(10)",
    ),
    (
        "limits",
        "transient error | 2 s |",
        "crates/core/src/retry.rs",
        "Duration::from_secs(2)",
    ),
    (
        "limits",
        "250 ms of silence |",
        "crates/core/src/session/restore.rs",
        "Duration::from_millis(250)",
    ),
    (
        "limits",
        "| 10 s of silence without",
        "crates/core/src/session/turns/background_updates.rs",
        "Duration::from_secs(10)",
    ),
    (
        "limits",
        "its `PATH` | 5 s |",
        "crates/host/src/discover/login.rs",
        "Duration::from_secs(5)",
    ),
    (
        "limits",
        "`initialize` | every 2 s |",
        "crates/host/src/client_process.rs",
        "Duration::from_secs(2)",
    ),
    (
        "limits",
        "it reads for 0.5 s",
        "crates/core/src/running_clock.rs",
        "Duration::from_millis(500)",
    ),
    (
        "limits",
        "shorter than 0.1 s",
        "crates/core/src/running_clock.rs",
        "Duration::from_millis(100)",
    ),
    (
        "configuration",
        "at most 1 MiB",
        "src/cli/config/read.rs",
        "1 << 20",
    ),
    (
        "sessions",
        "at most 200 characters",
        "crates/host/src/store/names.rs",
        "200",
    ),
    (
        "restore-and-storage",
        "the last 32 MiB",
        "crates/core/src/store/volatile.rs",
        "32 << 20",
    ),
    (
        "restore-and-storage",
        "every 256 KiB",
        "crates/core/src/log/identity.rs",
        "256 << 10",
    ),
    (
        "restore-and-storage",
        "prompt or a\n  decision waits 1 s",
        "crates/host/src/store/speed.rs",
        "Duration::from_secs(1)",
    ),
    (
        "restore-and-storage",
        "50 ms while",
        "crates/host/src/store/speed.rs",
        "Duration::from_millis(50)",
    ),
    (
        "restore-and-storage",
        "a sync of 100 ms",
        "crates/host/src/store/speed.rs",
        "Duration::from_millis(100)",
    ),
    (
        "chunks",
        "the last 8 KiB",
        "crates/core/src/view/chunks/terminals.rs",
        "8 * 1024",
    ),
    (
        "chunks",
        "the last 1 MiB",
        "crates/core/src/view/chunks/terminals.rs",
        "1024 * 1024",
    ),
    (
        "chunks",
        "plus 16 KiB",
        "crates/core/src/output_budget.rs",
        "16 * 1024",
    ),
    (
        "chunks",
        "terminals (64 KiB)",
        "crates/core/src/turn/terminals.rs",
        "64 * 1024",
    ),
    (
        "tapes",
        "A frame over 1 MiB",
        "crates/host/src/recorder/writer.rs",
        "1 << 20",
    ),
    (
        "tapes",
        "up to 64 MiB wait",
        "crates/host/src/recorder.rs",
        "64 << 20",
    ),
];

#[test]
fn sizes_are_those_of_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for (name, words, file, value) in SIZES {
        let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !spaced(&page(&format!("{name}.md"))).contains(&spaced(words)) {
            wrong.push(format!("{name}.md lacks {words:?}"));
        }
        let code = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let end = format!("= {value};");
        let mut constants = code.lines().filter(|line| line.contains("const "));
        if !constants.any(|line| line.ends_with(&end)) {
            wrong.push(format!(
                "{file} has no constant {value}: {name}.md, {words:?}"
            ));
        }
    }
    let hint = "where a constant moved, change its file in SIZES; where a value changed, change the page too";
    assert!(wrong.is_empty(), "{}\n({hint})", wrong.join("\n"));
}

/// The first column of the table below a heading.
fn keys<'a>(page: &'a str, heading: &str) -> Vec<&'a str> {
    let section = page.split(heading).nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let section = section.split("\n### ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split('`').next()).collect()
}

#[test]
fn keys_of_the_configuration_are_those_of_the_code() {
    let page = page("configuration.md");
    for (heading, table) in [
        ("## `[permissions]`", "[permissions]\n"),
        ("## `[[permissions.rules]]`", "[[permissions.rules]]\n"),
    ] {
        // The error of an unknown key lists those that are known.
        let error = policy_of(&format!("{table}x-x-x = 1\n"), None).unwrap_err();
        let keys = keys(&page, heading);
        assert!(keys.len() > 5, "{heading}: {keys:?}");
        for key in &keys {
            assert!(error.contains(key), "{key} is not a key of {table}{error}");
        }
        let (_, known) = error.rsplit_once(':').unwrap_or(("", &error));
        let words = known.split(|c: char| !c.is_ascii_lowercase() && c != '_');
        for word in words.filter(|word| word.contains('_')) {
            assert!(keys.contains(&word), "configuration.md lacks {word}");
        }
    }
    let schema = crate::cli::config::generate_schema();
    for (heading, table) in [
        ("## `[agents.NAME]`", &schema["$defs"]["AgentTable"]),
        (
            "### `[agents.NAME.options]`",
            &schema["$defs"]["OptionTable"],
        ),
    ] {
        let listed: BTreeSet<&str> = keys(&page, heading).into_iter().collect();
        let known = table["properties"].as_object().unwrap().keys();
        let known: BTreeSet<&str> = known.map(String::as_str).collect();
        assert_eq!(listed, known, "{heading}");
    }
    let example = page.split("```toml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    policy_of(example, Some("/home/me".into())).unwrap();
}

/// Names that look like variables and are not: errors of the network, what the compiler knows, and a style of names.
const NO_VARIABLES: &[&str] = &[
    "EAI_AGAIN",
    "CARGO_PKG_VERSION",
    "ACPIPE_COMMIT",
    "SCREAMING_SNAKE_CASE",
];

/// Variables that libraries read: for the platform's directories, for HTTP, and for styles.
const PLATFORM: &[&str] = &[
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
];

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        match path.is_dir() {
            _ if stem.starts_with("tests") || stem == "testing" => {}
            true => sources(&path, found),
            false if path.extension().is_some_and(|end| end == "deflate") => {}
            false => found.push(path),
        }
    }
}

/// The names in capitals that stand in quotes in the code: those with `_`, and those of these lines.
fn names_in_code() -> (BTreeSet<String>, BTreeSet<String>) {
    let mut files = Vec::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for folder in ["src", "crates"] {
        sources(&root.join(folder), &mut files);
    }
    let (mut variables, mut all) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
        for line in lines {
            let reads = ["env::var", "lookup(\"", "env = \""];
            let reads = reads.iter().any(|word| line.contains(word));
            for name in line.split('"').skip(1).step_by(2).filter(|n| is_name(n)) {
                all.insert(name.to_owned());
                if (reads || name.contains('_')) && !NO_VARIABLES.contains(&name) {
                    variables.insert(name.to_owned());
                }
            }
        }
    }
    (variables, all)
}

fn is_name(text: &str) -> bool {
    let letters = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    text.len() > 3
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(letters)
}

#[test]
fn environment_variables_are_those_of_the_code() {
    let page = page("environment.md");
    let named = page.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = named.filter(|name| is_name(name)).collect();
    let (variables, all) = names_in_code();
    assert!(variables.len() > 15, "{variables:?}");
    for name in &variables {
        assert!(named.contains(name.as_str()), "environment.md lacks {name}");
    }
    for name in named {
        let known = all.contains(name) || PLATFORM.contains(&name);
        assert!(known, "environment.md has {name}, which is not in the code");
    }
}
