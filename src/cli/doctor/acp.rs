//! Connection to an ACP agent without the hub: it sends requests, and keeps everything that it receives.

mod seen;

use acpipe_dialects::acp::wants_sign_in;
use acpipe_host::{AgentStarter, DirectProcess, DirectProcessEnd, NextLine};
use acpipe_json::repair::Faults;
use acpipe_json::rpc;
use acpipe_json::rpc::{Message, RpcError};
use acpipe_model::cause::{cause_or_end, cause_or_last};
use acpipe_model::line_repair::{LineOutcome, LineReader, LostLine, read_again};
use acpipe_model::process_health::OutputTail;
use acpipe_model::transport::ProcessSpec;
use seen::permission_answer;
pub use seen::{ALLOWED_COMMAND, PROBE_FILE, Seen};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Error response of the agent.
#[derive(Debug, Clone)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    /// Whether the error means that the user has to sign in.
    pub wants_sign_in: bool,
}

impl Fault {
    fn of(error: &RpcError<'_>) -> Self {
        Self {
            code: error.code,
            message: acpipe_model::error::clip(&error.message),
            wants_sign_in: wants_sign_in(error),
        }
    }
}

/// Response to a request.
#[derive(Debug, Clone)]
pub struct Response {
    /// When it arrived.
    pub at: Instant,
    pub result: Result<Value, Fault>,
}

/// Outcome of a request.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The agent answered after this time.
    Result(Value, Duration),
    /// The agent answered with an error.
    Error(Fault),
    /// The agent opened another session than the requested one.
    OtherSession(String),
    /// The agent did not answer within this time.
    NoAnswer(Duration),
    /// The agent exited, with this reason.
    Exited(String),
}

impl Outcome {
    /// Returns `true` if the agent answered without an error.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Result(..))
    }

    /// Returns `true` if the agent answered.
    pub fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Result(..) | Self::Error(_) | Self::OtherSession(_)
        )
    }

    /// Describes the outcome.
    pub fn describe(&self) -> String {
        match self {
            Self::Result(_, time) => format!("answered after {}", super::report::shown(*time)),
            Self::Error(fault) => format!("error {}: {}", fault.code, fault.message),
            Self::OtherSession(id) => format!("another session was opened: {id}"),
            Self::NoAnswer(limit) => format!("no answer within {}", super::report::shown(*limit)),
            Self::Exited(why) => format!("the agent exited: {why}"),
        }
    }
}

/// Connection to an agent process.
pub struct DoctorConnection {
    process: DirectProcess,
    last_id: u64,
    seen: Seen,
    /// End of the lines on its stdout that are no messages.
    stray: OutputTail,
    /// Sessions whose turn was cancelled: their permission requests are answered `cancelled`.
    cancelled: BTreeSet<String>,
}

impl DoctorConnection {
    /// Starts an agent process.
    pub fn start(starter: &AgentStarter, spec: ProcessSpec) -> Self {
        Self {
            process: starter.start(spec),
            last_id: 0,
            seen: Seen::default(),
            stray: OutputTail::default(),
            cancelled: BTreeSet::new(),
        }
    }

    /// Returns the process, to be stopped.
    pub fn into_process(self) -> DirectProcess {
        self.process
    }

    /// Returns what the agent sent so far.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Sends a request and returns its id.
    pub fn call(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.process.send(&request.to_string());
        id
    }

    /// Sends a request and waits for its response.
    pub async fn request(&mut self, method: &str, params: &Value, limit: Duration) -> Outcome {
        let since = Instant::now();
        let id = self.call(method, params);
        self.response(id, since, limit).await
    }

    /// Waits for the response to a request that was sent at `since`.
    pub async fn response(&mut self, id: u64, since: Instant, limit: Duration) -> Outcome {
        let done = self.wait(since + limit, |seen| seen.responses.contains_key(&id));
        done.await;
        match self.seen.responses.get(&id) {
            Some(Response { at, result }) => match result {
                Ok(result) => Outcome::Result(result.clone(), at.duration_since(since)),
                Err(fault) => Outcome::Error(fault.clone()),
            },
            None if self.process.end().is_some() => Outcome::Exited(self.end_reason()),
            None => Outcome::NoAnswer(limit),
        }
    }

