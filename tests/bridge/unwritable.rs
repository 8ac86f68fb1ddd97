//! Output that cannot be written: every command in every form, from the definition of the command line, with stdout and
//! stderr on a full device, and with a pipe whose reader has left.

use crate::daemon::Daemon;
use crate::harness::{World, steps::say};
use acpipe::cli::definition;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// First message of a client of each protocol.
const RPC: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
const ACP: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}"#;

/// Arguments that can have several values, each of which is a form of the output.
const FORMATS: [&str; 4] = ["output", "format", "shell", "json"];

/// How a command prints something.
enum Prints {
    /// With these arguments, and in each of its formats.
    With(&'static [&'static str]),
    /// With these arguments and this stdin.
    Answering(&'static [&'static str], &'static str),
    /// While a daemon runs.
    InDaemon(&'static [&'static str], &'static str),
    /// It prints on stderr only.
    Nothing,
}

/// Returns how a command prints something. A new command has to be added here.
fn prints(command: &str) -> Prints {
    match command {
        "run" => Prints::With(&["--agent", "demo", "hello"]),
        "serve" => Prints::Answering(&["--agent", "demo"], RPC),
        "acp" => Prints::Answering(&["--agent", "demo"], ACP),
        "demo-agent" => Prints::Answering(&[], ACP),
        "replay" => Prints::Answering(&["TAPE"], ACP),
        "daemon status" | "daemon logs" | "processes" => Prints::InDaemon(&[], ""),
        "attach" => Prints::InDaemon(&["s"], ""),
        "agents" | "agents list" | "agents default" | "schema" | "man" | "completions"
        | "sessions list" | "permissions show" => Prints::With(&[]),
        "sessions show" | "sessions export" | "sessions delete" => Prints::With(&["s"]),
        "sessions search" => Prints::With(&["hello"]),
        "sessions gc" => Prints::With(&["--older-than", "0s", "--dry-run"]),
        "trace" => Prints::With(&["--text", "TAPE"]),
        "agents show" | "doctor" => Prints::With(&["demo"]),
        // They have subcommands, or report what they have done.
        "sessions" | "permissions" | "daemon" | "daemon run" | "daemon start" | "daemon stop"
        | "daemon restart" | "agents add" | "agents remove" | "agents import" | "agents trust" => {
            Prints::Nothing
        }
        other => panic!("{other}: add how this command prints something"),
    }
}

/// Returns all commands by their words, except acpipe itself.
fn commands() -> Vec<(String, clap::Command)> {
    fn walk(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        for sub in command.get_subcommands() {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            walk(sub, &path, found);
            found.push((path, sub.clone()));
        }
    }
    let mut found = Vec::new();
    walk(&definition(), "", &mut found);
    found
}

/// Returns the arguments of each format of a command, and none for the default format.
fn formats(command: &clap::Command) -> Vec<Vec<String>> {
    let mut formats = vec![Vec::new()];
    for arg in command.get_arguments() {
        if !FORMATS.contains(&arg.get_id().as_str()) {
            continue;
        }
        let name = arg.get_long().map(|long| format!("--{long}"));
        if !arg.get_action().takes_values() {
            formats.push(name.into_iter().collect());
            continue;
        }
        // Without a list of values, it names a file.
        let Some(values) = arg.get_value_parser().possible_values() else {
            continue;
        };
        if arg.is_required_set() {
            formats.clear();
        }
        let with = |value: clap::builder::PossibleValue| {
            let value = value.get_name().to_owned();
            name.clone().into_iter().chain([value]).collect()
        };
        formats.extend(values.map(with));
    }
    formats
}

/// Result of a command.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

/// Destination of stdout or stderr.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Target {
    Read,
    Full,
    Left,
}

