//! Execution of one call by the fake agent: performs the steps of a run.

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use serde_json::{Map, Value, json};

use crate::script::Step;
use crate::{Agent, Arrival, Inbox, complain, exit};

/// State of one call.
pub(crate) struct Run {
    agent: Arc<Agent>,
    method: String,
    params: Value,
    id: Option<Value>,
    session: String,
    /// Number of calls that had arrived when this one began, itself included.
    since: usize,
    /// Positions of the messages that `wait` steps have taken.
    taken: Vec<usize>,
    answer: Value,
    round: u64,
}

impl Run {
    pub(crate) fn new(
        agent: &Arc<Agent>,
        method: &str,
        message: &Map<String, Value>,
        session: String,
        since: usize,
    ) -> Self {
        Self {
            agent: Arc::clone(agent),
            method: method.to_owned(),
            params: message.get("params").cloned().unwrap_or_default(),
            id: message.get("id").cloned(),
            session,
            since,
            taken: Vec::new(),
            answer: Value::Null,
            round: 0,
        }
    }

    /// Performs the steps. Breaks at a `hang`.
    pub(crate) fn perform(&mut self, steps: &[Step]) -> ControlFlow<()> {
        for step in steps {
            match step {
                Step::Update(update) => self.update(&self.fill(update)),
                Step::Notify { method, params } => {
                    let mut frame = json!({"jsonrpc": "2.0", "method": method});
                    if let Some(params) = params {
                        frame["params"] = self.fill(params);
                    }
                    send(&frame);
                }
                Step::Ask { method, params, id } => self.ask(method, params, id.as_ref()),
                Step::EchoAnswer => self.say(&self.answer.to_string()),
                Step::Reply(result) => {
                    send(&json!({"jsonrpc": "2.0", "id": self.id, "result": self.fill(result)}));
                }
                Step::Error(error) => {
                    send(&json!({"jsonrpc": "2.0", "id": self.id, "error": self.fill(error)}));
                }
                Step::Default => self.default(),
                Step::Frame(frame) => send(&self.fill(frame)),
                Step::Line(text) => write(&[self.fill_text(text).as_bytes(), b"\n"].concat()),
                Step::Partial(text) => write(self.fill_text(text).as_bytes()),
                Step::Bytes(bytes) => write(bytes),
                Step::Huge {
                    bytes,
                    prefix,
                    suffix,
                } => {
                    let (prefix, suffix) = (self.fill_text(prefix), self.fill_text(suffix));
                    or_exit(huge(*bytes, prefix.as_bytes(), suffix.as_bytes()));
                }
                Step::Wait(method) => self.wait(method),
                Step::Sleep(time) => thread::sleep(*time),
                Step::Stderr(text) => {
                    let _ = writeln!(io::stderr(), "{}", self.fill_text(text));
                }
                Step::Repeat {
                    times,
                    until,
                    steps,
                } => {
                    let outer = self.round;
                    for round in 0..*times {
                        if until.as_ref().is_some_and(|method| self.has_come(method)) {
                            break;
                        }
                        self.round = round;
                        self.perform(steps)?;
                    }
                    self.round = outer;
                }
                Step::Once { mark, steps } => {
                    if File::create_new(mark).is_ok() {
                        self.perform(steps)?;
                    }
                }
                Step::If {
                    params,
                    then,
                    otherwise,
                } => {
                    let is_met = self.params.to_string().contains(params);
                    self.perform(if is_met { then } else { otherwise })?;
                }
                Step::Exit(code) => exit(*code),
                Step::Hang => return ControlFlow::Break(()),
                Step::CloseStdout => or_exit(close_stdout()),
                Step::Spawn { command, setsid } => self.spawn(command, *setsid),
                Step::IgnoreTerm => {} // Done when the process began.
            }
        }
        ControlFlow::Continue(())
    }

    /// Answers the call as an agent without a script does.
    fn default(&self) {
        let result = match self.method.as_str() {
            "initialize" => {
                json!({"protocolVersion": 1, "agentInfo": {"name": "fake-agent", "version": "1.0.0"}, "authMethods": []})
            }
            "session/new" => json!({"sessionId": self.session}),
            "session/prompt" => {
                let blocks = self.params["prompt"].as_array().into_iter().flatten();
                self.say(
                    &blocks
                        .filter_map(|block| block["text"].as_str())
                        .collect::<String>(),
                );
                json!({"stopReason": "end_turn"})
            }
            // A notification: recorded on arrival.
            _ if self.id.is_none() => return,
            method => {
                let error = json!({"code": -32601, "message": "Method not found", "data": {"method": method}});
                return send(&json!({"jsonrpc": "2.0", "id": self.id, "error": error}));
            }
        };
        send(&json!({"jsonrpc": "2.0", "id": self.id, "result": result}));
    }

