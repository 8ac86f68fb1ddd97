//! Options of the commands that start no agents for clients.

use super::{World, acpipe, assert_mentioned};
use Shown::{Prints, Refused, Test};

/// How an option shows its effect.
pub enum Shown {
    /// In the tests of this file, below `tests`.
    Test(&'static str),
    /// The output of this command line has this text.
    Prints(&'static [&'static str], &'static str),
    /// This command line is refused, and the message names the option.
    Refused(&'static [&'static str]),
}

/// Commands, separated by `|`, with an option of each of them.
const ROWS: &[(&str, &str, Shown)] = &[
    ("attach", "--cwd", Test("bridge/options/effects.rs")),
    ("attach", "--last", Test("bridge/daemon/attach.rs")),
    (
        "attach",
        "--last",
        Refused(&["attach", "--last", "3", "-o", "chunks"]),
    ),
    ("attach", "--output", Test("bridge/options/effects.rs")),
    (
        "attach",
        "--raw",
        Refused(&["attach", "--raw", "-o", "chunks"]),
    ),
    ("attach", "--read-only", Test("bridge/daemon/attach.rs")),
    (
        "attach|agents|agents list|agents show|agents add|agents remove|agents default|agents import|agents trust",
        "--state-dir",
        Test("bridge/storage.rs"),
    ),
    (
        "daemon status|daemon stop|daemon logs|sessions|sessions list|sessions show|sessions search|sessions export|sessions delete|sessions gc|trace|permissions|permissions show|processes|doctor",
        "--state-dir",
        Test("bridge/storage.rs"),
    ),
    (
        "agents|agents list|agents show|agents add|agents remove|agents default|agents import|agents trust",
        "--config",
        Prints(&["agents", "default", "--config", "c.toml"], "c.toml:1"),
    ),
    (
        "agents|agents list",
        "--all",
        Prints(&["agents", "--all"], "gemini"),
    ),
    (
        "agents|agents list|agents show",
        "--json",
        Test("bridge/named_agents_cli.rs"),
    ),
    (
        "agents add",
        "--description",
        Test("bridge/agent_choice.rs"),
    ),
    (
        "agents add",
        "--env",
        Prints(&["agents", "add", "x", "--env", "A", "--", "c"], "--env"),
    ),
    ("agents add", "--extends", Test("bridge/agent_choice.rs")),
    ("agents add", "--mode", Test("bridge/agent_choice.rs")),
    ("agents add", "--model", Test("bridge/agent_choice.rs")),
    (
        "agents add",
        "--permissions",
        Prints(
            &["agents", "add", "x", "--permissions", "none", "--", "c"],
            "permissions",
        ),
    ),
    (
        "agents add",
        "--prompt",
        Prints(
            &[
                "agents",
                "add",
                "p",
                "--extends",
                "demo",
                "--prompt",
                "Be brief.",
                "--config",
                "p.toml",
            ],
            "added agent",
        ),
    ),
    (
        "agents show",
        "--json",
        Prints(
            &["agents", "show", "p", "--json", "--config", "p.toml"],
            "configuration",
        ),
    ),
    (
        "agents add",
        "--protocol",
        Prints(
            &["agents", "add", "q", "--protocol", "none", "--", "c"],
            "none",
        ),
    ),
    ("agents default", "--unset", Test("bridge/strangers.rs")),
    (
        "agents trust",
        "--revoke",
        Test("bridge/named_agents_cli.rs"),
    ),
    ("daemon status", "--json", Test("bridge/daemon.rs")),
    ("daemon logs", "--lines", Test("bridge/http/secrets.rs")),
    ("daemon logs", "--follow", Test("bridge/options/effects.rs")),
    ("doctor", "--config", Test("bridge/doctor.rs")),
    (
        "doctor",
        "--cwd",
        Prints(&["doctor", "--cwd", "none", "--", "true"], "none"),
    ),
    ("doctor", "--json", Test("bridge/doctor.rs")),
    ("doctor", "--no-path-probe", Test("bridge/doctor.rs")),
    ("doctor", "--probe", Test("bridge/doctor.rs")),
    ("doctor", "--probe", Refused(&["doctor", "--probe"])),
    ("doctor", "--timeout", Test("bridge/doctor.rs")),
    (
        "doctor",
        "--timeout",
        Refused(&["doctor", "--timeout", "initialize=1s"]),
    ),
    ("doctor", "--yes", Test("bridge/doctor.rs")),
    ("doctor", "--yes", Refused(&["doctor", "--yes"])),
    ("man", "--dir", Test("bridge/man.rs")),
    ("permissions show", "--cwd", Test("bridge/ledger.rs")),
    ("permissions show", "--json", Test("bridge/ledger.rs")),
    ("permissions show", "--refused", Test("bridge/ledger.rs")),
    ("processes", "--end", Test("bridge/launches.rs")),
    ("processes", "--json", Test("bridge/launches.rs")),
    (
        "replay",
        "--agent",
        Prints(
            &["replay", "tape", "--agent", "x"],
            "does not have this process",
        ),
    ),
    ("replay", "--at-once", Test("bridge/tapes.rs")),
    (
        "replay",
        "--child",
        Prints(
            &["replay", "tape", "--child", "7"],
            "does not have this process",
        ),
    ),
    (
        "replay",
        "--max-pause",
        Refused(&["replay", "tape", "--at-once", "--max-pause", "1s"]),
    ),
    (
        "replay",
        "--paced",
        Refused(&["replay", "tape", "--at-once", "--paced"]),
    ),
    (
        "replay",
        "--speed",
        Refused(&["replay", "tape", "--at-once", "--speed", "2"]),
    ),
    (
        "schema",
        "--bundle",
        Prints(&["schema", "--bundle"], "AcpipeProtocol"),
    ),
    (
        "schema",
        "--bundle",
        Refused(&["schema", "--bundle", "--dir", "d"]),
    ),
    ("schema", "--dir", Test("bridge/cli.rs")),
    (
        "sessions list|sessions show|sessions search|sessions export|sessions delete",
        "--cwd",
        Test("bridge/ownership.rs"),
    ),
    (
        "sessions|sessions list|sessions show|sessions search|sessions export|sessions delete|sessions gc|trace|permissions|permissions show",
        "--no-pager",
        Test("bridge/rendering.rs"),
    ),
    ("sessions delete", "--archive", Test("bridge/sessions.rs")),
    (
        "sessions export",
        "--chunk-profile",
        Refused(&[
            "sessions",
            "export",
            "a",
            "--chunk-profile",
            "5",
            "-f",
            "md",
        ]),
    ),
    (
        "sessions export",
        "--chunk-profile",
        Refused(&[
            "sessions",
            "export",
            "a",
            "--chunk-profile",
            "5",
            "-o",
            "log",
        ]),
    ),
    (
        "sessions export",
        "--chunk-profile",
        Prints(
            &["sessions", "export", "a", "--chunk-profile", "5"],
            "parts",
        ),
    ),
    ("sessions export", "--format", Test("bridge/search.rs")),
    (
        "sessions export",
        "--output",
        Prints(&["sessions", "export", "a", "--output", "log"], "record"),
    ),
    (
        "sessions export",
        "--output",
        Refused(&["sessions", "export", "a", "--output", "log", "-f", "md"]),
    ),
    ("sessions gc", "--dry-run", Test("bridge/sessions.rs")),
    ("sessions gc", "--older-than", Test("bridge/sessions.rs")),
    ("sessions list", "--all", Test("bridge/sessions.rs")),
    (
        "sessions list|sessions search",
        "--json",
        Test("bridge/screen.rs"),
    ),
    ("sessions search", "--limit", Test("bridge/search.rs")),
    (
        "sessions search",
        "--regex",
        Prints(&["sessions", "search", "--regex", "gree.ings"], "greetings"),
    ),
    (
        "trace",
        "--cwd",
        Prints(
            &["trace", "same", "--text", "--cwd", "two"],
            "prompt  in two",
        ),
    ),
    (
        "trace",
        "--output",
        Prints(&["trace", "a", "--output", "page.html"], "wrote page.html"),
    ),
    ("trace", "--text", Test("bridge/trace.rs")),
];

