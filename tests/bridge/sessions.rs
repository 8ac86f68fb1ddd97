//! `acpipe sessions`, and runs that continue a session.

use crate::harness::run::{Outcome, Run, Running};
use crate::harness::steps::{end, resumable, say, tool, tool_change, until_cancelled};
use crate::harness::{FAKE_AGENT, World, calls};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Sessions shared by several runs, and their agent.
pub struct Home {
    pub world: World,
    script: String,
}

impl Home {
    /// Creates a home with an agent that resumes every session and has these runs of `session/prompt`.
    pub fn new(prompts: &Value) -> Self {
        Self::with(&resumable(json!({"session/prompt": prompts})))
    }

    pub fn with(script: &Value) -> Self {
        let world = World::new();
        let script = world.script(script);
        Self { world, script }
    }

    pub fn answering() -> Self {
        Self::new(&json!([[say("answer"), end("end_turn")]]))
    }

    fn state(&self) -> PathBuf {
        self.world.dir.join("state")
    }

    pub fn log(&self, id: &str) -> PathBuf {
        self.state().join(format!("sessions/{id}.jsonl"))
    }

    /// Creates a run of acpipe without an agent.
    pub fn acpipe(&self, args: &[&str]) -> Run {
        let state = self.state();
        let run = Run::new(args).env("ACPIPE_STATE_DIR", state.to_str().unwrap());
        run.env("TZ", "JST-9")
    }

    pub fn sessions(&self, args: &[&str]) -> Outcome {
        let args = [&["sessions"], args].concat();
        self.acpipe(&args).go()
    }

    /// Creates a run with the agent.
    pub fn run(&self, args: &[&str]) -> Run {
        let args = [&["run"], args].concat();
        self.acpipe(&args).agent(&[FAKE_AGENT, &self.script])
    }

    /// Starts a run that holds the session until it is interrupted.
    fn busy(&self, id: &str) -> Running {
        let [wait, stop] = until_cancelled();
        let script = json!({"session/prompt": [[say("begun"), wait, stop]]});
        let script = self.world.script(&script);
        let run = self.acpipe(&["run", "--session", id, "go"]);
        let mut running = run.agent(&[FAKE_AGENT, &script]).start();
        running.await_stdout("begun");
        running
    }

    /// Stores a session with this time of its last change.
    pub fn store(&self, id: &str, at: &str) {
        fs::create_dir_all(self.state().join("sessions")).unwrap();
        let first = json!({"record": "session", "at": at, "format": 1, "sessionId": id, "createdAt": at,
            "cwd": "/p", "agent": "agent acp", "title": "A title"});
        let message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]});
        let second = json!({"record": "message", "at": at, "message": message});
        fs::write(self.log(id), format!("{first}\n{second}\n")).unwrap();
    }

    pub fn ids(&self) -> Vec<String> {
        let listed = self.sessions(&["list", "--json"]).expect(0).text();
        let card = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let id = |line: &str| card(line)["sessionId"].as_str().unwrap().to_owned();
        listed.lines().map(id).collect()
    }
}

fn stop(running: Running) {
    running.signal(Signal::INT);
    running.end().expect(130);
}

const OLD: &str = "2020-01-01T10:00:00.000Z";

