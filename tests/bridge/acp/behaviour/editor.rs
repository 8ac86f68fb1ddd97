//! `acpipe acp` with the test as its editor.

use crate::acp::peer::{Peer, is_response};
use crate::harness::{FAKE_AGENT, FAKE_CLAUDE, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};

/// Editor with a running `acpipe acp`.
pub struct Editor {
    pub world: World,
    pub peer: Peer,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

/// Returns capabilities of an editor that can do everything.
pub fn everything() -> Value {
    json!({
        "fs": {"readTextFile": true, "writeTextFile": true},
        "terminal": true,
        "elicitation": {"form": {}, "url": {}},
    })
}

impl Editor {
    /// Starts acpipe without sending anything.
    pub fn launch(world: World, args: &[&str], env: &[(&str, &str)]) -> Self {
        let args = [&["acp"], args].concat();
        let args = args.into_iter().map(str::to_owned).collect();
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let env = env.iter().map(own).collect();
        Self::run(world, args, env)
    }

    fn run(world: World, args: Vec<String>, env: Vec<(String, String)>) -> Self {
        let mut command = world.acpipe(&args);
        command.current_dir(&world.dir).envs(env.clone());
        let peer = Peer::start(command);
        Self {
            world,
            peer,
            args,
            env,
        }
    }

    /// Starts acpipe in front of the fake agent, which follows the script in the world's file `agent.json`.
    pub fn of_agent(args: &[&str], script: &Value) -> Self {
        let world = World::new();
        let script = world.file("agent.json", &script.to_string());
        let args = [args, &["--", FAKE_AGENT, &script]].concat();
        Self::launch(world, &args, &[])
    }

    /// Like [`Editor::of_agent`], initialized by an editor that can do everything.
    pub fn ready_with(args: &[&str], script: &Value) -> Self {
        let mut editor = Self::of_agent(args, script);
        editor.initialize(&everything());
        editor
    }

    pub fn ready(script: &Value) -> Self {
        Self::ready_with(&[], script)
    }

    /// Starts acpipe in front of the fake Claude Code CLI.
    pub fn of_claude(args: &[&str], script: &Value, capabilities: &Value) -> Self {
        let world = World::new();
        let script = world.script(script);
        let args = [&["--agent", "claude"], args].concat();
        let env = [("CLAUDE_CLI_PATH", FAKE_CLAUDE), ("FAKE_CLAUDE", &*script)];
        let mut editor = Self::launch(world, &args, &env);
        editor.initialize(capabilities);
        editor
    }

    /// Kills acpipe and starts it again.
    pub fn killed(self) -> Self {
        let Self {
            world,
            peer,
            args,
            env,
        } = self;
        // Sends SIGKILL.
        drop(peer);
        let mut editor = Self::run(world, args, env);
        editor.initialize(&everything());
        editor
    }

    /// Like [`Editor::killed`]; the agent follows another script.
    pub fn killed_with(self, script: &Value) -> Self {
        self.world.file("agent.json", &script.to_string());
        self.killed()
    }

    /// Ends acpipe and starts it again.
    pub fn restarted(mut self) -> Self {
        self.end();
        self.killed()
    }