    fn update(&self, update: &Value) {
        let params = json!({"sessionId": self.session, "update": update});
        send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn say(&self, text: &str) {
        self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}));
    }

    fn ask(&mut self, method: &str, params: &Map<String, Value>, id: Option<&Value>) {
        let id = match id {
            Some(id) => self.fill(id),
            None => json!(self.agent.asked.fetch_add(1, Ordering::Relaxed) + 1),
        };
        let mut params = self.fill(&Value::Object(params.clone()));
        if params.get("sessionId").is_none() {
            params["sessionId"] = json!(self.session);
        }
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut answer = self.agent.await_inbox(|inbox| {
            let at = inbox
                .answers
                .iter()
                .position(|answer| answer.get("id") == Some(&id))?;
            Some(inbox.answers.remove(at))
        });
        if let Some(answer) = answer.as_object_mut() {
            answer.retain(|key, _| key == "result" || key == "error");
        }
        self.answer = answer;
    }

    fn wait(&mut self, method: &str) {
        let at = self.agent.await_inbox(|inbox| self.position(inbox, method));
        self.taken.push(at);
    }

    /// Returns `true` if a `wait` for this method would return at once.
    fn has_come(&self, method: &str) -> bool {
        self.position(&self.agent.inbox(), method).is_some()
    }

    /// Returns the position of the first matching message since the call that no `wait` has taken.
    fn position(&self, inbox: &Inbox, method: &str) -> Option<usize> {
        let concerns = |call: &Arrival| {
            call.method == method
                && call
                    .session
                    .as_ref()
                    .is_none_or(|s| s.as_str() == Some(&self.session))
                && call
                    .request
                    .as_ref()
                    .is_none_or(|r| Some(r) == self.id.as_ref())
        };
        (self.since..inbox.calls.len())
            .find(|at| !self.taken.contains(at) && concerns(&inbox.calls[*at]))
    }

    fn spawn(&self, command: &[String], setsid: bool) {
        let mut words = command.iter().map(|word| self.fill_text(word));
        // `setsid` does not fork here, since a new child leads no process group: the pid is the grandchild's.
        let program = if setsid {
            Some("setsid".to_owned())
        } else {
            words.next()
        };
        match Command::new(program.unwrap_or_default())
            .args(words)
            .stdin(Stdio::null())
            .spawn()
        {
            Ok(mut child) => {
                self.agent
                    .log(json!({"spawned": child.id()}).to_string().as_bytes());
                // Reaped, so that tests do not mistake a dead grandchild for a living one.
                thread::spawn(move || child.wait());
            }
            Err(error) => complain(&format!("spawn: {error}")),
        }
    }

    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text == "{id}" => self.id.clone().unwrap_or_default(),
            Value::String(text) => Value::String(self.fill_text(text)),
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), self.fill(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }

    fn fill_text(&self, text: &str) -> String {
        let id = self.id.as_ref().map_or("null".to_owned(), Value::to_string);
        text.replace("{session}", &self.session)
            .replace("{id}", &id)
            .replace("{i}", &self.round.to_string())
    }
}

fn send(frame: &Value) {
    write(format!("{frame}\n").as_bytes());
}

fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    or_exit(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

fn huge(bytes: u64, prefix: &[u8], suffix: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(prefix)?;
    io::copy(&mut io::Read::take(io::repeat(b'x'), bytes), &mut stdout)?;
    stdout.write_all(&[suffix, b"\n"].concat())?;
    stdout.flush()
}

/// Replaces stdout by /dev/null, so that later writes do not fail.
fn close_stdout() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    let _whole_lines_only = io::stdout().lock();
    Ok(rustix::stdio::dup2_stdout(null)?)
}

/// Exits on a write error, since the client no longer reads.
fn or_exit(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        complain(&format!("stdout: {error}"));
        exit(1);
    }
}
