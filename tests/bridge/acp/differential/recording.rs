//! Recordings of ACP agents and their clients.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// Writer of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Agent,
}

/// One message of a recording.
#[derive(Debug)]
pub struct Entry {
    pub from: Side,
    pub frame: Value,
}

/// Messages between an agent and its client.
#[derive(Debug)]
pub struct Recording {
    pub name: String,
    pub entries: Vec<Entry>,
}

/// Reads all recordings of ACP agents.
pub fn recordings() -> Vec<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    let paths: BTreeSet<_> = files.map(|file| file.unwrap().path()).collect();
    let recordings = paths.iter().map(|path| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        Recording::parse(name, &std::fs::read_to_string(path).unwrap())
    });
    recordings
        .filter(|recording| !recording.name.starts_with("claude-cli-"))
        .collect()
}

impl Recording {
    /// Reads a recording. Lines of the client that are not messages, the agent's responses to them, and
    /// responses without a request are left out: every program handles these itself.
    fn parse(name: String, text: &str) -> Self {
        let (mut by_client, mut by_agent) = (BTreeSet::new(), BTreeSet::new());
        let mut entries = Vec::new();
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let from = match line["dir"].as_str() {
                Some("out") => Side::Client,
                _ => Side::Agent,
            };
            let raw = line["raw"].as_str();
            let raw = raw.and_then(|raw| serde_json::from_str(raw).ok());
            let frame = line.get("frame").cloned().or(raw).unwrap_or_default();
            if !is_message(&frame) {
                continue;
            }
            let id = frame["id"].to_string();
            let (own, others) = match from {
                Side::Client => (&mut by_client, &by_agent),
                Side::Agent => (&mut by_agent, &by_client),
            };
            if frame.get("method").is_some() {
                own.insert(id);
            } else if !others.contains(&id) {
                continue;
            }
            entries.push(Entry { from, frame });
        }
        Self { name, entries }
    }

    /// Returns the messages as lines for the player.
    pub fn lines(&self) -> String {
        let mut lines = String::new();
        for entry in &self.entries {
            let dir = match entry.from {
                Side::Client => "out",
                Side::Agent => "in",
            };
            let _ = writeln!(lines, "{}", json!({"dir": dir, "frame": entry.frame}));
        }
        lines
    }

    /// Iterates over the messages of one side.
    pub fn of(&self, side: Side) -> impl Iterator<Item = &Value> {
        let entries = self.entries.iter();
        let entries = entries.filter(move |entry| entry.from == side);
        entries.map(|entry| &entry.frame)
    }
}

/// Returns `true` for a request, notification or response whose id can be used.
fn is_message(frame: &Value) -> bool {
    let has_method = frame["method"].is_string();
    let has_id = match frame.get("id") {
        None => has_method,
        Some(id) => id.is_string() || id.is_i64(),
    };
    frame["jsonrpc"] == "2.0" && has_id && (has_method || frame.get("method").is_none())
}
