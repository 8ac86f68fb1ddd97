//! `acpipe serve` and its client: this test.
//!
//! At the end of a server, wished or dropped, it is audited. The test fails on: an answer, a notification or
//! a chunk that nobody claimed, a second answer to a call, a call without an answer, output that is no framed
//! JSON, a gap in the numbers of a session's chunks, a turn whose chunks are not well-formed, a process left
//! behind, another exit code than 0.

use super::output::{Gate, Gated, Input, read_all};
use super::{FAKE_AGENT, LIMIT, World, stream};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Instant;

/// How messages are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Lines,
    ContentLength,
}

/// The id of a call, as it stands in the JSON.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(pub String);

/// A running server.
pub struct Server {
    pub world: World,
    child: Child,
    stdin: Option<ChildStdin>,
    inputs: Receiver<Input>,
    stderr: Receiver<Vec<u8>>,
    framing: Framing,
    gate: Gate,
    last_id: u64,
    /// What was sent and seen, for the dump.
    tape: VecDeque<String>,
    seen: usize,
    unanswered: BTreeSet<Id>,
    answered: BTreeSet<Id>,
    answers: BTreeMap<Id, Value>,
    /// Answers to what has no usable id.
    nulls: VecDeque<Value>,
    batches: VecDeque<Vec<Value>>,
    notifications: VecDeque<(String, Value)>,
    /// What acpipe asked.
    requests: VecDeque<Value>,
    /// What acpipe told that it waits for: a busy machine is reason enough, so nobody has to claim it.
    waits: VecDeque<Value>,
    /// The activity of each session that was told to wait.
    waiting: BTreeMap<String, Value>,
    streams: BTreeMap<String, Stream>,
    waived: BTreeSet<String>,
    /// The prompts that wait, by session, as last told.
    queues: BTreeMap<String, Value>,
    /// Its output has ended.
    over: bool,
    audited: bool,
    /// It was killed: its last line may be a torn one.
    killed: bool,
}

#[derive(Default)]
struct Stream {
    seq: u64,
    gap_allowed: bool,
    chunks: VecDeque<Given>,
    /// Turns whose answer is there: nothing may follow.
    closed: BTreeSet<String>,
}

struct Given {
    seq: u64,
    turn: Option<String>,
    chunk: Value,
}

/// A turn that is over.
#[derive(Debug)]
pub struct Turn {
    pub summary: Value,
    pub chunks: Vec<Value>,
    /// The params of `session/activity` meanwhile.
    pub activity: Vec<Value>,
}

/// What is left when a server has ended.
pub struct End {
    /// Every line that agents got.
    pub log: Vec<Value>,
    pub stderr: String,
}

impl Server {
    /// `acpipe serve`, nothing said yet.
    pub fn start(args: &[&str]) -> Self {
        Self::launch(World::new(), args, Framing::Lines, &[])
    }

    pub fn framed(framing: Framing) -> Self {
        Self::launch(World::new(), &[], framing, &[])
    }

