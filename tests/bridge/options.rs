//! Options that commands share: a command uses each of them, or refuses it by name. No option is ignored in silence.

use crate::harness::World;
use std::process::{Output, Stdio};

/// Ways to use acpipe with the options of an agent, as they stand in the columns of [`TABLE`].
const USES: [&[&str]; 8] = [
    &["run", "hi"],
    &["run", "hi", "--daemon"],
    &["serve"],
    &["serve", "--daemon"],
    &["serve", "--listen", "127.0.0.1:0"],
    &["acp"],
    &["acp", "--daemon"],
    &["daemon", "start"],
];

/// Every option of these commands: its words, and for each use `U` (used), `R` (refused) or `-` (the command does not have it).
const TABLE: &[(&[&str], &str)] = &[
    (&["--agent", "a", "--agent", "b"], "RRRRRUUR"),
    (&["--chunk-profile", "5"], "UUUUUUUU"),
    (&["--child-per-session"], "UUUUUUUU"),
    (&["--config", "c"], "UUUUUUUU"),
    (&["--cwd", "."], "UUUUUUUU"),
    (&["--daemon"], "UUUURUU-"),
    (&["--durability", "none"], "URURUURU"),
    (&["--env", "A=1"], "UUUUUUUU"),
    (&["--idle-timeout", "1m"], "--URUURU"),
    (&["--max-line", "1M"], "URURUURU"),
    (&["--max-sessions", "3"], "--URUURU"),
    (&["--mcp-config", "m"], "UUUUUUUU"),
    (&["--no-daemon"], "UUUUUUU-"),
    (&["--no-path-probe"], "URURUURU"),
    (&["--on-new", "clear"], "UUUUUUUU"),
    (&["--otlp=http://127.0.0.1:1"], "URURUURU"),
    (&["--permissions", "ask"], "UUUUUUUU"),
    (&["--persist", "never"], "URURUURU"),
    (&["--protocol", "acp"], "UUUUUUUU"),
    (&["--record", "tape"], "URURRURR"),
    (&["--record-limit", "1M"], "RRRRRRRR"),
    (&["--reinject", "1"], "UUUUUUUU"),
    (&["--serve", "fs"], "URURUURU"),
    (&["--state-dir", "s"], "UUUUUUUU"),
    (&["--timeout", "answer=1s"], "UUUUUUUU"),
];

#[test]
fn shared_options_are_used_or_refused() {
    for (option, cells) in TABLE {
        for (words, cell) in USES.iter().zip(cells.chars()) {
            if cell == 'R' {
                let world = World::new();
                let output = acpipe(&world, words, option);
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(
                    output.status.code(),
                    Some(2),
                    "{words:?} {option:?}: {said}"
                );
                assert!(
                    said.contains(name_of(option)),
                    "{words:?} {option:?}: {said}"
                );
            }
        }
    }
}

/// An option that a later change adds is sorted here: used, refused, or not there.
#[test]
fn every_shared_option_has_a_row() {
    let world = World::new();
    for (at, words) in USES.iter().enumerate() {
        let options = options_of(&world, words);
        for (option, cells) in TABLE {
            let has = options.iter().any(|other| other == name_of(option));
            assert_eq!(has, &cells[at..=at] != "-", "{words:?} {option:?}");
        }
        // The options of `run` and `acp` themselves have no rows.
        let shared = options_of(&world, &["serve"]);
        for option in options.iter().filter(|option| shared.contains(option)) {
            assert!(
                TABLE.iter().any(|(row, _)| name_of(row) == option),
                "{option} has no row"
            );
        }
    }
}

/// Returns the options that the help of a command lists before its first heading: those behind it belong to the agent's
/// sessions, which get them in every use.
fn options_of(world: &World, words: &[&str]) -> Vec<String> {
    let verb = if words[0] == "daemon" {
        words
    } else {
        &words[..1]
    };
    let help = acpipe(world, verb, &["--help"]);
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, options) = help.split_once("\nOptions:\n").unwrap();
    let options = options
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    let longs = options.filter_map(|line| {
        let (flags, long) = line.split_once("--")?;
        let is_option = flags.trim_matches([' ', ',']).len() <= 2 && flags.len() <= 6;
        let long = long.split([' ', '[', '=', '.']).next()?;
        (is_option && long != "help").then(|| format!("--{long}"))
    });
    longs.collect()
}

fn name_of<'o>(option: &[&'o str]) -> &'o str {
    option[0]
        .split_once('=')
        .map_or(option[0], |(name, _)| name)
}

fn acpipe(world: &World, words: &[&str], option: &[&str]) -> Output {
    let mut command = world.acpipe(&[words, option].concat());
    command.current_dir(&world.dir).stdin(Stdio::null());
    command.output().unwrap()
}
