//! The files of a client are those that it would read alone: the daemon has other variables, descriptors and another user.

use super::{Daemon, asking};
use crate::harness::steps::{ask, end};
use crate::harness::{ACPIPE, FAKE_AGENT, World, chosen_options, words};
use serde_json::{Value, json};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::process::{Command, Output, Stdio};

const DENY: &str = "[permissions]\ndefault = \"deny\"\n";

/// World with an agent that asks once in each turn.
struct Asking {
    daemon: Daemon,
    script: String,
}

impl Asking {
    fn new() -> Self {
        let world = World::new();
        let script = world.script(&asking());
        let daemon = Daemon { world };
        Self { daemon, script }
    }

    /// Command of acpipe with the agent, in the directory of the test.
    fn command(&self, args: &[&str]) -> Command {
        let agent = ["--", FAKE_AGENT, &self.script];
        self.without_agent(&[args, &agent].concat())
    }

    fn without_agent(&self, args: &[&str]) -> Command {
        let mut command = self.daemon.command(args);
        command.stdin(Stdio::null());
        command
    }

    /// Script of a shell with the variables of acpipe's commands; `$ACPIPE` is the program, and `$AGENT` the agent after
    /// `--`.
    fn shell(&self, line: &str) -> Output {
        let of_acpipe = self.without_agent(&[]);
        let mut command = Command::new("bash");
        command
            .args(["-c", line])
            .current_dir(&self.daemon.world.dir);
        for (name, value) in of_acpipe.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let agent = format!("-- {FAKE_AGENT} {}", self.script);
        command.env("ACPIPE", ACPIPE).env("AGENT", agent);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Runs a command without an agent, which must succeed; returns its stdout.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let output = self.daemon.run(&words(line), 0);
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> Value {
        serde_json::from_str::<Value>(&self.run("daemon status --json")).unwrap()["daemon"].clone()
    }

    /// Runs a command to its end. Returns the choice of the last question.
    #[track_caller]
    fn chosen(&self, command: &mut Command) -> String {
        let before = chosen_options(&self.daemon.world.log()).len();
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        self.last(before)
    }

    #[track_caller]
    fn last(&self, before: usize) -> String {
        let log = self.daemon.world.log();
        let chosen = chosen_options(&log);
        assert_eq!(chosen.len(), before + 1);
        chosen.last().unwrap().to_string()
    }

    fn private_dir(&self, name: &str) -> String {
        let dir = self.daemon.world.dir.join(name);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&dir).unwrap();
        dir.to_str().unwrap().to_owned()
    }

    fn stop(self) {
        self.daemon.stop();
    }
}

#[track_caller]
fn success(output: &Output) {
    assert!(output.status.success(), "{output:?}");
}

#[track_caller]
fn refused(output: &Output, why: &str) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(why), "{text}");
}

#[test]
fn users_configuration_is_that_of_the_clients_environment() {
    let asking = Asking::new();
    asking.private_dir("xdg/acpipe");
    asking.private_dir("home/.config/acpipe");
    let config = format!("attach = true\n{DENY}");
    for file in ["xdg/acpipe/config.toml", "home/.config/acpipe/config.toml"] {
        asking.daemon.world.file(file, &config);
    }
    let dir = |name: &str| asking.daemon.world.dir.join(name);
    asking.run("daemon start");
    for (variable, value) in [("XDG_CONFIG_HOME", "xdg"), ("HOME", "home")] {
        let mut run = asking.command(&["run", "--session", variable, "go"]);
        run.env_remove("XDG_CONFIG_HOME").env(variable, dir(value));
        assert_eq!(asking.chosen(&mut run), "no", "{variable}");
        let list = asking.run("sessions list --json");
        assert!(list.contains(variable), "not a run of the daemon: {list}");
    }
    asking.run("daemon stop");
    // The daemon has the file, and the client has none.
    let mut start = asking.without_agent(&["daemon", "start"]);
    success(&start.env("XDG_CONFIG_HOME", dir("xdg")).output().unwrap());
    let mut run = asking.command(&["run", "--daemon", "go"]);
    assert_eq!(asking.chosen(&mut run), "yes");
    asking.stop();
}

#[test]
fn home_directory_in_rules_is_that_of_the_client() {
    let asking = Asking::new();
    let world = &asking.daemon.world;
    let home = asking.private_dir("other");
    let tool = json!({
        "toolCallId": "edit", "title": "Edit", "kind": "edit", "locations": [{"path": format!("{home}/secret/x")}],
    });
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let script = world.script(&json!({"session/prompt": [[question, end("end_turn")]]}));
    let rule = "[[permissions.rules]]\neffect = \"deny\"\npath = \"~/secret/**\"\n";
    let config = world.file("rule.toml", rule);
    asking.run("daemon start");
    let line = [
        "run", "--daemon", "--config", &config, "go", "--", FAKE_AGENT, &script,
    ];
    let mut run = asking.without_agent(&line);
    assert_eq!(asking.chosen(run.env("HOME", &home)), "no");
    asking.stop();
}

/// Under `sudo`, files of the user who called it count.
#[test]
fn files_of_the_caller_of_sudo_count_for_its_client() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let asking = Asking::new();
    let project = asking.private_dir("project");
    asking.daemon.world.file("project/.git", "");
    asking.daemon.world.file("project/.acpipe.toml", DENY);
    for file in ["project", "project/.git", "project/.acpipe.toml"] {
        let path = asking.daemon.world.dir.join(file);
        std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    }
    asking.run("daemon start");
    let mut run = asking.command(&["run", "--daemon", "go"]);
    run.current_dir(&project).env("SUDO_UID", "65534");
    assert_eq!(asking.chosen(&mut run), "no");
    asking.stop();
}

