//! Requirements on every kind of agent: the same list for ACP agents and for agents of other protocols.
//!
//! Each agent of the list understands the same words: `hello` (answers `hi`), `count` (three pieces), `hang`
//! (says `half` and never ends), `crash` (says `half` and fails), `ask` (asks for permission, if it can).

mod endpoint;
mod subjects;

use crate::harness::server::{Framing, Server, Turn};
use crate::harness::{LIMIT, World, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use subjects::{SUBJECTS, Subject};

/// Server with the configured agent of a subject.
struct Bench {
    server: Server,
    subject: &'static Subject,
    /// Keeps what the agent needs beside its process.
    _guard: subjects::Guard,
}

impl Bench {
    /// Starts acpipe with the agent, whose session `s` is open.
    fn new(subject: &'static Subject) -> Self {
        let world = World::new();
        let (definition, guard) = (subject.begin)(&world);
        world.configure(&format!("[agents.subject]\n{definition}\n"));
        let mut bench = Self {
            server: Server::launch(world, &["--agent", "subject"], Framing::Lines, &[]),
            subject,
            _guard: guard,
        };
        bench.open();
        bench
    }

    /// Initializes acpipe and opens the session; returns the receipt.
    fn open(&mut self) -> Value {
        self.server.waive("agent/state");
        self.server.waive("session/state");
        self.server.call(
            "initialize",
            &json!({"protocolVersion": 1, "capabilities": {"permissions": true}}),
        );
        self.server.ensure("s")["recovery"].clone()
    }

    fn turn(&mut self, text: &str) -> Turn {
        let id = self.server.send_prompt("s", text);
        self.server.turn(&id)
    }

    /// Sends a prompt and waits for the first text of its answer.
    fn begin(&mut self, text: &str) -> crate::harness::server::Id {
        let id = self.server.send_prompt("s", text);
        self.server
            .await_chunk("s", |chunk| chunk["type"] == "text-delta");
        id
    }

    /// Checks that the agent still answers.
    #[track_caller]
    fn answers(&mut self) {
        let turn = self.turn("hello");
        assert_eq!(turn.text(), "hi", "{}", self.subject.name);
        assert_eq!(turn.summary["errors"], json!([]), "{}", self.subject.name);
    }

    /// Checks that a turn failed with this kind and kept the answer before the failure.
    #[track_caller]
    fn failed(&self, turn: &Turn, kinds: &[&str]) {
        let name = self.subject.name;
        assert_eq!(turn.text(), "half", "{name}");
        assert_eq!(turn.summary["text"], "half", "{name}");
        let kind = turn.summary["errors"][0]["kind"].as_str();
        assert!(
            kind.is_some_and(|kind| kinds.contains(&kind)),
            "{name}: {}",
            turn.summary
        );
    }

    fn restart(&mut self, how: fn(Server, &[&str]) -> Server) -> Value {
        let server = std::mem::replace(&mut self.server, Server::start(&["--persist", "never"]));
        let idle = std::mem::replace(&mut self.server, how(server, &["--agent", "subject"]));
        idle.finish();
        self.open()
    }
}

#[test]
fn answer_arrives_in_pieces() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        let turn = bench.turn("count");
        assert_eq!(
            turn.text().split_whitespace().collect::<Vec<_>>(),
            ["1", "2", "3"]
        );
        assert!(
            turn.of("text-delta").len() >= 3,
            "{}: {:?}",
            subject.name,
            turn.types()
        );
        assert_eq!(turn.summary["stopReason"], "end_turn", "{}", subject.name);
        bench.server.finish();
    }
}

#[test]
fn cancelled_turn_keeps_its_answer_and_the_next_one_works() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        let id = bench.begin("hang");
        bench
            .server
            .call("session/cancel", &json!({"sessionId": "s"}));
        let turn = bench.server.turn(&id);
        assert_eq!(turn.text(), "half", "{}", subject.name);
        assert_eq!(turn.summary["stopReason"], "cancelled", "{}", subject.name);
        assert_eq!(turn.last()["type"], "abort", "{}", subject.name);
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn failure_keeps_the_partial_answer_and_the_next_turn_works() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        let turn = bench.turn("crash");
        bench.failed(&turn, &["agentExited", "streaming", "session"]);
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn total_time_limit_ends_the_turn_with_its_partial_answer() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        let prompt = json!({"sessionId": "s", "message": "hang", "timeoutMs": 500});
        let id = bench.server.send("session/prompt", &prompt);
        let turn = bench.server.turn(&id);
        bench.failed(&turn, &["timeout"]);
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn session_is_resumed_with_its_memory_after_a_restart() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        bench.answers();
        let receipt = bench.restart(Server::restart);
        assert_eq!(
            (&receipt["rung"], &receipt["memory"], &receipt["messages"]),
            (&json!("resume"), &json!("kept"), &json!(2)),
            "{}",
            subject.name
        );
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn permission_request_reaches_the_client_and_its_answer_the_agent() {
    for subject in SUBJECTS.iter().filter(|subject| subject.asks) {
        for (allows, want) in [(true, "allowed"), (false, "refused")] {
            let mut bench = Bench::new(subject);
            let id = bench.server.send_prompt("s", "ask");
            let (request, asked) = bench.server.asked("permission/request");
            let kind = if allows { "allow_once" } else { "reject_once" };
            let options = asked["options"].as_array().unwrap().iter();
            let option = options.clone().find(|option| option["kind"] == kind);
            let option = &option.unwrap_or_else(|| panic!("{}: {asked}", subject.name))["optionId"];
            let outcome = json!({"outcome": "selected", "optionId": option});
            bench.server.reply(&request, &json!({ "outcome": outcome }));
            let turn = bench.server.turn(&id);
            assert!(
                turn.text().contains(want),
                "{}: {}",
                subject.name,
                turn.text()
            );
            bench.server.finish();
        }
    }
}

#[test]
fn killed_agent_ends_the_turn_and_the_next_one_works() {
    for subject in SUBJECTS {
        let Some(program) = subject.program else {
            continue;
        };
        let mut bench = Bench::new(subject);
        let id = bench.begin("hang");
        let alive = bench.server.world.alive().into_iter();
        let mut agents = alive
            .filter(|(_, line)| line.contains(program) && !line.starts_with("supervise-agent"));
        let (pid, _) = agents.next().unwrap();
        signal(pid, Signal::KILL);
        let turn = bench.server.turn(&id);
        bench.failed(&turn, &["agentExited"]);
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn killed_acpipe_leaves_no_process_and_the_session_continues() {
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        bench.begin("hang");
        bench.server.kill();
        assert_eq!(bench.server.world.leak(), None, "{}", subject.name);
        let receipt = bench.restart(Server::next);
        assert_eq!(receipt["memory"], "kept", "{}", subject.name);
        // The end of the interrupted turn was written before the client subscribed.
        bench.server.allow_gaps("s");
        bench.answers();
        bench.server.finish();
    }
}

#[test]
fn turns_leave_nothing_behind() {
    const TURNS: usize = 20;
    for subject in SUBJECTS {
        let mut bench = Bench::new(subject);
        for _ in 0..TURNS {
            bench.answers();
        }
        let since = Instant::now();
        // Supervisors of ended commands exit by themselves.
        while bench.server.world.alive().len() > 3 {
            assert!(
                since.elapsed() < LIMIT,
                "{}: {:?}",
                subject.name,
                bench.server.world.alive()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        let session = bench.server.call("session/get", &json!({"sessionId": "s"}));
        assert_eq!(session["messages"], 2 * TURNS, "{}", subject.name);
        bench.server.finish();
    }
}