#[test]
fn named_session_is_created_and_continued() {
    let home = Home::answering();
    let first = home.run(&["--session", "mine", "one"]).go().expect(0);
    assert_eq!(first.stderr, "");
    let second = home.run(&["--session", "mine", "two"]).go().expect(0);
    assert_eq!(second.text(), "answer\n");
    assert_eq!(calls(&second.log, "session/resume").len(), 1);
    assert!(second.stderr.contains("2 messages"), "{}", second.stderr);
    assert_eq!(second.stderr.lines().count(), 1, "{}", second.stderr);
    let quiet = home.run(&["-q", "--session", "mine", "three"]).go();
    assert_eq!(quiet.expect(0).stderr, "");
    let log = fs::read_to_string(home.log("mine")).unwrap();
    assert_eq!(log.matches(r#""record":"prompt""#).count(), 3);
}

#[test]
fn command_line_options_apply_to_a_stored_session() {
    let modes = json!({"modes": {"currentModeId": "default", "availableModes": [
        {"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}]}});
    let home = Home::with(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": modes}]],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("answer"), end("end_turn")]],
    }));
    home.run(&["--session", "mine", "one"]).go().expect(0);
    let planned = ["--session", "mine", "--mode", "plan", "two"];
    let second = home.run(&planned).go().expect(0);
    let set = calls(&second.log, "session/set_mode");
    assert_eq!(set.len(), 1, "{:?}", second.log);
    assert_eq!(set[0]["params"]["modeId"], "plan");
}

#[test]
fn continue_takes_the_newest_session_of_the_directory() {
    let home = Home::answering();
    let none = home.run(&["-c", "go"]).go().expect(1);
    assert!(none.stderr.contains("start one"), "{}", none.stderr);
    assert!(none.log.is_empty(), "no agent is started");
    let none = home.run(&["-c", "-o", "json", "go"]).go().expect(1).json();
    assert_eq!(none["errors"][0]["kind"], "sessionNotFound");
    home.run(&["--session", "a", "one"]).go().expect(0);
    home.run(&["--session", "b", "one"]).go().expect(0);
    home.run(&["--session", "a", "two"]).go().expect(0);
    let dir = home.world.dir.to_str().unwrap();
    let elsewhere = ["--cwd", dir, "--session", "elsewhere", "one"];
    home.run(&elsewhere).go().expect(0);
    let summary = home.run(&["-c", "-o", "json", "go"]).go().expect(0).json();
    assert_eq!(summary["sessionId"], "a");
    let there = home.run(&["--continue", "--cwd", dir, "-o", "json", "go"]);
    assert_eq!(there.go().expect(0).json()["sessionId"], "elsewhere");
    // Without a named agent, `--continue` uses the session's own agent.
    let own = home.acpipe(&["run", "-c", "-o", "json", "go"]).go();
    let own = own.expect(0).json();
    assert_eq!(
        (&own["sessionId"], &own["text"]),
        (&json!("a"), &json!("answer"))
    );
}

#[test]
fn unnamed_run_can_be_continued() {
    let home = Home::answering();
    let first = home.run(&["-o", "json", "one"]).go().expect(0).json();
    let second = home.run(&["-c", "-o", "json", "two"]).go().expect(0).json();
    assert_eq!(first["sessionId"], second["sessionId"]);
}

#[test]
fn failed_run_leaves_no_session() {
    let home = Home::answering();
    for args in [&["run", "go"][..], &["run", "--session", "a", "go"]] {
        let run = home.acpipe(args).agent(&["no-such-agent"]);
        run.go().expect(127);
        let kept = fs::read_dir(home.state().join("sessions")).unwrap();
        assert_eq!(kept.count(), 0, "{args:?}");
    }
}

#[test]
fn lost_memory_is_reported() {
    let home = Home::with(&json!({"session/prompt": [[say("answer"), end("end_turn")]]}));
    home.run(&["--session", "mine", "one"]).go().expect(0);
    let second = home.run(&["--session", "mine", "two"]).go().expect(0);
    assert!(
        second.stderr.contains("without the agent's memory")
            && second.stderr.contains("--reinject"),
        "{}",
        second.stderr
    );
    let again = ["--session", "mine", "--reinject", "100", "three"];
    let third = home.run(&again).go().expect(0);
    assert!(third.stderr.contains("characters"), "{}", third.stderr);
}

#[test]
fn conflicting_session_options_are_a_usage_error() {
    let home = Home::answering();
    let cases: &[&[&str]] = &[
        &["--session", "a", "--continue", "go"],
        &["--session", "a", "--persist", "never", "go"],
        &["--continue", "--persist", "never", "go"],
        &["--session", "", "go"],
        &["--session", "a", "--ephemeral", "go"],
        &["--continue", "--ephemeral", "go"],
        &["--persist", "always", "--ephemeral", "go"],
    ];
    for args in cases {
        let outcome = home.run(args).go().expect(2);
        assert_eq!(outcome.text(), "", "{args:?}");
        assert!(!outcome.stderr.is_empty(), "{args:?}");
    }
    let outcome = home.run(&["-c", "go"]).env("PERSIST_MESSAGES", "false");
    outcome.go().expect(2);
}

#[test]
fn only_a_named_run_needs_a_usable_store() {
    let home = Home::answering();
    // The directory cannot be created, or no file can be created in it.
    let file = home.world.file("file", "");
    let full = home.world.dir.join("full");
    fs::create_dir(&full).unwrap();
    std::os::unix::fs::symlink("/proc", full.join("sessions")).unwrap();
    for state in [file.as_str(), full.to_str().unwrap()] {
        let plain = home.run(&["--state-dir", state, "go"]).go().expect(0);
        assert_eq!(plain.text(), "answer\n");
        assert!(plain.stderr.contains("not stored"), "{}", plain.stderr);
        assert_eq!(plain.stderr.lines().count(), 1, "{}", plain.stderr);
        let quiet = home.run(&["-q", "--state-dir", state, "go"]).go();
        assert_eq!(quiet.expect(0).stderr, "");
        let named = ["--state-dir", state, "--session", "a", "go"];
        let named = home.run(&named).go().expect(74);
        assert!(named.stderr.contains(state), "{}", named.stderr);
        assert!(calls(&named.log, "session/prompt").is_empty());
    }
}

#[test]
fn sessions_are_listed_newest_first() {
    let home = Home::answering();
    let none = home.sessions(&["list"]).expect(0);
    assert_eq!(none.text(), "");
    assert!(none.stderr.contains("no session"), "{}", none.stderr);
    assert!(!home.state().exists(), "reading makes nothing");
    home.store("B", OLD);
    home.store("a", "2021-01-01T10:00:00.000Z");
    home.run(&["--session", "mine", "one"]).go().expect(0);
    assert_eq!(home.ids(), ["mine", "a", "B"]);
    let listed = home.sessions(&["list"]).expect(0);
    assert_eq!(listed.stderr, "");
    let text = listed.text();
    let old: Vec<&str> = text.lines().collect();
    assert_eq!(old.len(), 4);
    assert!(old[0].starts_with("SESSION  TITLE"), "{text}");
    // In the user's time zone, nine hours east of UTC.
    assert!(
        old[3].starts_with("B        A title  2020-01-01 19:00         1  agent acp "),
        "{text}"
    );
    let here = home.sessions(&["list", "--cwd", "."]).expect(0).text();
    assert!(
        here.lines().count() == 2 && here.contains("\nmine "),
        "{here}"
    );
    let nowhere = home.sessions(&["list", "--cwd", "/nowhere", "--json"]);
    assert_eq!(nowhere.expect(0).text(), "");
}

#[test]
fn unnamed_runs_share_one_line_of_the_list() {
    let home = Home::answering();
    for _ in 0..2 {
        home.run(&["go"]).go().expect(0);
    }
    home.run(&["--ephemeral", "go"]).go().expect(0);
    let text = home.sessions(&["list"]).expect(0).text();
    assert!(text.starts_with("2 unnamed runs, "), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    let all = home.sessions(&["list", "--all"]).expect(0).text();
    assert_eq!(all.lines().count(), 3, "{all}");
    assert_eq!(home.ids().len(), 2);
    // A continued run is listed as a session.
    home.run(&["-c", "go"]).go().expect(0);
    let text = home.sessions(&["list"]).expect(0).text();
    assert!(
        text.contains("\nrun-") && text.contains("\n1 unnamed run"),
        "{text}"
    );
}

#[test]
fn running_conversation_can_be_shown() {
    let home = Home::new(&json!([[
        tool(
            "t",
            &json!({"name": "bash", "title": "List files", "status": "in_progress", "rawInput": {}})
        ),
        tool_change("t", &json!({"status": "failed", "rawOutput": "no disk"})),
        say("line one\nline two"),
        end("end_turn"),
    ]]));
    home.run(&["--session", "mine", "what?\nnow"])
        .go()
        .expect(0);
    let running = home.busy("mine");
    let shown = home.sessions(&["show", "mine"]).expect(0).text();
    let parts = [
        "session    mine\n",
        "\n> what?\n> now\n",
        "\n[bash] List files: failed: ",
        "\nline one\nline two\n",
        "\n> go\n",
        "\n--- the agent does not remember",
        "\nbegun\n",
    ];
    let mut rest = shown.as_str();
    for part in parts {
        let (_, after) = rest
            .split_once(part)
            .unwrap_or_else(|| panic!("{part:?}: {shown}"));
        rest = after;
    }
    stop(running);
    let missing = home.sessions(&["show", "other"]).expect(1);
    assert!(
        missing.stderr.contains("sessions list"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_session_is_exported_as_messages_chunks_and_log() {
    let home = Home::answering();
    let told = home.run(&["--session", "mine", "-o", "chunks", "one"]);
    let told = told.go().expect(0).chunks();
    home.run(&["--session", "mine", "two"]).go().expect(0);
    let log = home.sessions(&["export", "mine", "-o", "log"]).expect(0);
    assert_eq!(log.stdout, fs::read(home.log("mine")).unwrap());
    let messages = home.sessions(&["export", "mine"]).expect(0).json_text();
    let roles: Vec<&Value> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    assert_eq!(messages[0]["parts"][0]["text"], "one");
    let entries = home.sessions(&["export", "mine", "-o", "chunks"]).expect(0);
    let entries: Vec<Value> = entries
        .text()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let seqs: Vec<u64> = entries.iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let chunks: Vec<Value> = entries.iter().map(|e| e["chunk"].clone()).collect();
    assert_eq!(chunks[..told.len()], told[..]);

    // An incomplete last line is left out; long lines before it are all exported.
    let mut grown = fs::read(home.log("mine")).unwrap();
    let line = json!({"record": "note", "text": "x".repeat(600_000)}).to_string() + "\n";
    grown.extend_from_slice(line.repeat(3).as_bytes());
    fs::write(home.log("mine"), [&grown[..], b"{\"record\":\"ch"].concat()).unwrap();
    let log = home.sessions(&["export", "mine", "-o", "log"]).expect(0);
    assert!(log.stdout == grown);
    home.store("empty", OLD);
    let chunks = home.sessions(&["export", "empty", "-o", "chunks"]);
    assert_eq!(chunks.expect(0).text(), "");
    home.sessions(&["export", "missing"]).expect(1);
}

#[test]
fn closed_stdout_does_not_fail_export() {
    let home = Home::answering();
    home.store("mine", OLD);
    let log = fs::read_to_string(home.log("mine")).unwrap();
    let line = json!({"record": "note", "text": "x".repeat(600_000)});
    fs::write(home.log("mine"), format!("{log}{line}\n")).unwrap();
    let run = home.acpipe(&["sessions", "export", "mine", "-o", "log"]);
    let mut running = run.start();
    drop(running.stdout.take());
    assert_eq!(running.end().expect(0).stderr, "");
}

#[test]
fn sessions_are_deleted_but_for_those_in_use() {
    let home = Home::answering();
    for id in ["a", "b", "c"] {
        home.store(id, OLD);
    }
    let running = home.busy("mine");
    let locked = home.sessions(&["delete", "mine", "a"]).expect(75);
    assert!(
        locked.stderr.contains("another process"),
        "{}",
        locked.stderr
    );
    assert_eq!(home.ids(), ["mine", "c", "b"]);
    let unknown = home.sessions(&["delete", "unknown", "b"]).expect(1);
    assert!(unknown.stderr.contains("unknown"), "{}", unknown.stderr);
    home.sessions(&["delete", "--archive", "c"]).expect(0);
    assert_eq!(home.ids(), ["mine"]);
    assert_eq!(
        fs::read_dir(home.state().join("archive")).unwrap().count(),
        1
    );
    stop(running);
    home.sessions(&["delete", "mine"]).expect(0);
    assert_eq!(
        fs::read_dir(home.state().join("sessions")).unwrap().count(),
        0
    );
    home.sessions(&["delete"]).expect(2);
}

#[test]
fn gc_removes_old_sessions_and_leftovers() {
    let home = Home::answering();
    home.run(&["--session", "new", "one"]).go().expect(0);
    home.store("old", OLD);
    home.store("used", OLD);
    // Like a program that has the session open and has written nothing for long.
    let used = fs::File::open(home.log("used")).unwrap();
    used.try_lock().unwrap();
    fs::write(home.state().join("sessions/used.new"), "").unwrap();
    let file = |name: &str| {
        let path = home.state().join(name);
        fs::write(&path, "").unwrap();
        path
    };
    let left = [
        "sessions/gone.json",
        "sessions/gone.index",
        "sessions/new.index-new",
        "sessions/new.card",
        "sessions/old.new",
        "sessions/empty.jsonl",
        "archive/a.1577872800000.jsonl",
    ]
    .map(file);
    let kept = [
        "archive/a.9577872800000.jsonl",
        "archive/mine.jsonl",
        "sessions/note.txt",
    ]
    .map(file);
    let dry = home.sessions(&["gc", "--dry-run"]).expect(0).text();
    assert!(
        dry.lines().count() == 8 && dry.starts_with("would remove old,"),
        "{dry}"
    );
    assert!(left.iter().all(|path| path.exists()), "{dry}");
    let done = home.sessions(&["gc"]).expect(0);
    assert_eq!(done.text(), dry.replace("would remove", "removed"));
    assert!(done.stderr.contains("\"used\""), "{}", done.stderr);
    assert!(!left.iter().any(|path| path.exists()), "{left:?}");
    assert!(kept.iter().all(|path| path.exists()), "{kept:?}");
    assert!(home.state().join("sessions/used.new").exists());
    used.unlock().unwrap();
    let rest = home.sessions(&["gc"]).expect(0).text();
    assert!(
        rest.starts_with("removed used,") && rest.lines().count() == 2,
        "{rest}"
    );
    assert_eq!(home.ids(), ["new"]);
    let all = home.sessions(&["gc", "--older-than", "0s"]).expect(0);
    assert_eq!(all.text().lines().count(), 1);
    assert!(home.ids().is_empty());
    let nothing = home.sessions(&["gc"]).expect(0);
    assert!(nothing.stderr.contains("nothing"), "{}", nothing.stderr);
    home.sessions(&["gc", "--older-than", "30"]).expect(2);
}

trait JsonText {
    /// Parses output of JSON in several lines.
    fn json_text(&self) -> Value;
}

impl JsonText for Outcome {
    fn json_text(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap_or_else(|e| panic!("{e}: {}", self.show()))
    }
}
