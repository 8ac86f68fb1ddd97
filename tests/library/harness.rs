//! Test harness: a scratch directory for each test, agents that play scripts, and a mark that finds all
//! processes of a test.

use acpipe::{Acpipe, AgentConfig, Builder, Chunk, Turn};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Path of the program, which is the supervisor of most tests.
pub const ACPIPE: &str = env!("CARGO_BIN_EXE_acpipe");

/// Path of the scriptable agent.
const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

/// Environment variable that marks the processes of a test.
pub const MARK: &str = "ACPIPE_LIBRARY_TEST";

/// Longest wait for one result; a longer one counts as a hang.
const LIMIT: Duration = Duration::from_secs(30);

/// Environment of one test.
pub struct World {
    /// Scratch directory of this test.
    pub dir: PathBuf,
    /// Value of [`MARK`] in its processes.
    pub mark: String,
}

impl World {
    pub fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let n = LAST.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{n}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("library-{mark}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        let dir = dir.canonicalize().unwrap();
        Self { dir, mark }
    }

    /// Returns an agent that plays a script.
    pub fn agent(&self, script: &Value) -> AgentConfig {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let n = LAST.fetch_add(1, Ordering::Relaxed);
        let path = self.dir.join(format!("script-{n}.json"));
        fs::write(&path, script.to_string()).unwrap();
        AgentConfig::command(FAKE_AGENT)
            .args([path.to_str().unwrap()])
            .env(MARK, &self.mark)
            .env(
                "FAKE_AGENT_LOG",
                self.dir.join("agent.log").to_str().unwrap(),
            )
    }

    /// Returns a builder with the agent of a script.
    pub fn builder(&self, script: &Value) -> Builder {
        self.builder_with(self.agent(script))
    }

    /// Returns a builder with an agent.
    pub fn builder_with(&self, agent: AgentConfig) -> Builder {
        Acpipe::builder()
            .cwd(&self.dir)
            .supervisor(ACPIPE)
            .without_login_shell()
            .agent(agent)
    }

    /// Starts acpipe with an agent that plays these turns.
    pub fn start(&self, turns: &[Vec<Value>]) -> Acpipe {
        self.builder(&prompts(turns)).start().unwrap()
    }

    /// Returns all messages that the agents of this test received.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.dir.join("agent.log")).unwrap_or_default();
        let lines = text.lines().map(serde_json::from_str);
        lines.map(Result::unwrap).collect()
    }

    /// Returns whether the agents received a call.
    pub fn received(&self, method: &str) -> bool {
        self.log().iter().any(|message| message["method"] == method)
    }

    /// Returns all living processes of this test: process id and name.
    pub fn alive(&self) -> Vec<(i32, String)> {
        let mark = format!("{MARK}={}", self.mark).into_bytes();
        let mut alive = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let pid = entry.file_name().to_str().and_then(|n| n.parse().ok());
            let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
            if let Some(pid) = pid.filter(|_| environ.split(|b| *b == 0).any(|v| v == mark)) {
                let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
                alive.push((pid, name.trim_end().to_owned()));
            }
        }
        alive
    }

    /// Waits until a condition holds; fails if it never does.
    #[track_caller]
    pub fn wait_until(&self, what: &str, mut is_met: impl FnMut(&Self) -> bool) {
        let since = Instant::now();
        while !is_met(self) {
            assert!(since.elapsed() < LIMIT, "{what}: {:?}", self.alive());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Waits for a result; fails if it never comes.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    let result = tokio::time::timeout(LIMIT, future).await;
    result.expect("no result in time")
}

/// Returns the script of an agent that plays these turns, one for each prompt.
pub fn prompts(turns: &[Vec<Value>]) -> Value {
    json!({ "session/prompt": turns })
}

/// Reads a turn to its end.
pub async fn read_all(turn: &mut Turn) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    while let Some(chunk) = within(turn.next()).await {
        chunks.push(chunk);
    }
    chunks
}

/// Reads a turn up to its first text.
pub async fn read_text(turn: &mut Turn) -> String {
    loop {
        let chunk = within(turn.next()).await.expect("the turn has no text");
        if let Some(text) = chunk.text() {
            return text.to_owned();
        }
    }
}

/// A chunk of the answer.
pub fn say(text: &str) -> Value {
    json!({"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
}

/// Reply to the prompt, which ends the turn.
pub fn end(reason: &str) -> Value {
    json!({"reply": {"stopReason": reason}})
}

/// Steps of a turn that says something and then ends only when it is cancelled.
pub fn say_until_cancelled(text: &str) -> Vec<Value> {
    vec![
        say(text),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ]
}