    /// In a world that was prepared, with more in its environment.
    pub fn launch(world: World, args: &[&str], framing: Framing, env: &[(&str, &str)]) -> Self {
        let args = [&["serve"], args].concat();
        let mut command = world.acpipe(&args);
        let mut child = command
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let gate = Gate::default();
        *gate.0.lock().unwrap() = true;
        let (sender, inputs) = channel();
        let stdout = Gated {
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
            tape: VecDeque::new(),
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

    /// Initialized, connected to the fake agent with this script, and with the session `default`.
    pub fn ready(script: &Value) -> Self {
        Self::ready_with(&[], script)
    }

    pub fn ready_with(args: &[&str], script: &Value) -> Self {
        let mut server = Self::initialized(args);
        server.connect(script);
        server.ensure("default");
        server
    }

    /// Initialized, without an agent.
    pub fn initialized(args: &[&str]) -> Self {
        let mut server = Self::start(args);
        server.initialize();
        server
    }

    pub fn initialize(&mut self) -> Value {
        self.call("initialize", &json!({"protocolVersion": 1}))
    }

    /// Connects the fake agent and claims the news of it.
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

    /// Claims the next news of the agent, which must be these.
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

    /// Notifications of this method need not be claimed.
    pub fn waive(&mut self, method: &str) {
        self.waived.insert(method.to_owned());
        self.notifications.retain(|(m, _)| m != method);
    }

    /// The numbers of this session's chunks may leap, since the test switches them off, and repeat, since
    /// older profiles have two chunks for one.
    pub fn allow_gaps(&mut self, session: &str) {
        self.stream(session).gap_allowed = true;
    }

    /// The session's chunks come once more from the first.
    pub fn rewind(&mut self, session: &str) {
        self.stream(session).seq = 0;
    }

    /// Stops or goes on to read.
    pub fn read_on(&self, on: bool) {
        *self.gate.0.lock().unwrap() = on;
        self.gate.1.notify_all();
    }

    /// Writes raw bytes.
    pub fn write(&mut self, bytes: &[u8]) {
        self.note("→", &String::from_utf8_lossy(bytes));
        let stdin = self.stdin.as_mut().expect("stdin is closed");
        let written = stdin.write_all(bytes);
        if let Err(error) = written {
            self.fail(&format!("acpipe's stdin is closed: {error}"));
        }
    }

    /// Writes one framed message.
    pub fn raw(&mut self, message: &str) {
        let framed = match self.framing {
            Framing::Lines => format!("{message}\n"),
            Framing::ContentLength => {
                format!("Content-Length: {}\r\n\r\n{message}", message.len())
            }
        };
        self.write(framed.as_bytes());
    }

    /// Sends a call; its answer must be claimed.
    pub fn send(&mut self, method: &str, params: &Value) -> Id {
        self.last_id += 1;
        let id = Id(self.last_id.to_string());
        self.send_as(&id, method, params);
        id
    }

    pub fn send_as(&mut self, id: &Id, method: &str, params: &Value) {
        self.expect(id);
        self.raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":{params}}}"#,
            id.0,
            json!(method)
        ));
    }

    /// A call with this id is sent raw: it will be answered.
    pub fn expect(&mut self, id: &Id) {
        self.answered.remove(id);
        assert!(self.unanswered.insert(id.clone()), "{id:?} is in use");
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// The whole answer to a call.
    pub fn answer(&mut self, id: &Id) -> Value {
        self.until(&format!("the answer to {id:?}"), |s| s.answers.remove(id))
    }

    pub fn result(&mut self, id: &Id) -> Value {
        let answer = self.answer(id);
        match answer.get("result") {
            Some(result) => result.clone(),
            None => self.fail(&format!("a result was expected: {answer}")),
        }
    }

    pub fn error(&mut self, id: &Id) -> Value {
        let answer = self.answer(id);
        match answer.get("error") {
            Some(error) => error.clone(),
            None => self.fail(&format!("an error was expected: {answer}")),
        }
    }

    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.result(&id)
    }

    pub fn call_error(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.error(&id)
    }

    /// The next answer with the id `null` to something that had no usable one.
    pub fn null_answer(&mut self) -> Value {
        self.until("an answer with the id null", |s| s.nulls.pop_front())
    }

    /// The next answer to a batch.
    pub fn batch(&mut self) -> Vec<Value> {
        self.until("the answer to a batch", |s| s.batches.pop_front())
    }

    /// The params of the next notification of this method.
    #[track_caller]
    pub fn notification(&mut self, method: &str) -> Value {
        self.until(&format!("a notification {method}"), |s| {
            let at = s.notifications.iter().position(|(m, _)| m == method)?;
            s.notifications.remove(at).map(|(_, params)| params)
        })
    }

    /// The next that acpipe tells that it waits for.
    pub fn wait_told(&mut self) -> Value {
        self.until("word of what is waited for", |s| s.waits.pop_front())
    }

    /// The first chunk outside of any turn.
    pub fn stray(&mut self, session: &str) -> Value {
        self.until(&format!("a chunk outside of turns of {session}"), |s| {
            let chunks = &mut s.stream(session).chunks;
            let at = chunks.iter().position(|c| c.turn.is_none())?;
            chunks.remove(at).map(|c| c.chunk)
        })
    }