/// Files of a test: a session, a tape, and everything that the commands read.
struct Place {
    daemon: Daemon,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            daemon: Daemon {
                world: World::new(),
            },
        };
        place.daemon.run(&["agents", "default", "demo"], 0);
        place.restore();
        place
    }

    /// Stores the session and the tape anew: a command may have removed them.
    fn restore(&self) {
        let tape = self.tape();
        if !Path::new(&tape).exists() {
            let run = [
                "run",
                "-q",
                "--agent",
                "demo",
                "--session",
                "s",
                "--permissions",
                "approve",
            ];
            let tail = ["--record", &tape, "write hello into a file"];
            self.daemon.run(&[&run[..], &tail].concat(), 0);
            let world = &self.daemon.world;
            fs::rename(world.dir.join("state"), world.dir.join("saved")).unwrap();
        }
        let world = &self.daemon.world;
        let (state, saved) = (
            world.dir.join("state/sessions"),
            world.dir.join("saved/sessions"),
        );
        fs::create_dir_all(&state).unwrap();
        for file in fs::read_dir(saved).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), state.join(file.file_name())).unwrap();
        }
    }

    fn tape(&self) -> String {
        self.daemon.world.dir.join("tape").display().to_string()
    }

    /// Runs a command to its end.
    fn run(&self, args: &[String], stdin: &str, out: Target, err: Target) -> Ended {
        let args: Vec<String> = args
            .iter()
            .map(|arg| arg.replace("TAPE", &self.tape()))
            .collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        run(&mut self.daemon.command(&args), stdin, out, err)
    }

    /// Checks all forms of a command.
    fn check(&self, args: &[String], stdin: &str, is_changing: bool) {
        let restore = || {
            if is_changing {
                self.restore();
            }
        };
        let usual = self.run(args, stdin, Target::Read, Target::Read);
        assert!(
            !usual.stdout.is_empty(),
            "{args:?} prints nothing: {usual:?}"
        );
        restore();
        self.check_full(args, stdin, Target::Read);
        restore();
        self.check_full(args, stdin, Target::Full);
        restore();
        let left = self.run(args, stdin, Target::Left, Target::Read);
        assert!(
            left.code == Some(0) || left.code == usual.code,
            "{args:?}: {left:?}, {usual:?}"
        );
        assert!(!left.stderr.contains("cannot write"), "{args:?}: {left:?}");
        assert!(!left.stderr.contains("panicked"), "{args:?}: {left:?}");
        restore();
        // A stderr that cannot be written changes nothing.
        for err in [Target::Full, Target::Left] {
            let silent = self.run(args, stdin, Target::Read, err);
            assert_eq!(
                silent.code, usual.code,
                "{args:?}, stderr {err:?}: {silent:?}"
            );
            assert!(
                !silent.stdout.is_empty(),
                "{args:?}, stderr {err:?}: {silent:?}"
            );
            restore();
        }
    }

    /// Checks that a command reports a stdout that is full.
    fn check_full(&self, args: &[String], stdin: &str, err: Target) {
        let full = self.run(args, stdin, Target::Full, err);
        assert_eq!(full.code, Some(74), "{args:?}: {full:?}");
        if err == Target::Read {
            let said = full
                .stderr
                .matches("cannot write to stdout: No space left on device");
            assert_eq!(said.count(), 1, "{args:?}: {full:?}");
            assert!(!full.stderr.contains("panicked"), "{args:?}: {full:?}");
        }
    }
}