    pub fn initialize(&mut self, capabilities: &Value) -> Value {
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities});
        self.peer.result("initialize", &params).unwrap()
    }

    fn place(&self) -> Value {
        json!({"cwd": self.world.dir, "mcpServers": []})
    }

    /// Creates a session and returns the result.
    pub fn create(&mut self) -> Value {
        let params = self.place();
        self.peer.result("session/new", &params).unwrap()
    }

    /// Creates a session and returns its id.
    #[track_caller]
    pub fn open(&mut self) -> String {
        let created = self.create();
        created["sessionId"].as_str().unwrap().to_owned()
    }

    /// Returns the parameters of `session/load` and `session/resume`.
    pub fn of_session(&self, session: &str) -> Value {
        let mut params = self.place();
        params["sessionId"] = session.into();
        params
    }

    /// Loads a session. Returns the result, and the updates that came before it as text, with the id replaced.
    #[track_caller]
    pub fn load(&mut self, session: &str) -> (Value, Vec<String>) {
        let from = self.peer.received.len();
        let id = self.peer.request("session/load", &self.of_session(session));
        let response = self.peer.response(&id).unwrap();
        assert!(response["error"].is_null(), "{response}");
        let end = self.position(&id);
        (response["result"].clone(), self.lines(session, from..end))
    }

    /// Returns the position of a response that was received.
    pub fn position(&self, id: &Value) -> usize {
        let mut received = self.peer.received.iter();
        received
            .position(|message| is_response(message, id))
            .unwrap()
    }

    /// Returns the lines of a session's updates, with `SESSION` for its id.
    pub fn lines(&self, session: &str, range: std::ops::Range<usize>) -> Vec<String> {
        let of_session = |at: &usize| {
            let message = &self.peer.received[*at];
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        };
        let lines = range.filter(of_session);
        lines
            .map(|at| self.peer.texts[at].replace(session, "SESSION"))
            .collect()
    }

    pub fn send_prompt(&mut self, session: &str, text: &str) -> Value {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
        self.peer.request("session/prompt", &params)
    }

    /// Prompts and returns the response.
    #[track_caller]
    pub fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.send_prompt(session, text);
        self.peer.response(&id).unwrap()
    }

    /// Prompts and returns the reason of the turn's end.
    #[track_caller]
    pub fn stop_reason(&mut self, session: &str, text: &str) -> String {
        let response = self.prompt(session, text);
        let reason = response["result"]["stopReason"].as_str();
        reason.unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    /// Waits for an update of a session after a position and returns its position.
    #[track_caller]
    pub fn await_update(&mut self, from: usize, is: impl Fn(&Value) -> bool) -> usize {
        let found = self.peer.find(from, |message| {
            message["method"] == "session/update" && is(&message["params"]["update"])
        });
        found.unwrap()
    }

    /// Waits for a piece of an answer.
    #[track_caller]
    pub fn await_text(&mut self, text: &str) -> usize {
        self.await_update(0, |update| update["content"]["text"] == text)
    }

    /// Returns the joined text of a session's chunks of this kind after a position.
    pub fn said(&self, session: &str, kind: &str, from: usize) -> String {
        let updates = self.peer.updates(session, from, self.peer.received.len());
        let of_kind = updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind);
        of_kind
            .filter_map(|update| update["content"]["text"].as_str())
            .collect()
    }

    /// Returns the received requests of this method.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let received = self.peer.received.iter();
        received
            .filter(|message| message["method"] == method)
            .cloned()
            .collect()
    }

    /// Runs another command of acpipe in the same world and returns its output.
    #[track_caller]
    pub fn acpipe(&self, args: &[&str]) -> String {
        let mut command: Command = self.world.acpipe(args);
        command.current_dir(&self.world.dir).stdin(Stdio::null());
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{args:?}: {status}: {stderr}");
        String::from_utf8(stdout).unwrap()
    }

    /// Closes stdin and checks that acpipe ends without faults.
    #[track_caller]
    fn end(&mut self) {
        self.peer.close().unwrap();
        let (status, stderr) = self.peer.wait().unwrap();
        assert!(
            status.success() && !stderr.contains("panicked"),
            "{status}: {stderr}"
        );
        assert_eq!(self.peer.faults, Vec::<String>::new());
        let mut answered = BTreeSet::new();
        for message in &self.peer.received {
            if message["method"].is_null() && !message["id"].is_null() {
                let id = message["id"].to_string();
                assert!(answered.insert(id), "answered twice: {message}");
            }
        }
        assert_eq!(self.world.leak(), None);
    }

    /// Closes stdin and checks that acpipe ends without faults and leaves no process. Returns what the agents
    /// received.
    #[track_caller]
    pub fn finish(mut self) -> Vec<Value> {
        self.end();
        self.world.log()
    }
}
