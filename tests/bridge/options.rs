//! Options of every command: a command uses each of them, or refuses it by name. No option is ignored in silence.
//!
//! The commands and their options come from their help. An option without a row fails a test here.

mod effects;
mod others;

use crate::harness::World;
use std::path::Path;
use std::process::{Output, Stdio};

/// Ways to use acpipe with the options of an agent, as they stand in the columns of [`TABLE`].
const USES: [&[&str]; 10] = [
    &["run", "hi"],
    &["run", "hi", "--daemon"],
    &["serve"],
    &["serve", "--daemon"],
    &["serve", "--listen", "127.0.0.1:0"],
    &["acp"],
    &["acp", "--daemon"],
    &["daemon", "start"],
    &["daemon", "run"],
    &["daemon", "restart"],
];

/// Options that all commands have.
const GLOBAL: &[(&str, &str)] = &[
    ("--color", "bridge/rendering.rs"),
    ("--log-file", "bridge/logs.rs"),
    ("--log-format", "bridge/logs.rs"),
    ("--log-level", "bridge/logs.rs"),
    ("--verbose", "bridge/options/effects.rs"),
];

/// Every option of these commands: its words; for each use `U` (used), `R` (refused) or `-` (the command does not have it);
/// and the file below `tests` whose tests show the effect.
const TABLE: &str = "\
--agent a --agent b       | RRRRRUURRR | bridge/commands.rs
--chunk-profile 5         | RRUUURRUUU | bridge/profiles.rs
--child-per-session       | UUUUUUUUUU | bridge/options/effects.rs
--config c                | UUUUUUUUUU | bridge/policy.rs
--cwd .                   | UUUUUUUUUU | bridge/ownership.rs
--daemon                  | UUUURUU--- | bridge/daemon/runs.rs
--durability none         | URURUURUUU | bridge/sizes.rs
--env A=1                 | UUUUUUUUUU | bridge/run_environment.rs
--idle-timeout 1m         | --URUURUUU | bridge/idle.rs
--max-line 1M             | URURUURUUU | bridge/framing.rs
--max-sessions 3          | --URUURUUU | bridge/idle.rs
--mcp-config m            | UUUUUUUUUU | bridge/mcp.rs
--no-daemon               | UUUUUUU--- | bridge/daemon/runs.rs
--no-path-probe           | URURUURUUU | bridge/launch.rs
--on-new clear            | UUUUUUUUUU | bridge/store.rs
--otlp=http://127.0.0.1:1 | URURUURUUU | bridge/telemetry.rs
--permissions ask         | UUUUUUUUUU | bridge/ledger.rs
--persist never           | URURUURUUU | bridge/sessions.rs
--protocol acp            | UUUUUUUUUU | bridge/commands.rs
--record tape             | URURRURRRR | bridge/tapes.rs
--record-limit 1M         | RRRRRRRRRR | bridge/options/effects.rs
--reinject 1              | UUUUUUUUUU | bridge/sessions.rs
--serve fs                | URURUURUUU | bridge/hosting/policy.rs
--state-dir s             | UUUUUUUUUU | bridge/storage.rs
--timeout answer=1s       | UUUUUUUUUU | bridge/timeouts.rs
# Options of sessions.
--add-dir .               | UUUUUUUUUU | bridge/claude.rs
--allow-tool Read         | UUUUUUUUUU | bridge/claude.rs
--append-system-prompt x  | UUUUUUUUUU | bridge/claude.rs
--disallow-tool Read      | UUUUUUUUUU | bridge/claude.rs
--effort low              | UUUUUUUUUU | bridge/claude.rs
--max-turns 1             | UUUUUUUUUU | bridge/claude.rs
--mode m                  | UUUUUUUUUU | bridge/claude.rs
--model m                 | UUUUUUUUUU | bridge/claude.rs
--output-schema true      | UUUUUUUUUU | bridge/execute.rs
--setting-sources user    | UUUUUUUUUU | bridge/claude.rs
# Options of `run` and `acp` alone.
--attach f                | UU-------- | bridge/prompts.rs
--context a=b             | UU-------- | bridge/execute.rs
--continue                | UU-------- | bridge/chat.rs
--ephemeral               | UR-------- | bridge/ownership.rs
--file f                  | UU-------- | bridge/prompts.rs
--max-time 1m             | UU-------- | bridge/total_limits.rs
--no-retry                | UU-------- | bridge/retries.rs
--output json             | UU-------- | bridge/cli.rs
--prompt x                | UU-------- | bridge/prompts.rs
--quiet                   | UU-------- | bridge/own_agents.rs
--raw                     | UU-------- | bridge/rendering.rs
--raw --output json       | RR-------- | bridge/rendering.rs
--save-files d            | UU-------- | bridge/cli.rs
--session s               | UU-------- | bridge/ownership.rs
--when-busy queue         | -----UU--- | bridge/acp/behaviour/prompts.rs
# Options of the HTTP server.
--allow-host h            | --RRU--RRR | ../src/cli/http/guard.rs
--allow-origin http://h   | --RRU--RRR | ../src/cli/http/guard.rs
--insecure-i-know         | --RRU--RRR | bridge/http/security.rs
--listen 127.0.0.1:0      | --URU--UUU | bridge/http.rs
--tls-cert c              | --RRR--RRR | bridge/http/security.rs
--tls-key k               | --RRR--RRR | ../src/cli/http/server.rs
";