/// Returns `true` if a row has this option of this command.
pub fn has_row(command: &str, option: &str) -> bool {
    ROWS.iter().any(|(commands, name, _)| {
        *name == option && commands.split('|').any(|other| other == command)
    })
}

/// Returns `true` if a command has all options of its rows.
pub fn exist(command: &str, options: &[String]) -> bool {
    let own = ROWS
        .iter()
        .filter(|(commands, ..)| commands.split('|').any(|other| other == command));
    own.into_iter()
        .all(|(_, name, _)| options.iter().any(|option| option == name))
}

#[test]
fn options_of_other_commands_show_their_effect_or_are_refused() {
    let world = World::new();
    let run = [
        "run",
        "greetings",
        "--agent",
        "demo",
        "--session",
        "a",
        "--record",
        "tape",
    ];
    assert!(acpipe(&world, &run, &[]).status.success());
    for dir in ["one", "two"] {
        std::fs::create_dir(world.dir.join(dir)).unwrap();
        let prompt = format!("in {dir}");
        let run = [
            "run",
            &prompt,
            "--agent",
            "demo",
            "--session",
            "same",
            "--cwd",
            dir,
        ];
        assert!(acpipe(&world, &run, &[]).status.success());
    }
    std::fs::write(world.dir.join("c.toml"), "agent = \"demo\"\n").unwrap();
    std::fs::write(world.dir.join("p.toml"), "").unwrap();
    for (_, option, shown) in ROWS {
        match shown {
            Test(file) => assert_mentioned(option, file),
            Prints(words, text) => {
                let output = acpipe(&world, words, &[]);
                let said = [output.stdout, output.stderr].concat();
                let said = String::from_utf8_lossy(&said);
                assert!(said.contains(text), "{words:?}: {said}");
            }
            Refused(words) => {
                let output = acpipe(&world, words, &[]);
                let said = String::from_utf8_lossy(&output.stderr);
                assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
                assert!(said.contains(option), "{words:?}: {said}");
            }
        }
    }
    let added = std::fs::read_to_string(world.dir.join("p.toml")).unwrap();
    assert!(added.contains("prompt = \"Be brief.\""), "{added}");
}
