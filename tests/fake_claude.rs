//! Scriptable fake of the Claude Code CLI with stream-json input and output; one process serves one session.
//!
//! A prompt whose text is a JSON array is a list of steps, performed as its turn; any other text is echoed.
//! Prompts wait in a queue, as in the CLI. Sessions are stored as by the CLI below `CLAUDE_CONFIG_DIR`, so
//! `--resume` of an unknown session fails as in the CLI.
//!
//! | step | effect |
//! |-|-|
//! | `{"say": "…"}` | sends a message: its stream events and its `assistant` frame |
//! | `{"delta": "…"}` | sends a text delta; the first one begins a message |
//! | `{"frame": {…}}` | sends this frame |
//! | `{"ask": {…}}` | sends the tool's `assistant` frame, then `can_use_tool` with these fields; waits for the answer and sends it as a message |
//! | `{"asked": {…}}` | like `ask`, without waiting; `{"withdraw": true}` cancels the last request |
//! | `{"request": {…}}` | sends any other control request, waits for its answer and sends it as a message |
//! | `{"wait": "subtype"}` | waits until such a control request has arrived since the turn began |
//! | `{"steered": true}` | waits for another prompt, takes it into the turn and sends its text as a message |
//! | `{"interrupted": true}` | waits for an interrupt and ends the turn as interrupted |
//! | `{"result": {…}}` | ends the turn with these fields merged over the default ones; without this step the turn ends with a success |
//! | `{"silent": true}` | ends the turn without a result |
//! | `{"background": […]}` | queues an unprompted turn as the next one |
//! | `{"clear": "id"}` | continues as another session |
//! | `{"line": "…"}`, `{"bytes": [0-255, …]}`, `{"huge": N}`, `{"novel": N}` | writes a raw line; raw bytes; a result with N bytes of text; a frame of an unknown type with N bytes |
//! | `{"repeat": [N, […]]}`, `{"once": ["path", […]]}`, `{"stderr": "…"}`, `{"exit": code}`, `{"hang": true}`, `{"closeStdout": true}` | as named; `once` performs its steps only if the file does not exist, and creates it; if the turn ends in these steps, the steps after `once` are skipped |
//!
//! In texts `{uuid}`, `{session}` and `{i}` are replaced by the prompt's uuid, the session's id and the round
//! of a `repeat`.
//!
//! `FAKE_CLAUDE=FILE` names a script, an object: `version`, `start`, `resume` (before a session that is
//! resumed) and `eof` hold steps; `control` maps a subtype to steps that replace its answer; `ignoreTerm:
//! true` ignores SIGTERM; `mcpErrors` maps unreachable MCP servers to the reason. In these steps `{request}`
//! is replaced by the request's id. `FAKE_AGENT_LOG=FILE` gets `{pid, session, argv, cwd, env}` for each
//! process (`env` holds the variables with CLAUDE in their name), `{pid, session, got}` for each frame,
//! `{pid, session, eof}` at the end of stdin.

#![expect(
    clippy::disallowed_methods,
    reason = "the fake is no part of acpipe: it makes processes of its own"
)]

#[path = "fake_claude/frames.rs"]
mod frames;
#[path = "fake_claude/sessions.rs"]
mod sessions;
#[path = "fake_claude/turn.rs"]
mod turn;

use serde_json::{Value, json};
use sessions::Stored;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use turn::Turn;

/// State shared by all threads.
struct Cli {
    script: Value,
    argv: Vec<String>,
    state: Mutex<State>,
    news: Condvar,
    log: Option<File>,
}

#[derive(Default)]
struct State {
    session: String,
    mode: String,
    /// Queued turns: the prompt's uuid (`None` for an unprompted turn), the steps, and the prompt's text.
    queue: VecDeque<(Option<String>, Vec<Value>, String)>,
    /// Subtypes of the control requests so far.
    requests: Vec<String>,
    /// Answers to the requests of the fake CLI.
    answers: HashMap<String, Value>,
    eof: bool,
}