/// A row of [`TABLE`].
struct Row {
    option: Vec<&'static str>,
    cells: &'static str,
    file: &'static str,
}

impl Row {
    fn name(&self) -> &'static str {
        let word = self.option[0];
        word.split_once('=').map_or(word, |(name, _)| name)
    }
}

fn rows() -> impl Iterator<Item = Row> {
    let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let cells: Vec<&str> = line.split(" | ").collect();
        let &[option, cells, file] = cells.as_slice() else {
            panic!("not three cells: {line}");
        };
        let option = option.split_whitespace().collect();
        Row {
            option,
            cells,
            file,
        }
    })
}

#[test]
fn shared_options_are_used_or_refused() {
    for row in rows() {
        let option = &row.option;
        for (words, cell) in USES.iter().zip(row.cells.chars()) {
            if cell == 'R' {
                let world = World::new();
                let output = acpipe(&world, words, option);
                let said = String::from_utf8_lossy(&output.stderr);
                let is_refused = output.status.code() == Some(2) && said.contains(row.name());
                assert!(is_refused, "{words:?} {option:?}: {said}");
            }
        }
    }
}

/// An option that a later change adds is sorted here: used, refused, or not there.
#[test]
fn every_option_has_a_row() {
    let world = World::new();
    for (command, options) in commands(&world) {
        let uses: Vec<usize> = (0..USES.len())
            .filter(|at| command == command_of(USES[*at]))
            .collect();
        let is_shared = |option: &str| {
            let row = rows().find(|row| row.name() == option);
            row.is_some_and(|row| uses.iter().all(|at| &row.cells[*at..=*at] != "-"))
        };
        for option in &options {
            let is_global = GLOBAL.iter().any(|(name, _)| name == option);
            let has_row = if uses.is_empty() {
                others::has_row(&command, option)
            } else {
                is_shared(option)
            };
            assert!(is_global || has_row, "{command} {option} has no row");
        }
        for at in uses {
            for row in rows() {
                let has = options.iter().any(|option| option == row.name());
                let should = &row.cells[at..=at] != "-";
                assert_eq!(has, should, "{command} {:?}", row.option);
            }
        }
        assert!(
            others::exist(&command, &options),
            "{command} does not have all options of its rows"
        );
    }
}

#[test]
fn effect_of_every_option_is_tested_where_its_row_says() {
    let shared = rows().map(|row| (row.name(), row.file));
    for (option, file) in shared.chain(GLOBAL.iter().copied()) {
        assert_mentioned(option, file);
    }
}

/// Checks that a file below `tests` has an option.
fn assert_mentioned(option: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text.contains(option), "{file} does not use {option}");
}

/// Returns every command with the options of its help.
fn commands(world: &World) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.split_whitespace().collect();
        let help = acpipe(world, &words, &["--help"]);
        let help = String::from_utf8(help.stdout).unwrap();
        if let Some((_, subcommands)) = help.split_once("\nCommands:\n") {
            let lines = subcommands.lines().take_while(|line| !line.is_empty());
            let names = lines.filter_map(|line| {
                let name = line.strip_prefix("  ")?.split(' ').next()?;
                (!name.is_empty() && name != "help").then(|| format!("{command} {name}"))
            });
            open.extend(names.map(|name| name.trim().to_owned()));
        }
        found.push((command, options_of(&help)));
    }
    assert!(found.len() > 30, "{found:?}");
    found
}

/// Returns the options that a help lists under all headings.
fn options_of(help: &str) -> Vec<String> {
    let (_, options) = help.split_once("\nOptions:\n").unwrap();
    let longs = options.lines().filter_map(|line| {
        let (flags, long) = line.split_once("--")?;
        let is_option =
            line.starts_with("  ") && flags.trim_matches([' ', ',']).len() <= 2 && flags.len() <= 6;
        let long = long.split([' ', '[', '=', '.']).next()?;
        let is_general = matches!(long, "help" | "version");
        (is_option && !is_general).then(|| format!("--{long}"))
    });
    longs.collect()
}

/// Returns the command of a use.
fn command_of(words: &[&str]) -> String {
    let own = if words[0] == "daemon" { 2 } else { 1 };
    words[..own].join(" ")
}

fn acpipe(world: &World, words: &[&str], option: &[&str]) -> Output {
    let mut command = world.acpipe(&[words, option].concat());
    command.current_dir(&world.dir).stdin(Stdio::null());
    command.output().unwrap()
}
