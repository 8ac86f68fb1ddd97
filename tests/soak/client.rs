//! A small client of `acpipe serve` that stores as little as possible and checks messages as they arrive.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Time after which a read counts as hung.
const LIMIT: Duration = Duration::from_secs(120);

/// Environment variable that marks all processes of a run.
const MARK: &str = "ACPIPE_SOAK_TEST";

pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: u64,
    /// Last chunk number of each session.
    seqs: HashMap<String, u64>,
    mark: String,
    pub dir: PathBuf,
}

/// A message that the client receives.
pub enum Message {
    Answer { id: u64, answer: Value },
    Chunk { session: String, chunk: Value },
    Other,
}

impl Client {
    /// Starts acpipe with a fake agent that follows this script.
    pub fn start(name: &str, script: &Value) -> Self {
        let mark = format!("{name}-{}", std::process::id());
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{mark}"));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("script.json");
        std::fs::write(&path, script.to_string()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_acpipe"))
            .args(["serve", "--durability", "none", "--"])
            .arg(env!("CARGO_BIN_EXE_fake-agent"))
            .arg(path)
            .env("ACPIPE_STATE_DIR", dir.join("state"))
            .env(MARK, &mark)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A small queue, so that a slow client lets the pipe fill up.
        let (sender, lines) = sync_channel(64);
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if sender.send(line.unwrap()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut client = Self {
            child,
            stdin,
            lines,
            last_id: 0,
            seqs: HashMap::new(),
            mark,
            dir,
        };
        client.call("initialize", &json!({"protocolVersion": 1}));
        client
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let call =
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{call}").unwrap();
        self.last_id
    }

    /// Sends a request and returns its response, while no other request is open.
    pub fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        loop {
            match self.next() {
                Message::Answer { id: of, answer } if of == id => return answer,
                Message::Answer { answer, .. } => panic!("nobody asked: {answer}"),
                Message::Chunk { .. } | Message::Other => {}
            }
        }
    }

    /// Returns the next message, and checks that the chunks of a session are numbered without gaps.
    pub fn next(&mut self) -> Message {
        let line = self.lines.recv_timeout(LIMIT).expect("a message");
        let mut message: Value = serde_json::from_str(&line).expect(&line);
        if let Some(id) = message["id"].as_u64() {
            return Message::Answer {
                id,
                answer: message,
            };
        }
        if message["method"] != "session/chunk" {
            return Message::Other;
        }
        let params = &mut message["params"];
        let session = params["sessionId"].as_str().unwrap().to_owned();
        let seq = params["seq"].as_u64().unwrap();
        let last = self.seqs.insert(session.clone(), seq);
        assert_eq!(last.unwrap_or(0) + 1, seq, "{line}");
        let chunk = params["chunk"].take();
        Message::Chunk { session, chunk }
    }

    /// Ends acpipe normally, and checks that no process is left.
    pub fn finish(mut self) {
        self.stdin = None;
        while self.lines.recv_timeout(LIMIT).is_ok() {}
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        assert_eq!(self.alive(), 0, "processes are left");
        std::fs::remove_dir_all(&self.dir).unwrap();
    }

    /// Returns the number of processes of this run.
    pub fn alive(&self) -> usize {
        let wanted = format!("{MARK}={}", self.mark);
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let environ = |path: PathBuf| std::fs::read(path.join("environ")).unwrap_or_default();
        processes
            .map(|entry| environ(entry.path()))
            .filter(|environ| environ.split(|b| *b == 0).any(|v| v == wanted.as_bytes()))
            .count()
    }
}
