//! Test harness: a scratch directory for each test, a mark that finds all processes of a test, and limits to
//! waits.

pub mod claude;
pub mod output;
pub mod run;
pub mod server;
mod signals;
pub mod stream;
pub mod terminal;
pub mod watchdog;

use acpipe_model::builtin_agents;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for one result; a longer one counts as a hang.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Path of the program under test.
pub const ACPIPE: &str = env!("CARGO_BIN_EXE_acpipe");

/// Path of the scriptable ACP agent.
pub const FAKE_AGENT: &str = env!("CARGO_BIN_EXE_fake-agent");

/// Path of the agent that is written with the library.
pub const LIBRARY_AGENT: &str = env!("CARGO_BIN_EXE_library-agent");

/// Path of the scriptable Claude Code CLI.
pub const FAKE_CLAUDE: &str = env!("CARGO_BIN_EXE_fake-claude");

/// Environment variable that marks the processes of a test.
const MARK: &str = "ACPIPE_BRIDGE_TEST";

/// Environment of one test: its scratch directory and the mark of its processes.
pub struct World {
    /// Scratch directory of this test.
    pub dir: PathBuf,
    /// Largest size of a file that acpipe may write, in blocks of 512 bytes (`ulimit -f`).
    pub room: Option<u32>,
    mark: String,
    _watched: watchdog::Watched,
}

