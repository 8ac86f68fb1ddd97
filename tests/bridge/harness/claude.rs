//! Servers whose agent is the fake Claude Code CLI, and readers of its log.

use super::server::{Framing, Id, Server, Turn};
use super::{FAKE_CLAUDE, LIMIT, World};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Starts a server that has not connected to the CLI. `script` is the script named by `FAKE_CLAUDE`.
pub fn server(args: &[&str], script: &Value) -> Server {
    launch(World::new(), args, script, &[])
}

/// Like [`server`], in a prepared world and with additional environment variables.
pub fn launch(world: World, args: &[&str], script: &Value, env: &[(&str, &str)]) -> Server {
    let mut server = uninitialized(world, args, script, env);
    server.initialize();
    server
}

/// Like [`launch`], without `initialize`.
pub fn uninitialized(world: World, args: &[&str], script: &Value, env: &[(&str, &str)]) -> Server {
    let script = world.script(script);
    let own = [("CLAUDE_CLI_PATH", FAKE_CLAUDE), ("FAKE_CLAUDE", &script)];
    let env = [&own, env].concat();
    Server::launch(world, args, Framing::Lines, &env)
}

/// Starts a server that has connected, with the session `default`.
pub fn ready(script: &Value) -> Server {
    ready_with(&[], script)
}

pub fn ready_with(args: &[&str], script: &Value) -> Server {
    let mut server = server(args, script);
    server.connect_claude(&json!({}));
    server.ensure("default");
    server
}

impl Server {
    /// Connects the CLI with these options and claims the notifications of its states.
    #[track_caller]
    pub fn connect_claude(&mut self, options: &Value) -> Value {
        self.waive("session/state");
        let params = json!({"protocol": "claude", "options": options});
        let status = self.call("agent/connect", &params);
        self.agent_states(&["starting", "ready"]);
        status
    }

    /// Sends a prompt that makes the CLI perform these steps.
    pub fn send_steps(&mut self, session: &str, steps: &Value) -> Id {
        self.send_prompt(session, &steps.to_string())
    }

    /// Runs one turn of the session `default` in which the CLI performs these steps.
    pub fn steps(&mut self, steps: &Value) -> Turn {
        let id = self.send_steps("default", steps);
        self.turn(&id)
    }

    /// Waits until `times` lines of the CLI's log match.
    #[track_caller]
    pub fn await_log(&self, times: usize, is: impl Fn(&Value) -> bool) {
        let since = Instant::now();
        while self.world.log().iter().filter(|line| is(line)).count() < times {
            assert!(since.elapsed() < LIMIT, "not in {:#?}", self.world.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the start records of the sessions' processes so far.
    pub fn processes(&self) -> Vec<Value> {
        processes(&self.world.log())
    }
}

/// Returns the start records of the sessions' processes in a log. Probes such as `--version` have one
/// argument and are left out.
pub fn processes(log: &[Value]) -> Vec<Value> {
    let of_session = |line: &&Value| line["argv"].as_array().is_some_and(|argv| argv.len() > 1);
    log.iter().filter(of_session).cloned().collect()
}

/// Returns the arguments of a process that begin with `prefix`, without it.
pub fn args(process: &Value, prefix: &str) -> Vec<String> {
    let argv = process["argv"].as_array().unwrap().iter();
    let argv = argv.map(|arg| arg.as_str().unwrap());
    argv.filter_map(|arg| Some(arg.strip_prefix(prefix)?.to_owned()))
        .collect()
}

/// Returns the control requests of this subtype that the CLI received.
pub fn requests(log: &[Value], subtype: &str) -> Vec<Value> {
    let requests = log.iter().map(|line| &line["got"]["request"]);
    let meant = requests.filter(|request| request["subtype"] == subtype);
    meant.cloned().collect()
}

/// Returns the responses to its own control requests that the CLI received.
pub fn answers(log: &[Value]) -> Vec<Value> {
    let answers = log
        .iter()
        .filter(|line| line["got"]["type"] == "control_response");
    answers
        .map(|line| line["got"]["response"].clone())
        .collect()
}
