//! `acpipe demo-agent`: a small agent without a model, and an example of an ACP agent.
//!
//! An agent is a child process: requests arrive on stdin, responses and updates leave on stdout, one JSON-RPC
//! message a line. `DemoAgent` handles the client's messages, `turn` plays one prompt in its own task, and
//! `client` sends messages of both to the client.
//!
//! The agent stores nothing. A session consists only of its directory, so any session can be resumed.

mod client;
mod example;
mod intent;
mod tool;
mod turn;
mod words;

#[cfg(test)]
mod tests;

use client::{DemoClient, ErrorMember, failure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::thread;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};
use turn::DemoTurn;

/// Maximum length of a line in bytes. A longer line is read in pieces, none of which is valid JSON.
const LINE_LIMIT: u64 = 64 << 20;

/// Capacity of the queues from stdin and to stdout, in lines.
const QUEUE: usize = 16;

/// Maximum time for the client to read the last messages after it closed stdin.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Runs the demo agent on stdin and `stdout` until the end of input.
///
/// # Errors
/// A thread cannot be started, or `stdout` cannot be written.
pub async fn run(stdout: impl Write + Send + 'static) -> io::Result<()> {
    let lines = stdin()?;
    let (out, written) = write_lines(stdout)?;
    serve(lines, out).await;
    match timeout(LAST_MESSAGES, written).await {
        Ok(Ok(written)) => written,
        // The client does not read, or the thread has panicked, which the runtime reports.
        _ => Ok(()),
    }
}

/// Starts a thread that reads the lines of stdin. A thread is needed because a blocked read must not keep the
/// process alive.
fn stdin() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (lines, read) = mpsc::channel(QUEUE);
    let pump = move || {
        while read_line(io::stdin().lock()).is_some_and(|line| lines.blocking_send(line).is_ok()) {}
    };
    thread::Builder::new().name("stdin".into()).spawn(pump)?;
    Ok(read)
}

/// Reads the next line; `None` at the end of input or on an error.
fn read_line(input: impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = input.take(LINE_LIMIT).read_until(b'\n', &mut line);
    (read.ok()? > 0).then_some(line)
}

/// Result of all writes, once there are no more.
type Written = oneshot::Receiver<io::Result<()>>;

/// Starts a thread that writes lines. Returns its queue, and the result once all lines are written.
fn write_lines(
    mut stdout: impl Write + Send + 'static,
) -> io::Result<(mpsc::Sender<String>, Written)> {
    let (lines, mut unwritten) = mpsc::channel::<String>(QUEUE);
    let (done, written) = oneshot::channel();
    let pump = move || {
        let mut result = Ok(());
        while result.is_ok()
            && let Some(mut line) = unwritten.blocking_recv()
        {
            line.push('\n');
            result = stdout.write_all(line.as_bytes());
        }
        // Fails only if the result is not awaited any more.
        done.send(result).ok();
    };
    thread::Builder::new().name("stdout".into()).spawn(pump)?;
    Ok((lines, written))
}

/// Serves ACP until the client closes stdin or stdout.
async fn serve(mut lines: mpsc::Receiver<Vec<u8>>, out: mpsc::Sender<String>) {
    let mut agent = DemoAgent {
        client: DemoClient::new(out.clone()),
        sessions: BTreeMap::new(),
    };
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Some(line) => agent.receive(&line).await,
                None => break,
            },
            // The client closed stdout, so no output can reach it.
            () = out.closed() => return,
        }
    }
    let last = async {
        for open in agent.sessions.values_mut() {
            open.cancel().await;
        }
    };
    // Limited in time because a client that has exited may have left the pipe open in another process.
    timeout(LAST_MESSAGES, last).await.ok();
}

struct DemoAgent {
    client: DemoClient,
    sessions: BTreeMap<String, SessionEntry>,
}

/// Open session and its last turn.
struct SessionEntry {
    session: Arc<DemoSession>,
    turn: Option<LastTurn>,
}

/// Handle of a turn that runs or has ended.
struct LastTurn {
    /// Id of the request with the prompt.
    request: Value,
    cancel: Arc<Notify>,
    task: JoinHandle<()>,
}

/// State shared by a session and its turns.
struct DemoSession {
    id: String,
    cwd: String,
    /// Tools that the user allowed for the rest of the session, as a set of [`tool::DemoTool::bit`].
    always: AtomicU8,
    busy: AtomicBool,
    /// Whether the client has received a title.
    titled: AtomicBool,
    /// Number of characters of all prompts and answers.
    chars: AtomicUsize,
}

impl SessionEntry {
    /// Cancels the turn and waits until its prompt is answered.
    async fn cancel(&mut self) {
        if let Some(turn) = self.turn.take() {
            turn.cancel.notify_one();
            // Fails only after a panic, which the runtime reports.
            turn.task.await.ok();
        }
    }
}

