//! Runs of acpipe other than `acpipe serve`: `acpipe run` and all other commands.

use super::{FAKE_AGENT, LIMIT, World, stream};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Command line to run.
pub struct Run {
    pub world: World,
    args: Vec<String>,
    agent: Vec<String>,
    env: Vec<(String, String)>,
    stdin: Vec<u8>,
    keep_stdin: bool,
}

impl Run {
    /// Creates a run of acpipe with these arguments.
    pub fn new(args: &[&str]) -> Self {
        Self {
            world: World::new(),
            args: args.iter().map(|&a| a.to_owned()).collect(),
            agent: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            keep_stdin: false,
        }
    }

    /// Creates a run of acpipe with this line of arguments ([`super::words`]).
    pub fn of(line: &str) -> Self {
        Self::new(&super::words(line))
    }

    /// Appends the fake agent with this script, after `--`.
    pub fn script(self, script: &Value) -> Self {
        let script = self.world.script(script);
        self.agent(&[FAKE_AGENT, &script])
    }

    /// Appends this command line after `--`.
    pub fn agent(mut self, line: &[&str]) -> Self {
        self.agent = line.iter().map(|&a| a.to_owned()).collect();
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    pub fn stdin(mut self, text: impl AsRef<[u8]>) -> Self {
        text.as_ref().clone_into(&mut self.stdin);
        self
    }

    /// Keeps stdin open while acpipe runs.
    pub fn keep_stdin(mut self) -> Self {
        self.keep_stdin = true;
        self
    }

    /// Starts acpipe; the test reads its stdout.
    pub fn start(self) -> Running {
        let mut args = self.args.clone();
        if !self.agent.is_empty() {
            args.push("--".to_owned());
            args.extend(self.agent.iter().cloned());
        }
        let mut command: Command = self.world.acpipe(&args);
        let mut child = command
            .envs(self.env.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let mut kept = None;
        // acpipe may exit without reading its stdin.
        if self.keep_stdin {
            let _ = stdin.write_all(&self.stdin);
            kept = Some(stdin);
        } else {
            let text = self.stdin.clone();
            thread::spawn(move || stdin.write_all(&text));
        }
        let stderr = collect(child.stderr.take().unwrap());
        Running {
            world: self.world,
            stdin: kept,
            stdout: child.stdout.take(),
            child,
            stderr,
            seen: Vec::new(),
        }
    }

    /// Runs acpipe until it exits.
    pub fn go(self) -> Outcome {
        self.start().end()
    }
}

/// Reads to the end in a separate thread.
fn collect(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        // Output read before an error counts too.
        let _ = from.read_to_end(&mut all);
        let _ = sender.send(all);
    });
    receiver
}

/// Running acpipe process.
pub struct Running {
    pub world: World,
    stdin: Option<ChildStdin>,
    child: Child,
    pub stdout: Option<ChildStdout>,
    stderr: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Running {
    /// Reads stdout until it contains `text`.
    pub fn await_stdout(&mut self, text: &str) {
        let mut stdout = self.stdout.take().unwrap();
        let mut seen = std::mem::take(&mut self.seen);
        let wanted = text.to_owned();
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&seen).contains(&wanted) {
                match stdout.read(&mut piece) {
                    Ok(n) if n > 0 => seen.extend_from_slice(&piece[..n]),
                    _ => break,
                }
            }
            let _ = sender.send((stdout, seen));
        });
        let (stdout, seen) = receiver
            .recv_timeout(LIMIT)
            .unwrap_or_else(|_| panic!("{text:?} never came"));
        assert!(
            String::from_utf8_lossy(&seen).contains(text),
            "{text:?} never came, but {:?}",
            String::from_utf8_lossy(&seen)
        );
        self.stdout = Some(stdout);
        self.seen = seen;
    }

    /// Writes to stdin, which must have been kept open.
    pub fn write(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("stdin was not kept");
        stdin.write_all(text.as_bytes()).unwrap();
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for the exit; output can still be read.
    pub fn await_exit(&mut self) {
        let since = std::time::Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(since.elapsed() < LIMIT, "it does not end");
            thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    pub fn signal(&self, signal: Signal) {
        super::signal(i32::try_from(self.child.id()).unwrap(), signal);
    }

    /// Waits for the exit and checks that no process is left.
    pub fn end(mut self) -> Outcome {
        let rest = self.stdout.take().map(collect);
        let mut stdout = std::mem::take(&mut self.seen);
        if let Some(rest) = rest {
            stdout.extend(rest.recv_timeout(LIMIT).expect("stdout stays open"));
        }
        let stderr = self.stderr.recv_timeout(LIMIT).expect("stderr stays open");
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let status = self.child.wait().unwrap();
        let outcome = Outcome {
            status,
            stdout,
            stderr,
            log: self.world.log(),
        };
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
        if let Some(leak) = self.world.leak() {
            panic!("{leak}\n{outcome:?}");
        }
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if thread::panicking() {
            self.world.kill_all();
        }
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: String,
    /// Lines that the agents received.
    pub log: Vec<Value>,
}

impl Outcome {
    /// Asserts the exit code.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.status.code(), Some(code), "{}", self.show());
        self
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.stdout.clone()).unwrap()
    }

    /// Parses the output of `-o json`.
    pub fn json(&self) -> Value {
        let text = self.text();
        assert_eq!(text.trim_end().lines().count(), 1, "{}", self.show());
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {}", self.show()))
    }

    /// Parses the output of `-o chunks` and checks its chunks.
    pub fn chunks(&self) -> Vec<Value> {
        let chunks: Vec<Value> = self
            .text()
            .lines()
            .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
            .collect();
        stream::check(&chunks).unwrap();
        chunks
    }

    pub fn show(&self) -> String {
        format!(
            "{:?}\nstdout: {}\nstderr: {}",
            self.status,
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        )
    }
}