fn main() {
    let argv: Vec<String> = std::env::args().skip(1).collect();
    let script = std::env::var("FAKE_CLAUDE").ok();
    let script = script.and_then(|path| std::fs::read_to_string(path).ok());
    let script = script.map_or(json!({}), |text| or_die(serde_json::from_str(&text)));
    if script["ignoreTerm"] == true && std::env::var_os("FAKE_CLAUDE_TERM").is_none() {
        // Setting a signal's disposition requires `unsafe` in Rust. A shell can do it, and exec keeps the
        // disposition.
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"trap "" TERM; exec "$0" "$@""#]);
        shell.arg(or_die(std::env::current_exe())).args(&argv);
        die(&shell.env("FAKE_CLAUDE_TERM", "1").exec().to_string());
    }
    let flag = |name: &str| {
        let prefix = format!("--{name}=");
        argv.iter()
            .find_map(|arg| Some(arg.strip_prefix(&prefix)?.to_owned()))
    };
    let resumed = flag("resume");
    let session = resumed.clone().or_else(|| flag("session-id"));
    let log = std::env::var_os("FAKE_AGENT_LOG");
    let log = log.map(|path| or_die(File::options().append(true).create(true).open(path)));
    let state = State {
        session: session.unwrap_or_default(),
        mode: flag("permission-mode").unwrap_or_else(|| "default".to_owned()),
        ..State::default()
    };
    let cli = Arc::new(Cli {
        script,
        argv,
        state: Mutex::new(state),
        news: Condvar::new(),
        log,
    });
    cli.begin();
    if cli.argv == ["--version"] {
        let steps = cli.steps("version");
        if cli.script.get("version").is_none() {
            write(b"9.9.9 (Claude Code)\n");
        }
        Turn::outside(&cli).perform(&steps);
        exit(0);
    }
    Turn::outside(&cli).perform(&cli.steps("start"));
    if let Some(id) = resumed {
        Turn::outside(&cli).perform(&cli.steps("resume"));
        if Stored::find(&id).is_none() {
            let said = format!("No conversation found with session ID: {id}");
            send(
                &json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "num_turns": 0,
                "session_id": id, "total_cost_usd": 0, "errors": [said]}),
            );
            complain(&said);
            exit(1);
        }
    }
    let turns = Arc::clone(&cli);
    thread::spawn(move || turns.work());
    cli.read();
    cli.note("eof", json!(true));
    Turn::outside(&cli).perform(&cli.steps("eof"));
    cli.state().eof = true;
    cli.news.notify_all();
    loop {
        thread::park();
    }
}

impl Cli {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> String {
        self.state().session.clone()
    }

    fn steps(&self, name: &str) -> Vec<Value> {
        self.script[name].as_array().cloned().unwrap_or_default()
    }

    /// Writes one line to the log.
    fn note(&self, what: &str, value: Value) {
        let mut line = json!({"pid": std::process::id(), "session": self.session()});
        line[what] = value;
        self.log(&line);
    }

    fn log(&self, line: &Value) {
        if let Some(mut log) = self.log.as_ref() {
            // One write for each line, so that processes with a common log do not mix their lines.
            or_die(log.write_all(format!("{line}\n").as_bytes()));
        }
    }

    fn begin(&self) {
        let told = |(name, _): &(String, String)| name.contains("CLAUDE");
        let env: BTreeMap<String, String> = std::env::vars().filter(told).collect();
        let cwd = or_die(std::env::current_dir());
        self.log(
            &json!({"pid": std::process::id(), "session": self.session(), "argv": self.argv, "cwd": cwd, "env": env}),
        );
    }