    /// The first message that nobody asked for, once it has ended, checked.
    pub fn unprompted(&mut self, session: &str) -> Vec<Value> {
        let chunks = self.until(&format!("an unprompted message of {session}"), |s| {
            let stream = s.stream(session);
            let about =
                |c: &Given, dialect| c.chunk["messageMetadata"][dialect]["unprompted"] == true;
            let unasked = |c: &&Given| about(c, "acp") || about(c, "claude");
            let turn = stream.chunks.iter().find(unasked)?.turn.clone();
            let over = |c: &Given| {
                c.turn == turn
                    && ["finish", "error", "abort"].contains(&c.chunk["type"].as_str().unwrap())
            };
            if !stream.chunks.iter().any(over) {
                return None;
            }
            stream.closed.extend(turn.clone());
            let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut stream.chunks)
                .into_iter()
                .partition(|c| c.turn == turn);
            stream.chunks = rest.into();
            Some(own.into_iter().map(|c| c.chunk).collect::<Vec<_>>())
        });
        if let Err(wrong) = stream::check(&chunks) {
            self.fail(&wrong);
        }
        chunks
    }

    /// All chunks of a session that were not claimed, unchecked.
    pub fn take_chunks(&mut self, session: &str) -> Vec<Value> {
        let chunks = std::mem::take(&mut self.stream(session).chunks);
        chunks.into_iter().map(|c| c.chunk).collect()
    }

    /// All chunks of a session that were not claimed, by their numbers.
    pub fn numbered(&mut self, session: &str) -> BTreeMap<u64, Value> {
        let chunks = std::mem::take(&mut self.stream(session).chunks);
        chunks.into_iter().map(|c| (c.seq, c.chunk)).collect()
    }

    /// The answer to a call, if it is there before acpipe has written so many messages.
    pub fn answer_within(&mut self, id: &Id, messages: usize) -> Option<Value> {
        let since = Instant::now();
        while !self.answers.contains_key(id) && self.seen < messages && !self.over {
            if since.elapsed() > LIMIT {
                self.fail(&format!("hung without the answer to {id:?}"));
            }
            self.take_input();
        }
        self.answers.remove(id)
    }

    /// How many messages acpipe has written.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Waits until a chunk of this session is there that `is` it; claims nothing.
    pub fn await_chunk(&mut self, session: &str, is: impl Fn(&Value) -> bool) {
        self.until(&format!("a certain chunk of {session}"), |s| {
            s.stream(session)
                .chunks
                .iter()
                .any(|c| is(&c.chunk))
                .then_some(())
        });
    }

    /// Waits until these turns of a session, and no others, are told to wait.
    pub fn await_queue(&mut self, session: &str, turns: &[&str]) {
        let turns: Vec<Value> = turns.iter().map(|id| json!({ "turnId": id })).collect();
        let told = json!(turns);
        self.until(&format!("the queue {told} of {session}"), |s| {
            let queue = s.queues.get(session).cloned();
            (queue.unwrap_or_else(|| json!([])) == told).then_some(())
        });
    }

    /// Waits until the agents' log holds a call of this method.
    pub fn await_agent_call(&self, method: &str) {
        let since = Instant::now();
        while super::calls(&self.world.log(), method).is_empty() {
            assert!(since.elapsed() < LIMIT, "the agent never got {method}");
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// Sends a prompt to a session.
    pub fn send_prompt(&mut self, session: &str, text: &str) -> Id {
        self.send(
            "session/prompt",
            &json!({"sessionId": session, "message": text}),
        )
    }

    /// The next request of acpipe with that method: its id and its parameters.
    pub fn asked(&mut self, method: &str) -> (Value, Value) {
        let request = self.until(&format!("the request {method}"), |s| {
            let at = s.requests.iter().position(|r| r["method"] == method)?;
            s.requests.remove(at)
        });
        (request["id"].clone(), request["params"].clone())
    }

    /// Answers a request of acpipe.
    pub fn reply(&mut self, id: &Value, result: &Value) {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        self.raw(&answer.to_string());
    }

    /// One turn of the session `default`.
    pub fn prompt(&mut self, text: &str) -> Turn {
        let id = self.send_prompt("default", text);
        self.turn(&id)
    }

    /// The answer to a prompt with all chunks of the turn, checked.
    pub fn turn(&mut self, id: &Id) -> Turn {
        let summary = self.result(id);
        self.claim_turn(&summary)
    }

    /// The same when the summary came another way.
    pub fn claim_turn(&mut self, summary: &Value) -> Turn {
        let turn_id = summary["turnId"].as_str().unwrap().to_owned();
        let session = summary["sessionId"].as_str().unwrap().to_owned();
        let stream = self.stream(&session);
        stream.closed.insert(turn_id.clone());
        let (own, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut stream.chunks)
            .into_iter()
            .partition(|c| c.turn.as_deref() == Some(&*turn_id));
        stream.chunks = rest.into();
        let quiet = stream.gap_allowed && own.is_empty();
        let chunks: Vec<Value> = own.into_iter().map(|c| c.chunk).collect();
        if !quiet && let Err(wrong) = stream::check_with_summary(&chunks, summary) {
            self.fail(&wrong);
        }
        let mut activity = Vec::new();
        self.notifications.retain(|(method, params)| {
            let own = method == "session/activity" && params["sessionId"] == *session;
            if own {
                activity.push(params["activity"].clone());
            }
            !own
        });
        for pair in activity.windows(2) {
            assert_ne!(pair[0], pair[1], "activity that is no change");
        }
        assert!(
            activity.last().is_none_or(Value::is_null),
            "activity after the turn: {activity:?}"
        );
        Turn {
            summary: summary.clone(),
            chunks,
            activity,
        }
    }

    /// Ends the client's side, awaits the end of acpipe and audits.
    pub fn finish(mut self) -> End {
        self.end()
    }

    /// Ends acpipe, audits, and starts it again in the same world: its sessions' chunks go on being numbered.
    pub fn restart(self, args: &[&str]) -> Self {
        self.restart_in(args, &[])
    }

    /// The same with more in its environment.
    pub fn restart_in(mut self, args: &[&str], env: &[(&str, &str)]) -> Self {
        self.end();
        self.succeed(args, env)
    }

    /// Kills acpipe, and what it leaves behind, and starts it again; what was said before need not be claimed.
    pub fn crash(mut self, args: &[&str]) -> Self {
        self.kill();
        self.world.kill_all();
        self.succeed(args, &[])
    }

    /// Kills acpipe; what it had written is still read.
    pub fn kill(&mut self) {
        super::signal(self.pid(), rustix::process::Signal::KILL);
        self.ended();
    }

    /// Awaits the end of acpipe, which something else brings about; nothing more is asked of it.
    pub fn ended(&mut self) {
        self.killed = true;
        self.audited = true;
        self.read_on(true);
        self.drain();
        self.child.wait().unwrap();
        self.stdin = None;
    }

    /// acpipe once more, in the same world.
    pub fn next(mut self, args: &[&str]) -> Self {
        self.succeed(args, &[])
    }

    fn succeed(&mut self, args: &[&str], env: &[(&str, &str)]) -> Self {
        let world = std::mem::replace(&mut self.world, World::new());
        let mut next = Self::launch(world, args, self.framing, env);
        for (session, stream) in &self.streams {
            next.stream(session).seq = stream.seq;
        }
        next
    }

    /// The same when stdin may stay open: something else made it end.
    pub fn await_end(mut self) -> End {
        self.drain();
        self.end()
    }

    /// Closes stdin; answers may still be claimed.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    fn drain(&mut self) {
        let since = Instant::now();
        while !self.over {
            if since.elapsed() > LIMIT {
                self.fail("acpipe does not end");
            }
            self.take_input();
        }
    }

    fn end(&mut self) -> End {
        self.audited = true;
        self.stdin = None;
        self.read_on(true);
        self.drain();
        let stderr = self.stderr.recv_timeout(LIMIT).unwrap_or_default();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status = self.child.wait().unwrap();
        let leaving = |state: &Value| state == "stopping" || state == "disconnected";
        self.notifications.retain(|(method, params)| {
            !(method == "agent/state" && leaving(&params["state"]) && params["reason"].is_null())
        });
        let mut wrong = Vec::new();
        if status.code() != Some(0) {
            wrong.push(format!("acpipe ended with {status}"));
        }
        if stderr.contains("panicked") {
            wrong.push("acpipe panicked".to_owned());
        }
        if !self.unanswered.is_empty() {
            wrong.push(format!("never answered: {:?}", self.unanswered));
        }
        let unclaimed: Vec<&Value> = self
            .answers
            .values()
            .chain(&self.nulls)
            .chain(self.batches.iter().flatten())
            .collect();
        if !unclaimed.is_empty() {
            wrong.push(format!("unclaimed answers: {unclaimed:?}"));
        }
        if !self.requests.is_empty() {
            wrong.push(format!("unclaimed requests: {:?}", self.requests));
        }
        if !self.notifications.is_empty() {
            wrong.push(format!("unclaimed: {:?}", self.notifications));
        }
        for (session, stream) in &self.streams {
            // What passes between turns is nobody's.
            let passes = |chunk: &&Given| chunk.turn.is_none() && chunk.chunk["transient"] == true;
            if let Some(chunk) = stream.chunks.iter().find(|chunk| !passes(chunk)) {
                let (n, first) = (stream.chunks.len(), &chunk.chunk);
                wrong.push(format!(
                    "unclaimed chunks of {session}: {n}, first {first} of turn {:?}",
                    chunk.turn
                ));
            }
        }
        wrong.extend(self.world.leak());
        if !wrong.is_empty() {
            let wrong = wrong.join("\n");
            self.fail(&format!("{wrong}\nstderr: {stderr}"));
        }
        End {
            log: self.world.log(),
            stderr,
        }
    }

    fn stream(&mut self, session: &str) -> &mut Stream {
        self.streams.entry(session.to_owned()).or_default()
    }

    fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let begun = Instant::now();
        let (mut since, mut seen) = (begun, self.seen);
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            if self.over {
                self.fail(&format!("acpipe's output ended without {what}"));
            }
            // A flood takes its time on a busy machine.
            if self.seen > seen {
                (since, seen) = (Instant::now(), self.seen);
            }
            if since.elapsed() > LIMIT || begun.elapsed() > 4 * LIMIT {
                self.fail(&format!("hung without {what}"));
            }
            self.take_input();
        }
    }

    /// Takes one more input, or none within a second.
    fn take_input(&mut self) {
        match self.inputs.recv_timeout(std::time::Duration::from_secs(1)) {
            Ok(Input::Message(text)) => self.message(&text),
            Ok(Input::Fault(_)) if self.killed => {}
            Ok(Input::Fault(fault)) => self.fail(&fault),
            Ok(Input::Eof) | Err(RecvTimeoutError::Disconnected) => self.over = true,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }

    fn message(&mut self, text: &str) {
        self.note("←", text);
        self.seen += 1;
        if text.starts_with('[') {
            let parts: Vec<&RawValue> = match serde_json::from_str(text) {
                Ok(parts) => parts,
                Err(e) => self.fail(&format!("no JSON: {e}: {text}")),
            };
            for part in &parts {
                if let Some(id) = Self::id_of(part.get()) {
                    self.settle(&id);
                }
            }
            let values = parts.iter().map(|p| serde_json::from_str(p.get()).unwrap());
            self.batches.push_back(values.collect());
            return;
        }
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(e) => self.fail(&format!("no JSON: {e}: {text}")),
        };
        if value["jsonrpc"] != "2.0" {
            self.fail(&format!("no JSON-RPC 2.0: {text}"));
        }
        match value["method"].as_str() {
            Some("session/chunk") => self.chunk(&value["params"]),
            Some("session/state") if self.tells_queue(&value["params"]) => {}
            Some(method) if value.get("id").is_none() => {
                let params = value["params"].clone();
                if !self.tells_wait(method, &params) && !self.waived.contains(method) {
                    self.notifications.push_back((method.to_owned(), params));
                }
            }
            Some(_) => self.requests.push_back(value),
            None => {
                let one = value.get("result").is_some() != value.get("error").is_some();
                if !one {
                    self.fail(&format!("neither result nor error, or both: {text}"));
                }
                match Self::id_of(text) {
                    Some(id) if id.0 == "null" && !self.unanswered.contains(&id) => {
                        self.nulls.push_back(value);
                    }
                    Some(id) => {
                        self.settle(&id);
                        self.answers.insert(id, value);
                    }
                    None => self.fail(&format!("an answer without an id: {text}")),
                }
            }
        }
    }

    /// Takes note of the prompts that wait; true where these are the news, which need not be claimed.
    fn tells_queue(&mut self, params: &Value) -> bool {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let told = params["queue"].clone();
        if !told.is_array() {
            self.fail(&format!("a state without a queue: {params}"));
        }
        let before = self.queues.insert(session, told.clone());
        before.unwrap_or_else(|| json!([])) != told
    }

    /// Takes the news that something is waited for, or is no more.
    fn tells_wait(&mut self, method: &str, params: &Value) -> bool {
        let told = match method {
            "agent/state" | "session/activity" => &params["waitingFor"],
            _ => return false,
        };
        let session = params["sessionId"].as_str().unwrap_or_default();
        if !told.is_null() {
            let activity = params["activity"].clone();
            self.waiting.insert(session.to_owned(), activity);
            self.waits.push_back(told.clone());
            return true;
        }
        // It goes on: no news where the same tool runs as before.
        method == "session/activity"
            && self.waiting.remove(session).as_ref() == Some(&params["activity"])
    }

    fn settle(&mut self, id: &Id) {
        if id.0 == "null" && !self.unanswered.contains(id) {
            return;
        }
        if self.answered.contains(id) {
            self.fail(&format!("a second answer to {id:?}"));
        }
        if !self.unanswered.remove(id) {
            self.fail(&format!("an answer to {id:?}, which was never asked"));
        }
        self.answered.insert(id.clone());
    }

    fn id_of(text: &str) -> Option<Id> {
        let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
        fields.get("id").map(|id| Id(id.get().to_owned()))
    }

    fn chunk(&mut self, params: &Value) {
        let (Some(session), Some(seq)) = (params["sessionId"].as_str(), params["seq"].as_u64())
        else {
            self.fail(&format!("a chunk without session or number: {params}"));
        };
        let turn = params["turnId"].as_str().map(str::to_owned);
        let stream = self.stream(session);
        let next = stream.seq + 1;
        let fits = seq == next || (stream.gap_allowed && seq >= stream.seq);
        let late = turn.as_ref().is_some_and(|t| stream.closed.contains(t));
        stream.seq = seq;
        stream.chunks.push_back(Given {
            seq,
            turn,
            chunk: params["chunk"].clone(),
        });
        if !fits {
            self.fail(&format!("chunk {seq} where {next} was due: {params}"));
        }
        if late {
            self.fail(&format!("a chunk after its turn's answer: {params}"));
        }
    }

    fn note(&mut self, direction: &str, text: &str) {
        let start: String = text.trim_end().chars().take(600).collect();
        self.tape.push_back(format!("{direction} {start}"));
        if self.tape.len() > 100 {
            self.tape.pop_front();
        }
    }

    /// Fails with everything that was said.
    #[track_caller]
    pub fn fail(&mut self, why: &str) -> ! {
        let mut dump = String::new();
        for line in &self.tape {
            let _ = writeln!(dump, "{line}");
        }
        for line in self.world.log() {
            let line: String = line.to_string().chars().take(300).collect();
            let _ = writeln!(dump, "agent got {line}");
        }
        self.world.kill_all();
        panic!("{why}\nthe last of {} messages:\n{dump}", self.seen);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if thread::panicking() {
            self.world.kill_all();
            let _ = self.child.wait();
        } else if !self.audited {
            self.end();
        }
    }
}

impl Turn {
    pub fn types(&self) -> Vec<&str> {
        let types = self.chunks.iter().map(|c| c["type"].as_str().unwrap());
        types.collect()
    }

    /// The chunks of a type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.chunks.iter().filter(|c| c["type"] == kind).collect()
    }

    /// The text of the answer, as the chunks tell it.
    pub fn text(&self) -> String {
        let deltas = self.of("text-delta").into_iter();
        deltas.map(|c| c["delta"].as_str().unwrap()).collect()
    }

    /// The only chunk of a type.
    #[track_caller]
    pub fn one(&self, kind: &str) -> &Value {
        match self.of(kind)[..] {
            [chunk] => chunk,
            ref other => panic!("{} chunks {kind} in {:?}", other.len(), self.types()),
        }
    }

    #[track_caller]
    pub fn last(&self) -> &Value {
        self.chunks.last().unwrap()
    }
}
