//! A project directory in which commands of the documentation run: `acpipe` is the built binary, and agents are
//! scripted ones under the names of real agents.

use super::markdown::root;
use crate::harness::steps::{end, say};
use crate::harness::{ACPIPE, FAKE_AGENT, FAKE_CLAUDE, World};
use serde_json::{Value, json};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Names of ACP agents, and of what starts them.
const AGENTS: &[&str] = &[
    "claude-agent-acp",
    "cline",
    "codex-acp",
    "copilot",
    "gemini",
    "kimi",
    "npx",
    "opencode",
    "pi-acp",
    "qwen",
    "vibe-acp",
];

pub struct Place {
    pub world: World,
    pub project: PathBuf,
}

impl Place {
    /// A project whose ACP agents answer with a greeting.
    pub fn new() -> Self {
        let world = World::new();
        let project = world.dir.join("project");
        let place = Self { world, project };
        for dir in ["bin", "home", "project/src"] {
            fs::create_dir_all(place.world.dir.join(dir)).unwrap();
        }
        place.set_turn(&[say("Hello!"), end("end_turn")]);
        place.program("claude", &format!("exec '{FAKE_CLAUDE}' \"$@\""));
        symlink(ACPIPE, place.world.dir.join("bin/acpipe")).unwrap();
        symlink(root().join("examples"), place.project.join("examples")).unwrap();
        for (name, text) in [
            ("Cargo.toml", "[package]\nname = \"project\"\n"),
            ("README.md", "# Project\n"),
            ("task.md", "Fix the tests.\n"),
            ("shot.png", "not really an image\n"),
            ("src/main.rs", "fn main() {}\n"),
        ] {
            fs::write(place.project.join(name), text).unwrap();
        }
        let git = "git init -q && git add Cargo.toml README.md src && git commit -q -m one && echo more >> README.md";
        let made = place.command("sh").args(["-c", git]).status().unwrap();
        assert!(made.success(), "{git}");
        if !has("jq") {
            place.program("jq", "cat > /dev/null");
        }
        place
    }

    /// Makes the ACP agents do this in each turn.
    pub fn set_turn(&self, turn: &[Value]) {
        let script = self.world.script(&json!({"session/prompt": [turn]}));
        for agent in AGENTS {
            self.program(agent, &format!("exec '{FAKE_AGENT}' '{script}'"));
        }
    }

    fn program(&self, name: &str, line: &str) {
        let text = format!("#!/bin/sh\n{line}\n");
        self.world.executable(&format!("bin/{name}"), &text);
    }

    /// A command in the project, with a home directory of its own and nothing of the surroundings that acpipe reads.
    pub fn command(&self, program: &str) -> Command {
        let bin = self.world.dir.join("bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(bin).chain(std::env::split_paths(&path));
        let mut command = Command::new(program);
        for (name, value) in self.world.acpipe::<&str>(&[]).get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            // Sessions and configuration are where they are without options.
            .env_remove("ACPIPE_STATE_DIR")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.world.dir.join("home"))
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_NAME"), "n")))
            .envs(["AUTHOR", "COMMITTER"].map(|who| (format!("GIT_{who}_EMAIL"), "e")))
            .current_dir(&self.project)
            .stdin(Stdio::null());
        command
    }
}

/// Whether a program is installed.
fn has(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Like [`has`], with a note past the capture of the test runner if it is not installed.
pub fn needs(program: &str, what: &str) -> bool {
    let found = has(program);
    if !found {
        let _ = writeln!(std::io::stderr(), "SKIPPED: no {program}: {what}");
    }
    found
}