    /// Blocks until `look` finds a value in the state.
    fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> T {
        let mut state = self.state();
        loop {
            if let Some(found) = look(&mut state) {
                return found;
            }
            let waited = self.news.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Performs turns one after the other.
    fn work(self: &Arc<Self>) {
        loop {
            let next = self.until(|state| match state.queue.pop_front() {
                None if state.eof => Some(None),
                None => None,
                some => Some(some),
            });
            let Some((uuid, steps, text)) = next else {
                exit(0)
            };
            Turn::of(self, uuid).go(&steps, &text);
        }
    }

    fn read(self: &Arc<Self>) {
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        while matches!(stdin.read_until(b'\n', &mut line), Ok(1..)) {
            let Ok(frame) = serde_json::from_slice::<Value>(&line) else {
                die("a line that is no JSON")
            };
            line.clear();
            self.note("got", frame.clone());
            match frame["type"].as_str() {
                Some("user") => self.prompted(&frame),
                Some("control_request") => self.asked(&frame),
                Some("control_response") => {
                    let response = &frame["response"];
                    let id = response["request_id"].as_str().unwrap_or_default();
                    self.state().answers.insert(id.to_owned(), response.clone());
                }
                _ => {}
            }
            self.news.notify_all();
        }
    }

    fn prompted(&self, frame: &Value) {
        let text: String = match &frame["message"]["content"] {
            // Reminders are for the model.
            Value::Array(blocks) => blocks
                .iter()
                .filter_map(|b| b["text"].as_str())
                .filter(|text| !text.starts_with("<system-reminder>"))
                .collect(),
            other => other.as_str().unwrap_or_default().to_owned(),
        };
        let steps = serde_json::from_str(&text).unwrap_or_else(|_| vec![json!({"say": text})]);
        let uuid = frame["uuid"].as_str().unwrap_or_default().to_owned();
        frames::lifecycle(self, &uuid, "queued");
        self.state().queue.push_back((Some(uuid), steps, text));
    }

    fn asked(self: &Arc<Self>, frame: &Value) {
        let request = &frame["request"];
        let subtype = request["subtype"].as_str().unwrap_or_default();
        let id = &frame["request_id"];
        let still_queued: Vec<String> = {
            let mut state = self.state();
            state.requests.push(subtype.to_owned());
            state
                .queue
                .iter()
                .filter_map(|(uuid, ..)| uuid.clone())
                .collect()
        };
        if let Some(steps) = self.script["control"][subtype].as_array() {
            let mut turn = Turn::outside(self);
            id.as_str()
                .unwrap_or_default()
                .clone_into(&mut turn.request);
            turn.perform(steps);
            return;
        }
        let answer = match subtype {
            "initialize" => json!({
                "commands": [{"name": "compact", "description": "Compacts", "argumentHint": ""}],
                "models": [{"value": "default", "displayName": "Default"}, {"value": "haiku", "displayName": "Haiku"}],
                "current_permission_mode": self.state().mode.clone(),
            }),
            "interrupt" => json!({ "still_queued": still_queued }),
            "cancel_async_message" => {
                let uuid = request["message_uuid"].as_str().unwrap_or_default();
                let mut state = self.state();
                let before = state.queue.len();
                state.queue.retain(|(of, ..)| of.as_deref() != Some(uuid));
                let cancelled = state.queue.len() < before;
                drop(state);
                if cancelled {
                    frames::lifecycle(self, uuid, "cancelled");
                }
                json!({ "cancelled": cancelled })
            }
            "mcp_set_servers" => {
                let added: Vec<&String> = request["servers"]
                    .as_object()
                    .map(|s| s.keys().collect())
                    .unwrap_or_default();
                json!({"added": added, "removed": [], "errors": self.script["mcpErrors"]})
            }
            "set_model" => json!({"model": request["model"]}),
            "set_permission_mode" => {
                let mode = request["mode"].as_str().unwrap_or_default();
                mode.clone_into(&mut self.state().mode);
                json!({ "mode": mode })
            }
            _ => {
                let response = json!({"subtype": "error", "request_id": id, "error_code": "unsupported_request",
                    "error": format!("Unsupported control request subtype: {subtype}")});
                return send(&json!({"type": "control_response", "response": response}));
            }
        };
        let response = json!({"subtype": "success", "request_id": id, "response": answer});
        send(&json!({"type": "control_response", "response": response}));
        if subtype == "set_permission_mode" {
            send(
                &json!({"type": "system", "subtype": "status", "status": null, "session_id": self.session(),
                "permissionMode": request["mode"]}),
            );
        }
    }
}

fn send(frame: &Value) {
    write(format!("{frame}\n").as_bytes());
}

fn write(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    or_die(stdout.write_all(bytes).and_then(|()| stdout.flush()));
}

/// Writes a line to stderr. A failure is ignored, since stderr may have no reader.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

fn or_die<T, E: std::fmt::Display>(outcome: Result<T, E>) -> T {
    outcome.unwrap_or_else(|error| die(&error.to_string()))
}

fn die(why: &str) -> ! {
    complain(&format!("fake-claude: {why}"));
    exit(1)
}

#[expect(clippy::exit, reason = "turns end the process from their thread")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}
