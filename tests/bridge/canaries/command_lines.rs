//! Command lines and settings: no command shows the values in them, and no error quotes them.

use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::process::Stdio;

const CANARY: &str = "c4n4ry";

/// Runs acpipe to its end. Returns what it prints.
fn run(world: &World, args: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = world.acpipe(args);
    command
        .current_dir(&world.dir)
        .envs(variables.iter().copied());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    format!("{out}{err}")
}

#[test]
fn commands_show_command_lines_without_values() {
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [[say("the-answer"), end("end_turn")]]}));
    let config = format!(
        "[agents.mine]\ncommand = \"sh\"\nargs = [\"-c\", \"exec {FAKE_AGENT} {script}\", \"agent\", \"--token\", \"{CANARY}\", \"-e\", \"PLAIN={CANARY}\"]\n"
    );
    let config = world.file("own.toml", &config);
    let variables = [("ACPIPE_CONFIG", config.as_str())];
    let words = [
        "run",
        "--agent",
        "mine",
        "--session",
        "s",
        "--record",
        "tape",
        "go",
    ];
    let said = run(&world, &words, &variables);
    assert!(said.contains("the-answer"), "{said}");
    let tape = std::fs::read_to_string(world.dir.join("tape")).unwrap();
    assert!(
        tape.contains("PLAIN=[hidden]") && !tape.contains(CANARY),
        "{tape}"
    );
    for (words, wanted) in [
        (&["agents", "show", "mine"][..], "PLAIN=[hidden]"),
        (&["agents", "show", "mine", "--json"], "PLAIN=[hidden]"),
        (&["agents", "--json"], "PLAIN=[hidden]"),
        (&["sessions", "list", "--json"], "PLAIN=[hidden]"),
        (&["sessions", "list"], "sh -c"),
        (&["sessions", "show", "s"], "PLAIN=[hidden]"),
        (&["sessions", "export", "s", "--format", "html"], "PLAIN"),
        (&["trace", "--text", "tape"], "PLAIN=[hidden]"),
        (&["doctor", "mine", "--json"], "PLAIN=[hidden]"),
    ] {
        let shown = run(&world, words, &variables);
        assert!(!shown.contains(CANARY), "{words:?}: {shown}");
        assert!(shown.contains(wanted), "{words:?}: {shown}");
    }
}

#[test]
fn errors_do_not_quote_values_in_the_places_of_names() {
    let world = World::new();
    let config = format!(
        "[agents.far]\nprotocol = \"openai\"\nurl = \"http://127.0.0.1:9/v1\"\nmodel = \"m\"\napi_key_env = \"{CANARY}-key\"\n"
    );
    let config = world.file("own.toml", &config);
    let value = format!("={CANARY}");
    let line = format!("agent '{CANARY}");
    let config = [("ACPIPE_CONFIG", config.as_str())];
    let agent = [("ACPIPE_AGENT", line.as_str())];
    for (words, variables, wanted) in [
        (
            &["run", "-e", &value, "go"][..],
            &[][..],
            "the name before =",
        ),
        (
            &["agents", "add", "x", "-e", &value, "--", "y"],
            &[],
            "the name before =",
        ),
        (&["run", "--agent", "far", "go"], &config, "api_key_env"),
        (&["run", "go"], &agent, "ACPIPE_AGENT"),
        (&["serve", "--daemon"], &agent, "ACPIPE_AGENT"),
        (&["doctor"], &agent, "ACPIPE_AGENT"),
    ] {
        let shown = run(&world, words, variables);
        assert!(!shown.contains(CANARY), "{words:?}: {shown}");
        assert!(shown.contains(wanted), "{words:?}: {shown}");
    }
}
