//! Stored sessions of the fake CLI: the history in the CLI's format, and a file beside it with the cost.

use crate::{Cli, or_die};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Path of a session's history file.
pub(crate) struct Stored(PathBuf);

impl Stored {
    fn projects() -> PathBuf {
        let root = std::env::var("CLAUDE_CONFIG_DIR").unwrap_or("/nonexistent".into());
        Path::new(&root).join("projects")
    }

    /// Finds the session of this id in any project directory.
    pub(crate) fn find(id: &str) -> Option<Self> {
        let dirs = fs::read_dir(Self::projects()).ok()?.flatten();
        let files = dirs.map(|dir| dir.path().join(format!("{id}.jsonl")));
        files.into_iter().find(|file| file.exists()).map(Self)
    }

    pub(crate) fn of(cli: &Cli) -> Self {
        let id = cli.session();
        Self::find(&id).unwrap_or_else(|| {
            let cwd = or_die(std::env::current_dir());
            let cwd = cwd.to_string_lossy();
            let dir: String = cwd
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
                .collect();
            let dir = Self::projects().join(dir);
            or_die(fs::create_dir_all(&dir));
            Self(dir.join(format!("{id}.jsonl")))
        })
    }

    /// Appends a message to the history.
    pub(crate) fn append(&self, cli: &Cli, role: &str, content: &Value) {
        let lines = fs::read_to_string(&self.0).unwrap_or_default();
        let lines = lines.lines().count();
        let uuid = |n: usize| format!("00000000-0000-4000-8000-{n:012}");
        let mut message = json!({"role": role, "content": content});
        if role == "assistant" {
            message["id"] = json!(format!("msg-{lines}"));
        }
        let record = json!({"type": role, "uuid": uuid(lines), "parentUuid": lines.checked_sub(1).map(uuid),
            "isSidechain": false, "sessionId": cli.session(), "cwd": std::env::current_dir().ok(),
            "timestamp": "2026-01-02T03:04:05.678Z", "message": message});
        let file = File::options().append(true).create(true).open(&self.0);
        or_die(or_die(file).write_all(format!("{record}\n").as_bytes()));
    }

    /// Adds the cost of a turn, 0.25, and returns the session's total.
    pub(crate) fn cost(&self) -> f64 {
        let file = self.0.with_extension("cost");
        let before: f64 = fs::read_to_string(&file)
            .ok()
            .and_then(|c| c.parse().ok())
            .unwrap_or_default();
        let cost = before + 0.25;
        or_die(fs::write(&file, cost.to_string()));
        cost
    }
}
