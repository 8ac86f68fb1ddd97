//! Agent process, with the test as its client: raw lines in both directions.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Longest wait for one message; a longer one counts as a hang.
const DEADLINE: Duration = Duration::from_secs(20);

/// Time without a message after which no late message is expected.
const QUIET: Duration = Duration::from_millis(200);

/// Answer of the client to a request of the agent.
#[derive(Debug, Clone)]
pub enum Answer {
    Result(Value),
    Error(i32, &'static str),
    /// The test answers later, with [`Peer::send`].
    Later,
}

/// Function that answers the requests of the agent.
type Answers = Box<dyn FnMut(&Value) -> Answer + Send>;

/// Running agent.
pub struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Vec<u8>>,
    stderr: Receiver<String>,
    answers: Answers,
    last_id: u64,
    deadline: Duration,
    ended: bool,
    /// All messages of the agent, in order.
    pub received: Vec<Value>,
    /// Text of each message in `received`.
    pub texts: Vec<String>,
    /// Lines of the agent that are not messages.
    pub faults: Vec<String>,
}

impl Peer {
    /// Starts an agent.
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = sync_channel(4096);
        let stdout = child.stdout.take().unwrap();
        thread::spawn(move || read_lines(stdout, &sender));
        let (sender, stderr) = sync_channel(1);
        let mut errors = child.stderr.take().unwrap();
        thread::spawn(move || {
            let mut all = Vec::new();
            // The text is for failure messages only.
            let _ = errors.read_to_end(&mut all);
            let _ = sender.send(String::from_utf8_lossy(&all).into_owned());
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            stderr,
            answers: Box::new(refuse),
            last_id: 0,
            deadline: DEADLINE,
            ended: false,
            received: Vec::new(),
            texts: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Sets the longest wait for one message.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    /// Sets the answers to the requests of the agent. By default each is refused as unknown.
    pub fn answer_with(&mut self, answers: impl FnMut(&Value) -> Answer + Send + 'static) {
        self.answers = Box::new(answers);
    }

    /// Writes a line. An agent that has exited does not read it, which a wait for its answer reports.
    pub fn send_line(&mut self, line: &str) {
        if let Some(stdin) = &mut self.stdin {
            let _ = stdin.write_all(format!("{line}\n").as_bytes());
        }
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits for the response to a request.
    pub fn response(&mut self, id: &Value) -> Result<Value, String> {
        let at = self.find(0, |message| is_response(message, id));
        let at = at.map_err(|why| format!("no response to request {id}: {why}"))?;
        Ok(self.received[at].clone())
    }

    /// Sends a request and waits for its response.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let id = self.request(method, params);
        self.response(&id).map_err(|why| format!("{method}: {why}"))
    }

    /// Sends a request and waits for its result. An error is a failure.
    pub fn result(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let response = self.call(method, params)?;
        let result = response.get("result").cloned();
        result.ok_or_else(|| format!("{method} failed: {response}"))
    }

    /// Sends a request and waits for its error. A result is a failure.
    pub fn error(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        let response = self.call(method, params)?;
        let error = response.get("error").cloned();
        error.ok_or_else(|| format!("{method} with {params} succeeded: {response}"))
    }

    /// Waits until the agent has handled everything that was sent before: an unknown request is answered.
    pub fn barrier(&mut self) -> Result<(), String> {
        self.call("acpipe_test/barrier", &json!({})).map(drop)
    }

    /// Waits for a message at or after a position and returns its position.
    pub fn find(
        &mut self,
        from: usize,
        mut is_wanted: impl FnMut(&Value) -> bool,
    ) -> Result<usize, String> {
        let mut at = from;
        loop {
            while at < self.received.len() {
                if is_wanted(&self.received[at]) {
                    return Ok(at);
                }
                at += 1;
            }
            self.receive()?;
        }
    }

    /// Receives messages until none has arrived for a moment. A missing message cannot be awaited: an agent
    /// that sends it later is not caught.
    pub fn settle(&mut self) -> Result<(), String> {
        self.barrier()?;
        while let Ok(line) = self.lines.recv_timeout(QUIET) {
            self.line(line);
        }
        Ok(())
    }

    /// Receives the next message, and answers it if it is a request.
    fn receive(&mut self) -> Result<(), String> {
        let line = match self.lines.recv_timeout(self.deadline) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                let last = self.received.last();
                return Err(format!(
                    "the agent sent nothing for {:?}; its last message: {last:?}",
                    self.deadline
                ));
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.ended = true;
                return Err("the agent closed its output".to_owned());
            }
        };
        self.line(line);
        Ok(())
    }

    fn line(&mut self, line: Vec<u8>) {
        match String::from_utf8(line) {
            Ok(line) => match serde_json::from_str::<Value>(&line) {
                Ok(message) => {
                    self.answer(&message);
                    self.received.push(message);
                    self.texts.push(line);
                }
                Err(error) => self.faults.push(format!("not JSON ({error}): {line}")),
            },
            Err(error) => self.faults.push(format!("not UTF-8: {error}")),
        }
    }

    fn answer(&mut self, message: &Value) {
        let (Some(id), Some(_)) = (message.get("id"), message.get("method")) else {
            return;
        };
        let answer = match (self.answers)(message) {
            Answer::Result(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Answer::Error(code, text) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
            }
            Answer::Later => return,
        };
        self.send(&answer);
    }

    /// Returns the updates of a session between two positions.
    pub fn updates(&self, session: &str, from: usize, to: usize) -> Vec<&Value> {
        let of_session = |message: &&Value| {
            message["method"] == "session/update" && message["params"]["sessionId"] == session
        };
        let messages = self.received[from..to].iter().filter(of_session);
        messages
            .map(|message| &message["params"]["update"])
            .collect()
    }

    /// Closes stdin and receives everything until the end of the output.
    pub fn close(&mut self) -> Result<(), String> {
        self.stdin = None;
        while !self.ended {
            if let Err(why) = self.receive()
                && !self.ended
            {
                return Err(format!("stdin is closed, but {why}"));
            }
        }
        Ok(())
    }

    /// Waits for the exit of an agent that has closed its output. Returns its status and stderr.
    pub fn wait(&mut self) -> Result<(ExitStatus, String), String> {
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                let stderr = self.stderr.recv_timeout(self.deadline);
                return Ok((status, stderr.unwrap_or_default()));
            }
            if since.elapsed() > self.deadline {
                return Err("stdout is closed, but the agent does not exit".to_owned());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Fails if the agent has exited and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns `true` for a response to the request with this id.
pub fn is_response(message: &Value, id: &Value) -> bool {
    message.get("id") == Some(id) && message.get("method").is_none()
}

/// Refuses a request as a client that declared nothing, and cancels permission requests.
fn refuse(request: &Value) -> Answer {
    if request["method"] == "session/request_permission" {
        return Answer::Result(json!({"outcome": {"outcome": "cancelled"}}));
    }
    Answer::Error(-32601, "method not found")
}

fn read_lines(stdout: impl Read, sender: &SyncSender<Vec<u8>>) {
    let mut stdout = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        if !matches!(stdout.read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if sender.send(line).is_err() {
            return;
        }
    }
}