fn run(command: &mut Command, stdin: &str, out: Target, err: Target) -> Ended {
    let open = |target| match target {
        Target::Read => Stdio::piped(),
        Target::Full => File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
            .into(),
        // The reader is dropped here.
        Target::Left => io::pipe().unwrap().1.into(),
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(open(out))
        .stderr(open(err))
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    if !stdin.is_empty() {
        // A program that ends early does not read it.
        let _ = writeln!(input, "{stdin}");
    }
    // A server ends with its input; the answer comes before that.
    let mut stdout = Vec::new();
    if let Some(pipe) = child.stdout.as_mut().filter(|_| !stdin.is_empty()) {
        let mut first = [0];
        let read = pipe.read(&mut first).unwrap();
        stdout.extend_from_slice(&first[..read]);
    }
    drop(input);
    let ended = child.wait_with_output().unwrap();
    stdout.extend(ended.stdout);
    Ended {
        code: ended.status.code(),
        stdout,
        stderr: String::from_utf8_lossy(&ended.stderr).into_owned(),
    }
}

fn words(command: &str) -> Vec<String> {
    command
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_reports_a_stdout_that_cannot_be_written() {
    let place = Place::new();
    let mut forms = 0;
    for (path, command) in commands() {
        let (own, stdin) = match prints(&path) {
            Prints::With(own) => (own, ""),
            Prints::Answering(own, stdin) => (own, stdin),
            Prints::InDaemon(..) | Prints::Nothing => continue,
        };
        for format in formats(&command) {
            let own = own.iter().map(|word| (*word).to_owned());
            let args: Vec<String> = words(&path).into_iter().chain(format).chain(own).collect();
            place.check(&args, stdin, path == "sessions delete");
            forms += 1;
        }
    }
    assert!(forms > 40, "{forms}");
}

#[test]
fn help_and_version_report_a_stdout_that_cannot_be_written() {
    let place = Place::new();
    for (path, _) in commands() {
        place.check_full(&words(&format!("{path} --help")), "", Target::Read);
    }
    let others = [
        "--help",
        "-h",
        "help",
        "help run",
        "--version",
        "-V",
        "run --help",
    ];
    for args in others {
        place.check(&words(args), "", false);
    }
}

#[test]
fn completion_reports_a_stdout_that_cannot_be_written() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let complete = |out| {
            let mut command = world.acpipe(&["--", "acpipe", "ru"]);
            command.env("ACPIPE_COMPLETE", shell);
            // As the scripts of the shells set them.
            command
                .env("_CLAP_COMPLETE_INDEX", "1")
                .env("_CLAP_IFS", "\n");
            run(
                command.env("_CLAP_COMPLETE_COMP_TYPE", "9"),
                "",
                out,
                Target::Read,
            )
        };
        let usual = complete(Target::Read);
        let text = String::from_utf8_lossy(&usual.stdout);
        assert!(
            usual.code == Some(0) && text.contains("run"),
            "{shell}: {usual:?}"
        );
        let full = complete(Target::Full);
        assert_eq!(full.code, Some(74), "{shell}: {full:?}");
        assert!(
            full.stderr.contains("cannot write to stdout"),
            "{shell}: {full:?}"
        );
        let left = complete(Target::Left);
        assert!(
            left.code == Some(0) && left.stderr.is_empty(),
            "{shell}: {left:?}"
        );
    }
}

#[test]
fn clients_of_the_daemon_report_a_stdout_that_cannot_be_written() {
    let place = Place::new();
    place.daemon.run(&["daemon", "start", "--agent", "demo"], 0);
    place
        .daemon
        .run(&["run", "--daemon", "-q", "--session", "s", "hello"], 0);
    let log = place.daemon.world.dir.join("state/daemon/log");
    fs::write(log, "a line\n").unwrap();
    let relayed = [
        (words("serve --daemon"), RPC),
        (words("acp --daemon"), ACP),
        (words("run --daemon --agent demo -o json hello"), ""),
        (words("run --daemon --agent demo -o chunks hello"), ""),
    ];
    for (args, stdin) in relayed {
        place.check(&args, stdin, false);
    }
    for (path, command) in commands() {
        if let Prints::InDaemon(own, stdin) = prints(&path) {
            for format in formats(&command) {
                if path == "attach" && format.contains(&"chunks".to_owned()) {
                    // Prints only in a turn.
                    continue;
                }
                let own = own.iter().map(|word| (*word).to_owned());
                place.check(
                    &[words(&path), format, own.collect()].concat(),
                    stdin,
                    false,
                );
            }
        }
    }
    place.daemon.run(&["daemon", "stop"], 0);
}

/// The summary is the only output, and is written after everything else has ended.
#[test]
fn error_before_the_turn_is_output_that_can_be_lost() {
    let place = Place::new();
    for format in ["json", "chunks", "sse", "agui"] {
        let args = words(&format!("run -o {format} go -- no-such-agent"));
        let usual = place.run(&args, "", Target::Read, Target::Read);
        assert_eq!(usual.code, Some(127), "{usual:?}");
        place.check(&args, "", false);
    }
    let script = json!({"session/prompt": [[say("x"), {"exit": 3}]]});
    let world = &place.daemon.world;
    let script = world.script(&script);
    let args = [
        "run",
        "-o",
        "json",
        "go",
        "--",
        crate::harness::FAKE_AGENT,
        &script,
    ];
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    place.check_full(&args, "", Target::Read);
}