impl DemoAgent {
    /// Handles one line of the client.
    async fn receive(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            let error = failure(-32700, "this line is not JSON", json!({}));
            return self.client.answer(&Value::Null, Err(error)).await;
        };
        let (id, params) = (message.get("id"), &message["params"]);
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => {
                if let Some(answer) = self.request(id, method, params).await.transpose() {
                    self.client.answer(id, answer).await;
                }
            }
            (Some("session/cancel"), None) => {
                let id = params["sessionId"].as_str().unwrap_or_default();
                self.cancel_turn(|open, _| open.session.id == id);
            }
            // Only prompts take time. The response is that of a cancelled turn.
            (Some("$/cancel_request"), None) => {
                self.cancel_turn(|_, turn| turn.request == params["requestId"]);
            }
            // Notifications get no response, not even unknown ones.
            (Some(_), None) => {}
            (None, Some(id)) if message.get("result").or(message.get("error")).is_some() => {
                self.client.answered(id, message["result"].clone());
            }
            (None, id) => {
                let error = failure(-32600, "neither a request nor a response", json!({}));
                self.client
                    .answer(id.unwrap_or(&Value::Null), Err(error))
                    .await;
            }
        }
    }

    /// Cancels the turn that matches, unless it has ended.
    fn cancel_turn(&self, is_wanted: impl Fn(&SessionEntry, &LastTurn) -> bool) {
        let turns = self.sessions.values();
        let mut turns = turns.filter_map(|open| Some((open, open.turn.as_ref()?)));
        if let Some((_, turn)) = turns.find(|(open, turn)| is_wanted(open, turn)) {
            turn.cancel.notify_one();
        }
    }

    /// Handles a request; `None` if the response follows later.
    async fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Value,
    ) -> Result<Option<Value>, ErrorMember> {
        match method {
            "initialize" => Ok(Some(initialize())),
            "session/new" => {
                let id = fresh("demo");
                self.open(&id, params, false)?;
                Ok(Some(json!({ "sessionId": id })))
            }
            "session/resume" => {
                let id = text(params, "sessionId")?;
                if !is_session(id) {
                    return Err(unknown(id));
                }
                self.open(id, params, true)?;
                Ok(Some(json!({})))
            }
            "session/close" => {
                let id = text(params, "sessionId")?;
                let mut open = self.sessions.remove(id).ok_or_else(|| unknown(id))?;
                open.cancel().await;
                Ok(Some(json!({})))
            }
            // The only request with a delayed response, which follows at the end of the turn.
            "session/prompt" => self.prompt(id, params).map(|()| None),
            _ => Err(failure(
                -32601,
                &format!("method `{method}` not found"),
                json!({}),
            )),
        }
    }

    /// Opens a session, or changes the directory of an open one.
    fn open(&mut self, id: &str, params: &Value, titled: bool) -> Result<(), ErrorMember> {
        let cwd = text(params, "cwd")?;
        if !Path::new(cwd).is_absolute() {
            return Err(invalid("cwd", "must be an absolute path"));
        }
        let before = self.sessions.get(id).map(|open| &open.session);
        if before.is_some_and(|before| before.busy.load(Ordering::SeqCst)) {
            return Err(busy(id));
        }
        let always = before.map_or(0, |before| before.always.load(Ordering::SeqCst));
        let chars = before.map_or(0, |before| before.chars.load(Ordering::SeqCst));
        let session = DemoSession {
            id: id.to_owned(),
            cwd: cwd.to_owned(),
            always: AtomicU8::new(always),
            busy: AtomicBool::new(false),
            titled: AtomicBool::new(titled),
            chars: AtomicUsize::new(chars),
        };
        let session = Arc::new(session);
        self.sessions.insert(
            id.to_owned(),
            SessionEntry {
                session,
                turn: None,
            },
        );
        Ok(())
    }

    /// Starts a turn, which responds to the request when it ends.
    fn prompt(&mut self, request: &Value, params: &Value) -> Result<(), ErrorMember> {
        let id = text(params, "sessionId")?;
        let (prompt, attachments) = words::text_of(&params["prompt"])?;
        let open = self.sessions.get_mut(id).ok_or_else(|| unknown(id))?;
        if open.session.busy.swap(true, Ordering::SeqCst) {
            return Err(busy(id));
        }
        let session = Arc::clone(&open.session);
        let cancel = Arc::new(Notify::new());
        let turn = DemoTurn::new(self.client.clone(), session, &prompt, attachments);
        let task = tokio::spawn(turn.play(request.clone(), Arc::clone(&cancel)));
        open.turn = Some(LastTurn {
            request: request.clone(),
            cancel,
            task,
        });
        Ok(())
    }
}

/// Returns the response to `initialize`. Its version is always 1: a client that does not support it has to
/// disconnect.
fn initialize() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": { "name": "acpipe-demo", "title": "acpipe demo agent", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "promptCapabilities": { "image": true, "embeddedContext": true },
            "sessionCapabilities": { "resume": {}, "close": {} },
        },
        "authMethods": [],
    })
}

/// Returns a unique id; the standard library seeds every `RandomState` differently.
fn fresh(prefix: &str) -> String {
    format!(
        "{prefix}-{:016x}",
        RandomState::new().build_hasher().finish()
    )
}

/// Returns `true` if [`fresh`] may have created the id.
fn is_session(id: &str) -> bool {
    let rest = id.strip_prefix("demo-").unwrap_or_default();
    (1..=60).contains(&rest.len()) && rest.bytes().all(|b| b == b'-' || b.is_ascii_alphanumeric())
}

/// Returns a required string parameter.
fn text<'a>(params: &'a Value, field: &str) -> Result<&'a str, ErrorMember> {
    params[field]
        .as_str()
        .ok_or_else(|| invalid(field, "must be a string"))
}

fn invalid(field: &str, what: &str) -> ErrorMember {
    failure(
        -32602,
        &format!("`{field}` {what}"),
        json!({ "field": field }),
    )
}

fn unknown(id: &str) -> ErrorMember {
    let message = format!(
        "session `{}` not found; call session/new or session/resume first",
        words::one_line(id)
    );
    failure(-32002, &message, json!({ "sessionId": id }))
}

fn busy(id: &str) -> ErrorMember {
    let message =
        format!("session `{id}` is in a turn; wait for its response, or send session/cancel");
    failure(-32600, &message, json!({ "sessionId": id }))
}
