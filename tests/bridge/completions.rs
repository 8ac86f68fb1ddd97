//! Completion in shells.

use crate::harness::{ACPIPE, World};
use std::path::Path;

/// Completes the last of these words in bash, with the printed script.
fn complete(world: &World, words: &[&str]) -> Vec<String> {
    let script = r#"
        source <(acpipe completions bash)
        function=$(complete -p acpipe | sed 's/.*-F \([^ ]*\).*/\1/')
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_TYPE=9
        "$function" acpipe "${COMP_WORDS[COMP_CWORD]}"
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let programs = Path::new(ACPIPE).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut bash = world.command("bash");
    let bash = bash.args(["-euc", script, "bash"]).args(words);
    let done = bash.env("PATH", path).output().unwrap();
    let stdout = String::from_utf8(done.stdout).unwrap();
    assert!(
        done.status.success(),
        "{stdout}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    stdout
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[test]
fn bash_completes_commands_and_names() {
    let world = World::new();
    let run = [
        "run",
        "-q",
        "--agent",
        "demo",
        "--session",
        "release-notes",
        "hello",
    ];
    assert!(world.acpipe(&run).output().unwrap().status.success());
    let unnamed = ["run", "-q", "--agent", "demo", "hello"];
    assert!(world.acpipe(&unnamed).output().unwrap().status.success());
    let cases: [(&[&str], &[&str]); 8] = [
        (&["acpipe", "comp"], &["completions"]),
        (&["acpipe", "run", "--agent", "gem"], &["gemini"]),
        (&["acpipe", "run", "--session", ""], &["release-notes"]),
        (&["acpipe", "sessions", "show", "rel"], &["release-notes"]),
        (&["acpipe", "attach", "rel"], &["release-notes"]),
        (&["acpipe", "sessions", "sea"], &["search"]),
        (&["acpipe", "--color", "ne"], &["never"]),
        (&["acpipe", "run", "--permissions", "as"], &["ask"]),
    ];
    for (words, candidates) in cases {
        assert_eq!(complete(&world, words), candidates, "{words:?}");
    }
}

#[test]
fn every_shell_has_a_script() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let done = world.acpipe(&["completions", shell]).output().unwrap();
        let script = String::from_utf8(done.stdout).unwrap();
        assert!(
            done.status.success() && script.contains("acpipe"),
            "{shell}"
        );
        // The script of Nushell does not run acpipe, so it has all options.
        let is_dynamic = script.contains("ACPIPE_COMPLETE");
        assert_eq!(is_dynamic, shell != "nushell", "{shell}");
        assert_eq!(script.contains("--permissions"), shell == "nushell");
    }
}
