//! `fake-agent --play FILE`: plays the agent's side of a recording.
//!
//! FILE has a line `{"dir": "in" | "out", "frame": …}` for each message: `in` was written by the agent, `out`
//! by its client. The player writes each message of the agent as soon as all messages of the client before it
//! have arrived. A request of the client is recognised by its method and may have another id, which the
//! response then gets. Some messages stand for others, see `STANDS_FOR`. A message that does not arrive is
//! skipped when a later one arrives, with its response; a cancel of a session without a turn is ignored.
//! A request that the recording does not have is refused. At the end of stdin the player exits, wherever it is.
//! `FAKE_AGENT_LOG=FILE` gets every line received.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, Write};

/// Recorded methods and those that a client in between may send in their place.
const STANDS_FOR: &[(&str, &str)] = &[
    ("$/cancel_request", "session/cancel"),
    ("session/set_mode", "session/set_config_option"),
];

#[derive(Deserialize)]
struct Entry {
    dir: String,
    frame: Value,
}

struct Player<I, O> {
    input: I,
    output: O,
    log: Option<File>,
    /// Messages of the client that are not due yet.
    early: Vec<Value>,
    /// Recorded ids of the client's requests → ids of the requests that arrived.
    ids: HashMap<String, Value>,
    /// Recorded ids of the prompts that are not answered → their sessions.
    turns: HashMap<String, Value>,
}

pub fn play(path: &str) -> io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let entries = text.lines().map(serde_json::from_str::<Entry>);
    let mut entries = entries.collect::<Result<VecDeque<Entry>, _>>()?;
    let log = match std::env::var_os("FAKE_AGENT_LOG") {
        Some(path) => Some(File::options().append(true).create(true).open(path)?),
        None => None,
    };
    let mut player = Player {
        input: io::stdin().lock(),
        output: io::stdout().lock(),
        log,
        early: Vec::new(),
        ids: HashMap::new(),
        turns: HashMap::new(),
    };
    while let Some(entry) = entries.pop_front() {
        if entry.dir == "in" {
            player.write(entry.frame)?;
        } else {
            if player.is_idle_cancel(&entry.frame) {
                continue;
            }
            let later: Vec<&Value> = entries
                .iter()
                .filter(|entry| entry.dir == "out")
                .map(|entry| &entry.frame)
                .collect();
            if !player.wait(&entry.frame, &later)? {
                return Ok(());
            }
        }
    }
    while let Some(message) = player.read()? {
        player.refuse(&message)?;
    }
    Ok(())
}

/// Returns `true` if two messages of the client are the same step of the conversation.
fn is_same_step(recorded: &Value, arrived: &Value) -> bool {
    let is_request = |message: &Value| message.get("id").is_some();
    match recorded.get("method") {
        Some(method) => {
            let other = arrived["method"].as_str().unwrap_or_default();
            let is_same = method == other
                || STANDS_FOR
                    .iter()
                    .any(|(of, stands)| method == of && other == *stands);
            is_same && is_request(recorded) == is_request(arrived)
        }
        None => arrived.get("method").is_none() && arrived.get("id") == recorded.get("id"),
    }
}

impl<I: BufRead, O: Write> Player<I, O> {
    /// Waits for a message of the client, or for a later one. Returns `false` at the end of stdin.
    fn wait(&mut self, recorded: &Value, later: &[&Value]) -> io::Result<bool> {
        let mut early = self.early.iter();
        let at = early.position(|message| is_same_step(recorded, message));
        let arrived = match at {
            Some(at) => self.early.remove(at),
            None if !self.early.is_empty() => return Ok(true),
            None => loop {
                let Some(message) = self.read()? else {
                    return Ok(false);
                };
                if self.is_idle_cancel(&message) {
                    continue;
                }
                if is_same_step(recorded, &message) {
                    break message;
                }
                if later.iter().any(|later| is_same_step(later, &message)) {
                    self.early.push(message);
                    return Ok(true);
                }
                self.refuse(&message)?;
            },
        };
        // A response has an id of the agent.
        let is_request = recorded.get("method").is_some();
        if let (true, Some(own), Some(id)) = (is_request, recorded.get("id"), arrived.get("id")) {
            self.ids.insert(own.to_string(), id.clone());
            if recorded["method"] == "session/prompt" {
                let session = recorded["params"]["sessionId"].clone();
                self.turns.insert(own.to_string(), session);
            }
        }
        Ok(true)
    }

    /// Returns `true` for a cancel of a session in which no turn runs.
    fn is_idle_cancel(&self, message: &Value) -> bool {
        let session = &message["params"]["sessionId"];
        message["method"] == "session/cancel" && !self.turns.values().any(|turn| turn == session)
    }

    /// Reads the next message; `None` at the end of stdin.
    fn read(&mut self) -> io::Result<Option<Value>> {
        loop {
            let mut line = Vec::new();
            if self.input.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if let Some(log) = &mut self.log {
                log.write_all(&line)?;
            }
            if let Ok(message) = serde_json::from_slice(&line) {
                return Ok(Some(message));
            }
        }
    }

    /// Refuses a request that the recording does not have. Other messages are ignored.
    fn refuse(&mut self, message: &Value) -> io::Result<()> {
        let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else {
            return Ok(());
        };
        let error = json!({"code": -32601, "message": format!("{method} is not in the recording")});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }

    /// Writes a message of the agent. A response gets the id of the request that arrived.
    fn write(&mut self, mut frame: Value) -> io::Result<()> {
        if frame.get("method").is_none() {
            let recorded = frame["id"].to_string();
            self.turns.remove(&recorded);
            let Some(id) = self.ids.get(&recorded) else {
                // The request did not arrive.
                return Ok(());
            };
            frame["id"] = id.clone();
        }
        self.send(&frame)
    }

    fn send(&mut self, frame: &Value) -> io::Result<()> {
        writeln!(self.output, "{frame}")?;
        self.output.flush()
    }
}
