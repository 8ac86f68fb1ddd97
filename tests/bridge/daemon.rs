//! The daemon and its clients.

mod acp;
mod attach;
pub mod client;
mod files;
mod joins;
mod kills;
mod lifecycle;
mod options;
mod reconnect;
mod relayed;
mod runs;
mod settings;
mod terms;
mod two_clients;

use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, World, words};
use client::Client;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Daemon of one test. Its end checks that no process is left.
pub struct Daemon {
    pub world: World,
}

impl Daemon {
    /// Starts a daemon with these options, in the background.
    pub fn start(options: &[&str]) -> Self {
        Self::start_in(World::new(), options)
    }

    pub fn start_in(world: World, options: &[&str]) -> Self {
        let daemon = Self { world };
        daemon.run(&[&["daemon", "start"], options].concat(), 0);
        daemon
    }

    /// Starts a daemon without options, and writes the script of an agent to a file; returns its path, too.
    pub fn with_script(script: &Value) -> (Self, String) {
        let world = World::new();
        let script = world.script(script);
        (Self::start_in(world, &[]), script)
    }

    /// Returns a command of acpipe in the directory of the test, which is also its home: the daemon runs there.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.world.acpipe(args);
        command
            .current_dir(&self.world.dir)
            .env("HOME", &self.world.dir);
        command
    }

    /// Runs a command to its end and checks its exit code.
    #[track_caller]
    pub fn run(&self, args: &[&str], code: i32) -> Output {
        let output = self.command(args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
        output
    }

    pub fn socket(&self) -> PathBuf {
        self.world.dir.join("state/daemon/socket")
    }

    /// Connects a client with the command line `acpipe serve` and these options.
    pub fn client(&self, options: &[&str]) -> Client {
        let mut client = Client::connect(&self.socket(), &self.world.dir, options);
        client.initialize();
        client
    }

    /// Returns the process id of the daemon.
    pub fn pid(&self) -> i32 {
        let output = self.run(&["daemon", "status", "--json"], 0);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap();
        i32::try_from(status["daemon"]["pid"].as_i64().unwrap()).unwrap()
    }

    /// Stops the daemon, and checks that no process is left.
    pub fn stop(self) {
        self.run(&["daemon", "stop"], 0);
        assert_eq!(self.world.leak(), None);
    }
}

/// Permission request of an agent, with the options `yes` and `no`.
pub fn question() -> Value {
    let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
    ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")])
}

/// Script of an agent that asks once in each turn.
pub fn asking() -> Value {
    json!({"session/prompt": [[question(), say("done"), end("end_turn")]]})
}

/// Arguments of a command line without quotes, with the fake agent and its script.
pub fn with_agent<'a>(line: &'a str, script: &'a str) -> Vec<&'a str> {
    [&words(line)[..], &["--", FAKE_AGENT, script]].concat()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // A failed test must not leave its daemon.
        self.world.kill_all();
    }
}