    /// Sends a prompt and returns the id of its request.
    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        self.cancelled.remove(session);
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        self.call("session/prompt", &params)
    }

    /// Cancels the turn of a session.
    pub fn cancel(&mut self, session: &str) {
        self.cancelled.insert(session.to_owned());
        let params = json!({"sessionId": session});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params});
        self.process.send(&cancel.to_string());
    }

    /// Sends a line that is not a message.
    pub fn send_raw(&mut self, line: &str) {
        self.process.send(line);
    }

    /// Receives until a condition holds; returns `false` if it does not before the deadline, or the agent
    /// exits.
    pub async fn wait(&mut self, deadline: Instant, done: impl Fn(&Seen) -> bool) -> bool {
        while !done(&self.seen) {
            match self.process.next_line(deadline).await {
                NextLine::Line(line) => self.receive(&line),
                NextLine::TimedOut | NextLine::Ended => return false,
            }
        }
        true
    }

    /// Receives until a session has no output for `quiet`, at most until the deadline.
    pub async fn settle(&mut self, session: &str, quiet: Duration, deadline: Instant) {
        let mut since = Instant::now();
        loop {
            let before = self.seen.output_of(session).count();
            let until = (since + quiet).min(deadline);
            let more = |seen: &Seen| seen.output_of(session).count() > before;
            if !self.wait(until, more).await {
                return;
            }
            since = Instant::now();
        }
    }

    /// Returns the line of the agent's stderr or stdout that gives the cause of a failure, as the end of a sentence.
    pub fn last_words(&mut self) -> Option<String> {
        let stderr = cause_or_last(&self.process.stderr());
        let stderr = stderr.map(|line| format!("; its stderr: {line}"));
        let stray = self.process.hide(&self.stray.text());
        stderr.or_else(|| Some(format!("; its stdout: {}", cause_or_end(&stray)?)))
    }

    /// Returns why the agent ended, from its exit code and stderr.
    pub fn end_reason(&mut self) -> String {
        let end = match self.process.end() {
            Some(DirectProcessEnd::StartFailed(error)) => return error.message.clone(),
            Some(DirectProcessEnd::Exited(exit)) => match (exit.code, exit.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "unknown exit code".to_owned(),
            },
            Some(DirectProcessEnd::OutputClosed) => "it closed its stdout".to_owned(),
            None => "it still runs".to_owned(),
        };
        format!("{end}{}", self.last_words().unwrap_or_default())
    }

    fn receive(&mut self, line: &[u8]) {
        if self.read(line) == LineOutcome::Unusable {
            read_again(line, self);
        }
    }

    fn handle(&mut self, message: Message<'_>) {
        match message {
            Message::Response { id, outcome } => {
                let result = outcome.map(value).map_err(|error| Fault::of(&error));
                if let Ok(opened) = &result
                    && let Some(session) = opened["sessionId"].as_str()
                {
                    self.seen.merge(session, opened);
                }
                match id.and_then(|id| id.get().parse().ok()) {
                    Some(id) => {
                        let at = Instant::now();
                        self.seen.responses.insert(id, Response { at, result });
                    }
                    None => self.seen.orphan_errors.extend(result.err()),
                }
            }
            Message::Notification { method, params } => {
                if method == "session/update" {
                    self.seen.update(&params.map(value).unwrap_or_default());
                }
            }
            Message::Request { id, method, params } => {
                let params = params.map(value).unwrap_or_default();
                let answer = self.answer(&method, &params);
                let (key, answer) = match answer {
                    Ok(result) => ("result", result),
                    Err(error) => ("error", error),
                };
                // The id is echoed as the agent wrote it.
                let line = format!(r#"{{"jsonrpc":"2.0","id":{},"{key}":{answer}}}"#, id.get());
                self.process.send(&line);
            }
        }
    }

    /// Answers a request of the agent: only the command of the probe is allowed.
    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        if method != "session/request_permission" {
            let message = "acpipe doctor does not serve this method";
            return Err(json!({"code": rpc::code::METHOD_NOT_FOUND, "message": message}));
        }
        let session = params["sessionId"].as_str().unwrap_or_default();
        let (answer, is_allowed) = if self.cancelled.contains(session) {
            (json!({"outcome": {"outcome": "cancelled"}}), false)
        } else {
            permission_answer(params, &self.seen)
        };
        *self.seen.asked.entry(session.to_owned()).or_default() |= is_allowed;
        Ok(answer)
    }
}

impl LineReader for DoctorConnection {
    fn read(&mut self, line: &[u8]) -> LineOutcome {
        let Ok(text) = std::str::from_utf8(line) else {
            return LineOutcome::Unusable;
        };
        match rpc::parse(text) {
            Ok(message) => self.handle(message),
            Err(_) if text.trim().is_empty() => {}
            Err(_) => return LineOutcome::Unusable,
        }
        LineOutcome::Read
    }

    fn repaired(&mut self, _: Faults) {
        self.seen.stray += 1;
    }

    fn lost(&mut self, line: &LostLine<'_>) {
        self.seen.stray += 1;
        if let Some(text) = line.text() {
            self.stray.add(text.as_bytes());
            self.stray.add(b"\n");
        }
    }
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}