#[test]
fn client_reads_its_pipes_and_descriptors() {
    let asking = Asking::new();
    asking.daemon.world.file("deny.toml", DENY);
    asking.run("daemon start");
    for line in [
        "$ACPIPE run --daemon --config /dev/fd/9 go $AGENT 9< deny.toml",
        "ACPIPE_CONFIG=/dev/fd/9 $ACPIPE run --daemon go $AGENT 9< deny.toml",
        "$ACPIPE run --daemon --config /dev/fd/12 go $AGENT 12< deny.toml",
        "$ACPIPE run --daemon --config <(cat deny.toml) go $AGENT",
        "$ACPIPE run --daemon --config /proc/self/cwd/deny.toml go $AGENT",
    ] {
        let before = chosen_options(&asking.daemon.world.log()).len();
        success(&asking.shell(line));
        assert_eq!(asking.last(before), "no", "{line}");
    }
    asking.stop();
}

#[test]
fn daemon_refuses_pipes_and_descriptors_before_it_is_stopped() {
    let asking = Asking::new();
    let world = &asking.daemon.world;
    world.file("deny.toml", DENY);
    world.file("mcp.json", "{\"mcpServers\": {}}");
    world.file("schema.json", "{\"type\": \"object\"}");
    asking.run("daemon start");
    let pid = || asking.status()["pid"].clone();
    let before = pid();
    for line in [
        "$ACPIPE daemon restart --config <(cat deny.toml)",
        "ACPIPE_CONFIG=<(cat deny.toml) $ACPIPE daemon restart",
        "$ACPIPE daemon restart --config /dev/stdin < deny.toml",
        "$ACPIPE daemon restart --config /dev/fd/0 < deny.toml",
        "$ACPIPE daemon restart --config /proc/self/fd/0 < deny.toml",
        "$ACPIPE daemon restart --mcp-config <(cat mcp.json)",
        "$ACPIPE daemon restart --output-schema <(cat schema.json)",
    ] {
        refused(&asking.shell(line), "pass a file");
        assert_eq!(pid(), before, "{line}");
    }
    asking.run("daemon stop");
    for line in [
        "$ACPIPE daemon start --config /dev/stdin < deny.toml",
        "$ACPIPE daemon start --config <(cat deny.toml)",
        "ACPIPE_CONFIG=/dev/stdin $ACPIPE daemon start < deny.toml",
        "$ACPIPE daemon start --config /dev/fd/9 9< deny.toml",
    ] {
        refused(&asking.shell(line), "pass a file");
    }
    assert_eq!(world.leak(), None);
}

#[test]
fn restart_from_another_environment_keeps_the_configuration_of_the_start() {
    let asking = Asking::new();
    asking.private_dir("xdg/acpipe");
    let file = asking.daemon.world.file("xdg/acpipe/config.toml", DENY);
    let mut start = asking.without_agent(&["daemon", "start"]);
    start.env("XDG_CONFIG_HOME", asking.daemon.world.dir.join("xdg"));
    success(&start.output().unwrap());
    asking.run("daemon restart");
    assert_eq!(asking.status()["variables"]["config"], file.as_str());
    asking.stop();
}

#[test]
fn client_that_stores_nothing_is_refused() {
    let asking = Asking::new();
    for args in [
        &["run", "--daemon", "go"][..],
        &["serve", "--daemon"],
        &["acp", "--daemon"],
    ] {
        let mut command = asking.command(args);
        let output = command.env("PERSIST_MESSAGES", "false").output().unwrap();
        refused(
            &output,
            "PERSIST_MESSAGES=false cannot be used with the daemon",
        );
    }
    assert_eq!(asking.daemon.world.leak(), None);
}

#[test]
fn attach_that_stores_nothing_is_refused_by_a_daemon_only() {
    let asking = Asking::new();
    let attach = || {
        let mut command = asking.without_agent(&["attach"]);
        command.env("PERSIST_MESSAGES", "false").output().unwrap()
    };
    let output = attach();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("no daemon is running"), "{error}");
    asking.run("daemon start");
    let output = attach();
    refused(
        &output,
        "PERSIST_MESSAGES=false cannot be used with the daemon",
    );
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!error.contains("--no-daemon"), "{error}");
    asking.stop();
}

#[test]
fn restart_keeps_that_the_daemon_stores_nothing() {
    let asking = Asking::new();
    let mut start = asking.without_agent(&["daemon", "start"]);
    success(&start.env("PERSIST_MESSAGES", "false").output().unwrap());
    asking.run("daemon restart");
    asking.chosen(&mut asking.command(&["run", "--daemon", "--session", "s", "go"]));
    let sessions = asking.daemon.world.dir.join("state/sessions");
    let stored = std::fs::read_dir(sessions).into_iter().flatten().count();
    assert_eq!(stored, 0);
    asking.stop();
}

/// `--cwd LINK` means the project that `cd LINK` means.
#[test]
fn project_above_the_real_directory_of_a_link_counts() {
    let asking = Asking::new();
    asking.private_dir("project/below");
    asking.daemon.world.file("project/.git", "");
    asking.daemon.world.file("project/.acpipe.toml", DENY);
    let link = asking.daemon.world.dir.join("link");
    symlink("project/below", &link).unwrap();
    let link = link.to_str().unwrap();
    for daemon in ["--no-daemon", "--daemon"] {
        let mut run = asking.command(&["run", daemon, "--cwd", link, "go"]);
        assert_eq!(asking.chosen(&mut run), "no", "{daemon}");
    }
    asking.stop();
}
