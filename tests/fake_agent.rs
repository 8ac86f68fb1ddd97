//! Scriptable fake ACP agent for tests; with `--flood`, a fast agent for benchmarks; with `--play`, the agent
//! of a recording (see `fake_agent/play.rs`).
//!
//! `fake-agent [SCRIPT]`: SCRIPT is JSON text, if it starts with `{`, or the path of a JSON file. It maps a
//! method's name to a list of runs. A run is a list of steps: the n-th call of the method performs the n-th
//! run, and the last run repeats. `"start"` and `"eof"` hold one list of steps each. `start` runs before
//! anything is read; `eof` runs at the end of stdin, after which the agent exits with 0. Methods without an
//! entry in the script get default answers (see `default`). A call is answered only by its own `reply`,
//! `error` or `default` step.
//!
//! | step | effect |
//! |-|-|
//! | `{"update": {…}}` | sends a `session/update` for the call's session |
//! | `{"notify": {"method", "params"?}}` | sends any notification |
//! | `{"ask": {"method", "params"?, "id"?}}` | sends a request and waits for its answer; a missing `params.sessionId` is filled in |
//! | `{"echoAnswer": true}` | sends the last answer's `{"result": …}` or `{"error": …}` as the text of a message chunk |
//! | `{"reply": result}`, `{"error": {…}}` | answers the call; a second such step answers it again |
//! | `{"default": true}` | answers the call as without a script |
//! | `{"frame": any}` | writes this JSON value as a line |
//! | `{"line": "…"}`, `{"partial": "…"}`, `{"bytes": [0-255, …]}` | writes raw text with a newline, raw text without one, raw bytes |
//! | `{"huge": {"bytes": N, "prefix"?: "…", "suffix"?: "…"}}` | writes one line with N times `x` between prefix and suffix |
//! | `{"wait": "method"}` | waits until such a message has arrived since the call; each `wait` takes one, and a message that names another session (or request) does not count |
//! | `{"sleep": ms}`, `{"stderr": "…"}` | sleeps; writes a line to stderr |
//! | `{"repeat": {"times": N, "until"?: "method", "steps": […]}}` | performs the steps N times; with `until` it stops before the round in which a `wait` for this method would not block |
//! | `{"once": {"mark": "path", "steps": […]}}` | performs the steps and creates the file, unless the file exists: for another behaviour after a restart |
//! | `{"if": {"params": "…", "then": […], "else"?: […]}}` | performs `then` if the JSON of the call's parameters contains the text, else `else` |
//! | `{"exit": code}` | ends the process |
//! | `{"hang": true}` | ends the run without an answer; in `start` and `eof`: sleeps forever |
//! | `{"closeStdout": true}` | closes stdout; the process continues |
//! | `{"spawn": {"command": […], "setsid"?: bool}}` | starts a grandchild that holds stdout and stderr open; its pid is logged |
//! | `{"ignoreTerm": true}` | only in `start`: ignores SIGTERM from the first line on, as do grandchildren (but not under `env --default-signal=TERM`) |
//!
//! In every text of a step `{session}`, `{id}` and `{i}` are replaced by the call's session, its request id
//! and the round of the innermost `repeat`. A text that is exactly `"{id}"` is replaced by the id itself,
//! number or string.
//!
//! Calls of `session/prompt` and calls whose run may wait have a thread each; all others run in the order of
//! arrival. Environment: `FAKE_AGENT_LOG=FILE` gets every line received, `{"spawned":PID}` and, at the end of
//! stdin, `{"eof":true}`.

#![expect(
    clippy::disallowed_methods,
    reason = "the agent is no part of acpipe: it makes processes of its own"
)]

#[path = "fake_agent/flood.rs"]
mod flood;
#[path = "fake_agent/play.rs"]
mod play;
#[path = "fake_agent/run.rs"]
mod run;
#[path = "fake_agent/script.rs"]
mod script;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};

use flood::Options;
use run::Run;
use script::{Script, Step, ignores_term, names_session, waits};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--flood", ..] => Options::parse(&args[1..]).map(flood::serve),
        ["--play", recording] => Ok(play::play(recording)),
        [] => Ok(serve(Script::default())),
        [script] if !script.starts_with('-') => Script::load(script).map(serve),
        _ => Err(
            "usage: fake-agent [SCRIPT] | fake-agent --flood [OPTIONS] | fake-agent --play FILE"
                .to_owned(),
        ),
    };
    match outcome {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            complain(&error.to_string());
            ExitCode::FAILURE
        }
        Err(usage) => {
            complain(&usage);
            ExitCode::from(2)
        }
    }
}

#[expect(clippy::exit, reason = "runs end the process from their threads")]
fn exit(code: i32) -> ! {
    std::process::exit(code)
}

/// Writes a line to stderr. A failure is ignored, since stderr may have no reader.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "fake-agent: {text}");
}

struct Agent {
    script: Script,
    inbox: Mutex<Inbox>,
    news: Condvar,
    asked: AtomicU64,
    log: Option<File>,
}

