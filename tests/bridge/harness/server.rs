//! `acpipe serve`, with the test as its client.
//!
//! At the end of a server, explicit or by drop, an audit runs. The test fails on: an unclaimed answer,
//! notification or chunk, a second answer to a call, a call without an answer, output that is not framed
//! JSON, a gap in the sequence numbers of a session's chunks, a turn whose chunks are not well-formed, a
//! process left behind, an exit code other than 0.

mod calls;
mod chunks;
mod ending;
mod input;
mod turn;

use super::output::{Gate, GatedReader, Input, read_all};
use super::{FAKE_AGENT, World};
use chunks::Stream;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
pub use turn::Turn;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Lines,
    ContentLength,
}

/// Id of a call, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub String);

/// Running server and its client's state.
pub struct Server {
    pub world: World,
    child: Child,
    stdin: Option<ChildStdin>,
    inputs: Receiver<Input>,
    stderr: Receiver<Vec<u8>>,
    framing: Framing,
    gate: Gate,
    last_id: u64,
    /// Last messages in both directions, for the failure dump.
    transcript: VecDeque<String>,
    seen: usize,
    unanswered: BTreeSet<Id>,
    answered: BTreeSet<Id>,
    answers: BTreeMap<Id, Value>,
    /// Answers with the id `null`, to messages without a usable id.
    nulls: VecDeque<Value>,
    batches: VecDeque<Vec<Value>>,
    notifications: VecDeque<(String, Value)>,
    /// Unclaimed client requests.
    requests: VecDeque<Value>,
    /// Reported waits (`waitingFor`). They need no claim, since a busy machine alone can cause them.
    waits: VecDeque<Value>,
    /// Activity of each session whose wait was reported.
    waiting: BTreeMap<String, Value>,
    streams: BTreeMap<String, Stream>,
    waived: BTreeSet<String>,
    /// Queued prompts of each session, as last reported.
    queues: BTreeMap<String, Value>,
    /// acpipe's output has ended.
    over: bool,
    audited: bool,
    /// The server was killed, so its last line may be incomplete.
    killed: bool,
}

impl Server {
    /// Starts `acpipe serve` without sending anything.
    pub fn start(args: &[&str]) -> Self {
        Self::launch(World::new(), args, Framing::Lines, &[])
    }

    pub fn framed(framing: Framing) -> Self {
        Self::launch(World::new(), &[], framing, &[])
    }

    /// Starts `acpipe serve` in a prepared world, with additional environment variables.
    pub fn launch(world: World, args: &[&str], framing: Framing, env: &[(&str, &str)]) -> Self {
        let args = [&["serve"], args].concat();
        let mut command = world.acpipe(&args);
        command.envs(env.iter().copied());
        Self::of(world, command, framing)
    }

    /// Starts a program that speaks the neutral protocol.
    pub fn of(world: World, mut command: Command, framing: Framing) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let gate = Gate::default();
        *gate.0.lock().unwrap() = true;
        let (sender, inputs) = channel();
        let stdout = GatedReader {
            from: child.stdout.take().unwrap(),
            gate: gate.clone(),
        };
        thread::spawn(move || read_all(stdout, framing, &sender));
        let mut stderr = child.stderr.take().unwrap();
        let (errors, stderr_end) = channel();
        thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stderr.read_to_end(&mut all);
            let _ = errors.send(all);
        });
        Self {
            world,
            stdin: child.stdin.take(),
            child,
            inputs,
            stderr: stderr_end,
            framing,
            gate,
            last_id: 0,
            transcript: VecDeque::new(),
            seen: 0,
            unanswered: BTreeSet::new(),
            answered: BTreeSet::new(),
            answers: BTreeMap::new(),
            nulls: VecDeque::new(),
            batches: VecDeque::new(),
            notifications: VecDeque::new(),
            requests: VecDeque::new(),
            waits: VecDeque::new(),
            waiting: BTreeMap::new(),
            streams: BTreeMap::new(),
            waived: BTreeSet::new(),
            queues: BTreeMap::new(),
            over: false,
            audited: false,
            killed: false,
        }
    }

    /// Starts a server that is initialized, connected to the fake agent with this script, and has the session
    /// `default`.
    pub fn ready(script: &Value) -> Self {
        Self::ready_with(&[], script)
    }

    pub fn ready_with(args: &[&str], script: &Value) -> Self {
        let mut server = Self::initialized(args);
        server.connect(script);
        server.ensure("default");
        server
    }

    /// Starts a server with a session `default` that has had one turn, and whose agent was disconnected and
    /// connected again. The agent follows `first` before the reconnection and `second` after it.
    pub fn reconnected(args: &[&str], first: &Value, second: &Value) -> Self {
        let mut server = Self::initialized(args);
        let script = server.world.script(first);
        let agent = json!({"command": FAKE_AGENT, "args": [script]});
        server.call("agent/connect", &agent);
        server.agent_states(&["starting", "ready"]);
        server.ensure("default");
        assert_eq!(server.prompt("one").summary["text"], "answer");
        server.call("agent/disconnect", &json!({}));
        std::fs::write(script, second.to_string()).unwrap();
        server.call("agent/connect", &agent);
        server.agent_states(&["stopping", "disconnected", "starting", "ready"]);
        server
    }

    /// Starts an initialized server without an agent.
    pub fn initialized(args: &[&str]) -> Self {
        let mut server = Self::start(args);
        server.initialize();
        server
    }

    /// Starts an initialized server in a prepared world, and ignores the states of its agents.
    pub fn in_world(world: World, args: &[&str]) -> Self {
        let mut server = Self::launch(world, args, Framing::Lines, &[]);
        server.initialize();
        server.waive("agent/state");
        server
    }

    pub fn initialize(&mut self) -> Value {
        self.call("initialize", &json!({"protocolVersion": 1}))
    }

    /// Connects the fake agent and claims the notifications of its states.
    pub fn connect(&mut self, script: &Value) -> Value {
        let script = self.world.script(script);
        let status = self.call(
            "agent/connect",
            &json!({"command": FAKE_AGENT, "args": [script]}),
        );
        assert_eq!(status["state"], "ready");
        self.agent_states(&["starting", "ready"]);
        status
    }

    /// Claims the next notifications of the agent's state, which must be these.
    #[track_caller]
    pub fn agent_states(&mut self, states: &[&str]) {
        for state in states {
            assert_eq!(self.notification("agent/state")["state"], *state);
        }
    }

    pub fn ensure(&mut self, session: &str) -> Value {
        self.call("session/ensure", &json!({"sessionId": session}))
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ignores notifications of this method: they need no claim.
    pub fn waive(&mut self, method: &str) {
        self.waived.insert(method.to_owned());
        self.notifications.retain(|(m, _)| m != method);
    }
}