impl World {
    pub fn new() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        signals::restore_defaults();
        let n = LAST.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{n}", std::process::id());
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bridge-{mark}"));
        // An earlier run with the same process id may have left it.
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self {
            dir: dir.canonicalize().unwrap(),
            room: None,
            mark,
            _watched: watchdog::Watched::new(),
        }
    }

    /// Returns a marked command that runs acpipe with these arguments, with agents that log to
    /// [`World::log`].
    pub fn acpipe<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = match self.room {
            None => self.command(ACPIPE),
            Some(room) => {
                let mut limited = self.command("sh");
                let limit = format!(r#"ulimit -f {room}; exec "$0" "$@""#);
                limited.args(["-c", &limit, ACPIPE]);
                limited
            }
        };
        command.args(args);
        command
    }

    /// Returns a marked command that runs this program, with agents that log to [`World::log`].
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("PATH", path_without_agents())
            .env_remove("ACPIPE_AGENT")
            .env_remove("CLAUDE_CLI_PATH")
            .env("CLAUDE_CONFIG_DIR", self.dir.join("claude"))
            .env_remove("ACPIPE_LOG")
            .env_remove("ACPIPE_CONFIG")
            .env("XDG_CONFIG_HOME", self.dir.join("config"))
            .env_remove("SHELL")
            .env_remove("ACPIPE_NO_PATH_PROBE")
            .env_remove("PERSIST_MESSAGES")
            // Without styles and pager, unless a test sets them.
            .env("TERM", "dumb")
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR")
            .env_remove("CLICOLOR_FORCE")
            .env_remove("ACPIPE_PAGER")
            .env_remove("PAGER")
            .env_remove("LESS")
            .env("ACPIPE_STATE_DIR", self.dir.join("state"))
            .env(MARK, &self.mark)
            .env("FAKE_AGENT_LOG", self.log_path());
        command
    }

    fn log_path(&self) -> PathBuf {
        self.dir.join("agent.log")
    }

    /// Writes a file in the scratch directory and returns its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.dir.join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Writes the user's configuration.
    pub fn configure(&self, text: &str) {
        fs::create_dir_all(self.dir.join("config/acpipe")).unwrap();
        self.file("config/acpipe/config.toml", text);
    }

    /// Writes an executable file in the scratch directory and returns its path.
    pub fn executable(&self, name: &str, content: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.file(name, content);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Writes a script of the fake agent to a file, since the length of arguments is limited, and returns its
    /// path.
    pub fn script(&self, script: &Value) -> String {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let n = LAST.fetch_add(1, Ordering::Relaxed);
        self.file(&format!("script-{n}.json"), &script.to_string())
    }

    /// Returns all lines that the agents of this test received, in order. A line that is not JSON is a
    /// string.
    pub fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log_path()).unwrap_or_default();
        let line = |l: &str| serde_json::from_str(l).unwrap_or_else(|_| l.into());
        text.lines().map(line).collect()
    }

    /// Returns all living processes of this test: pid and command line.
    pub fn alive(&self) -> Vec<(i32, String)> {
        let wanted = format!("{MARK}={}", self.mark);
        marked(|variable| variable == wanted.as_bytes())
    }

    /// Returns a failure message if processes of the test are left. Supervisors of a killed acpipe get 10 s
    /// to exit.
    pub fn leak(&self) -> Option<String> {
        let since = Instant::now();
        loop {
            let alive = self.alive();
            if alive.is_empty() {
                return None;
            }
            if since.elapsed() > Duration::from_secs(10) {
                return Some(format!("processes left behind: {alive:?}"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills all processes of the test.
    pub fn kill_all(&self) {
        for (pid, _) in self.alive() {
            signal(pid, rustix::process::Signal::KILL);
        }
    }
}

/// Returns `PATH` without the directories that contain well-known agents: a run without an agent must use the
/// demo agent on every machine. Directories of the system are kept.
fn path_without_agents() -> &'static OsStr {
    static PATH: OnceLock<OsString> = OnceLock::new();
    PATH.get_or_init(|| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has_agent = |dir: &Path| {
            let programs = builtin_agents::all()
                .iter()
                .flat_map(|agent| &agent.programs);
            let mut programs = programs.map(|program| dir.join(&program.command));
            programs.any(|file| file.exists())
        };
        let is_of_system = |dir: &Path| dir.starts_with("/usr/bin") || dir.starts_with("/bin");
        let kept = std::env::split_paths(&path).filter(|dir| is_of_system(dir) || !has_agent(dir));
        std::env::join_paths(kept).unwrap()
    })
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // A directory that cannot be removed disturbs no other test.
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Returns all living processes with a matching variable in their environment: pid and command line.
fn marked(is_mark: impl Fn(&[u8]) -> bool) -> Vec<(i32, String)> {
    let mut alive = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else {
            continue;
        };
        // A process may exit while it is read. An exited process that is not yet reaped has no environment.
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|b| *b == 0).any(&is_mark) {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            alive.push((pid, String::from_utf8_lossy(&line).replace('\0', " ")));
        }
    }
    alive
}

/// Kills the processes of all tests of this run, and returns them.
fn kill_all_marked() -> Vec<(i32, String)> {
    let prefix = format!("{MARK}={}-", std::process::id());
    let killed = marked(|variable| variable.starts_with(prefix.as_bytes()));
    for (pid, _) in &killed {
        signal(*pid, rustix::process::Signal::KILL);
    }
    killed
}

/// Sends a signal to a process. An exited process is ignored.
pub fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns the arguments of a command line, which has one blank between two.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Waits until a process is blocked on writing: one of its threads waits for space in a pipe, according to
/// `/proc`, and five checks in a row find no new output.
#[track_caller]
pub fn await_blocked_writer(pid: i32) {
    let since = Instant::now();
    let (mut before, mut same) = (None, 0);
    while same < 5 {
        let written = written_by_blocked(pid);
        same = if written.is_some() && written == before {
            same + 1
        } else {
            0
        };
        before = written;
        assert!(
            since.elapsed() < LIMIT,
            "/proc/{pid}/task/*/wchan: {pid} never waits for its reader"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of bytes that a process has written, if one of its threads waits for space in a pipe.
fn written_by_blocked(pid: i32) -> Option<u64> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let tasks = fs::read_dir(proc.join("task")).ok()?.flatten();
    let mut waits = tasks.filter_map(|task| fs::read_to_string(task.path().join("wchan")).ok());
    if !waits.any(|place| place.contains("pipe_write")) {
        return None;
    }
    let io = fs::read_to_string(proc.join("io")).ok()?;
    let written = io.lines().find_map(|line| line.strip_prefix("wchar: "))?;
    written.parse().ok()
}

/// Returns the joined texts of a `repeat` step of the fake agent that writes `{i},` in each round.
pub fn counted(times: u64) -> String {
    (0..times).fold(String::new(), |all, i| all + &i.to_string() + ",")
}

pub fn calls<'a>(log: &'a [Value], method: &str) -> Vec<&'a Value> {
    log.iter().filter(|m| m["method"] == method).collect()
}

/// Returns the ids of the options that the client selected in permission requests of the agent.
pub fn chosen_options(log: &[Value]) -> Vec<&str> {
    log.iter()
        .filter_map(|m| m["result"]["outcome"]["optionId"].as_str())
        .collect()
}

/// Waits until the agents of a world have received this method so many times.
pub fn await_calls(world: &World, method: &str, times: usize) {
    let since = Instant::now();
    while calls(&world.log(), method).len() < times {
        assert!(since.elapsed() < LIMIT, "no {method} in {:#?}", world.log());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Common steps of the fake agent.
pub mod steps {
    use serde_json::{Value, json};

    /// A chunk of the answer.
    pub fn say(text: &str) -> Value {
        json!({"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})
    }

    /// A chunk of reasoning.
    pub fn think(text: &str) -> Value {
        json!({"update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}})
    }

    pub fn tool(id: &str, fields: &Value) -> Value {
        tool_update("tool_call", id, fields)
    }

    pub fn tool_change(id: &str, fields: &Value) -> Value {
        tool_update("tool_call_update", id, fields)
    }

    fn tool_update(kind: &str, id: &str, fields: &Value) -> Value {
        let mut update = json!({"sessionUpdate": kind, "toolCallId": id});
        for (name, value) in fields.as_object().unwrap() {
            update[name] = value.clone();
        }
        json!({"update": update})
    }

    /// Script of an agent that can resume sessions.
    pub fn resumable(mut script: Value) -> Value {
        let can = json!({"sessionCapabilities": {"resume": {}}});
        script["initialize"] =
            json!([[{"reply": {"protocolVersion": 1, "agentCapabilities": can}}]]);
        script["session/resume"] = json!([[{"reply": {}}]]);
        script
    }

    /// Reply to the prompt, which ends the turn.
    pub fn end(reason: &str) -> Value {
        json!({"reply": {"stopReason": reason}})
    }

    /// Steps of a turn that ends when it is cancelled.
    pub fn until_cancelled() -> [Value; 2] {
        [json!({"wait": "session/cancel"}), end("cancelled")]
    }

    /// A permission request with options of `(option id, kind)`.
    pub fn ask(tool: &Value, options: &[(&str, &str)]) -> Value {
        let options: Vec<Value> = options
            .iter()
            .map(|(id, kind)| json!({"optionId": id, "name": format!("Do {id}"), "kind": kind}))
            .collect();
        json!({"ask": {"method": "session/request_permission", "params": {"toolCall": tool, "options": options}}})
    }
}