#[derive(Default)]
struct Inbox {
    /// All requests and notifications so far.
    calls: Vec<Arrival>,
    /// Answers that no run has taken.
    answers: Vec<Value>,
}

struct Arrival {
    method: String,
    session: Option<Value>,
    request: Option<Value>,
}

fn serve(script: Script) -> io::Result<()> {
    const IGNORED: &str = "FAKE_AGENT_TERM_IGNORED";
    let ignore_term = ignores_term(&script.start);
    if ignore_term && std::env::var_os(IGNORED).is_none() {
        // Setting a signal's disposition requires `unsafe` in Rust. A shell can do it, and exec keeps both
        // the disposition and the pid.
        let mut shell = Command::new("sh");
        shell
            .args(["-c", r#"trap "" TERM; exec "$0" "$@""#])
            .arg(std::env::current_exe()?);
        return Err(shell
            .args(std::env::args_os().skip(1))
            .env(IGNORED, "1")
            .exec());
    }

    let log = match std::env::var_os("FAKE_AGENT_LOG") {
        Some(path) => Some(File::options().append(true).create(true).open(path)?),
        None => None,
    };
    let agent = Arc::new(Agent {
        script,
        inbox: Mutex::default(),
        news: Condvar::new(),
        asked: AtomicU64::new(0),
        log,
    });
    agent.perform_outside_calls(&agent.script.start);

    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    loop {
        line.clear();
        // A read error ends the input, too.
        if !matches!(stdin.read_until(b'\n', &mut line), Ok(1..)) {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        agent.log(line);
        let Ok(Value::Object(message)) = serde_json::from_slice(line) else {
            complain(&format!(
                "ignored, as it is no JSON object: {}",
                String::from_utf8_lossy(line)
            ));
            continue;
        };
        if let Some(method) = message.get("method").and_then(Value::as_str) {
            let count = counts.entry(method.to_owned()).or_default();
            agent.dispatch(method, &message, *count);
            *count += 1;
        } else {
            agent.inbox().answers.push(Value::Object(message));
            agent.news.notify_all();
        }
    }
    agent.log(br#"{"eof":true}"#);
    agent.perform_outside_calls(&agent.script.eof);
    // `exit` instead of a return, since prompts may still be running.
    exit(0)
}

impl Agent {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, line: &[u8]) {
        if let Some(mut log) = self.log.as_ref() {
            // One write for each line, so that agents with a common log do not mix their lines.
            if let Err(error) = log.write_all(&[line, b"\n"].concat()) {
                complain(&format!("log: {error}"));
            }
        }
    }

    /// Performs `start` or `eof`, which belong to no call.
    fn perform_outside_calls(self: &Arc<Self>, steps: &[Step]) {
        let session = "fake-1".to_owned();
        let mut run = Run::new(self, "", &Map::new(), session, 0);
        if run.perform(steps).is_break() {
            loop {
                thread::sleep(Duration::MAX);
            }
        }
    }

    /// Records a call and performs its run. `count` is the number of earlier calls of this method.
    fn dispatch(self: &Arc<Self>, method: &str, message: &Map<String, Value>, count: usize) {
        let param = |name: &str| {
            message
                .get("params")
                .and_then(|params| params.get(name))
                .cloned()
        };
        let since = {
            let mut inbox = self.inbox();
            inbox.calls.push(Arrival {
                method: method.to_owned(),
                session: param("sessionId"),
                request: param("requestId"),
            });
            inbox.calls.len()
        };
        self.news.notify_all();

        let nth = self
            .script
            .runs
            .get(method)
            .map_or(0, |runs| count.min(runs.len() - 1));
        let session = if method == "session/new" {
            let own = format!("fake-{}", count + 1);
            names_session(self.run(method, nth)).map_or(own, str::to_owned)
        } else {
            let session = param("sessionId");
            session
                .as_ref()
                .and_then(Value::as_str)
                .unwrap_or("fake-1")
                .to_owned()
        };
        let mut run = Run::new(self, method, message, session, since);
        let threaded = method == "session/prompt" || waits(self.run(method, nth));
        let (agent, method) = (Arc::clone(self), method.to_owned());
        let mut perform = move || {
            // A run that hangs leaves only its own call unanswered.
            let _ = run.perform(agent.run(&method, nth));
        };
        if threaded {
            thread::spawn(perform);
        } else {
            perform();
        }
    }

    fn run(&self, method: &str, nth: usize) -> &[Step] {
        self.script
            .runs
            .get(method)
            .map_or(&[Step::Default], |runs| &runs[nth])
    }

    /// Blocks until `look` finds a value in the inbox.
    fn await_inbox<T>(&self, mut look: impl FnMut(&mut Inbox) -> Option<T>) -> T {
        let mut inbox = self.inbox();
        loop {
            if let Some(found) = look(&mut inbox) {
                return found;
            }
            inbox = self
                .news
                .wait(inbox)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}
