//! Client, agent and daemon are killed at any point of a turn with two clients: each client ends with the messages of
//! the log.

use super::Daemon;
use super::client::{Client, folded, logged};
use crate::harness::steps::{end, say, think, tool, tool_change};
use crate::harness::{FAKE_AGENT, World, signal};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Turns of one conversation.
const TURNS: usize = 2;

/// Number of conversations in a test run. `KILLS=500 cargo test --test bridge daemon::kills -- --ignored` has more.
const KILLS: u64 = 6;

/// Process that is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Client,
    Agent,
    Daemon,
}

/// Returns a pseudorandom number, the same for the same seed.
fn scatter(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn script() -> Value {
    let pause = json!({"sleep": 1});
    let words = json!({"repeat": {"times": 12, "steps": [say("word {i} "), pause]}});
    let turn = json!([
        think("let me see"),
        words,
        tool(
            "look",
            &json!({"title": "Look", "status": "in_progress", "rawInput": {"at": 1}})
        ),
        pause,
        tool_change(
            "look",
            &json!({"status": "completed", "rawOutput": "there"})
        ),
        words,
        end("end_turn"),
    ]);
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [turn],
    })
}

/// Client of the conversation that comes back after the end of its connection, with what it has.
struct Window {
    options: Vec<String>,
    chunks: Vec<(u64, Option<String>, Value)>,
    client: Option<Client>,
}

impl Window {
    fn open(daemon: &Daemon, options: &[&str]) -> Self {
        let mut window = Self {
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            chunks: Vec::new(),
            client: None,
        };
        window.connect(daemon);
        window
    }

    fn connect(&mut self, daemon: &Daemon) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.client = Some(daemon.client(&options));
    }

    fn client(&mut self) -> &mut Client {
        self.client.as_mut().expect("the window is connected")
    }

    /// Takes over what has arrived, and closes the connection.
    fn disconnect(&mut self) {
        if let Some(mut client) = self.client.take() {
            self.keep(&mut client);
        }
    }

    fn keep(&mut self, client: &mut Client) {
        for chunk in client.chunks.remove("s").unwrap_or_default() {
            let last = self.last();
            assert!(last <= chunk.0, "chunk {} after chunk {last}", chunk.0);
            self.chunks.push(chunk);
        }
    }

    fn last(&self) -> u64 {
        self.chunks.last().map_or(0, |(seq, ..)| *seq)
    }

    /// Attaches from the last chunk that the window has, and waits until it has all chunks.
    fn catch_up(&mut self) {
        let after = self.last();
        let client = self.client();
        client.call(
            "session/attach",
            &json!({"sessionId": "s", "afterSeq": after}),
        );
        let last = logged(client, "s").last().map_or(0, |(seq, ..)| *seq);
        while after < last && client.last_seq("s") < last {
            client.next("session/chunk");
        }
    }
}

fn prompt(turn: usize) -> Value {
    json!({"sessionId": "s", "message": format!("say {turn}"), "turnId": format!("t{turn}")})
}

fn kill_once(seed: u64) {
    let world = World::new();
    let path = world.script(&script());
    let daemon = Daemon::start_in(world, &[]);
    let options = ["--", FAKE_AGENT, &path];
    let mut first = Window::open(&daemon, &options);
    first.client().ensure("s");
    let mut second = Window::open(&daemon, &[]);
    second
        .client()
        .call("session/attach", &json!({"sessionId": "s", "afterSeq": 0}));

    let victim =
        [Victim::Client, Victim::Agent, Victim::Daemon][usize::try_from(seed % 3).unwrap()];
    let daemon_pid = daemon.pid();
    let agent_pid = daemon
        .world
        .alive()
        .into_iter()
        .find(|(_, line)| line.contains(&path) && !line.contains("supervise-agent"));
    let agent_pid = agent_pid.map_or_else(|| panic!("seed {seed}: no agent"), |(pid, _)| pid);
    let mut calls = Vec::new();
    for turn in 0..TURNS {
        calls.push(first.client().send("session/prompt", &prompt(turn)));
        if turn + 1 < TURNS {
            first.client().next("session/chunk");
        }
    }
    // The seed determines the moment of the kill, not an event.
    thread::sleep(Duration::from_micros(scatter(seed) % 90_000));
    match victim {
        Victim::Client => first.disconnect(),
        Victim::Agent => signal(agent_pid, Signal::KILL),
        Victim::Daemon => {
            signal(daemon_pid, Signal::KILL);
            for window in [&mut first, &mut second] {
                window.client().read_to_end();
                window.disconnect();
            }
            assert_eq!(daemon.world.leak(), None, "seed {seed}");
            daemon.run(&["daemon", "start"], 0);
        }
    }
    for window in [&mut first, &mut second] {
        if window.client.is_none() {
            window.connect(&daemon);
        }
    }
    // Each turn is asked for again by another client: its response comes at its end. A turn that the kill interrupted
    // fails.
    let mut asker = daemon.client(&options);
    if victim != Victim::Agent {
        asker.ensure("s");
    }
    for (turn, call) in calls.into_iter().enumerate() {
        let answer = match victim {
            Victim::Agent => first.client().answer(call),
            Victim::Client | Victim::Daemon => asker.try_call("session/prompt", &prompt(turn)),
        };
        assert!(answer.is_some(), "seed {seed}: the daemon has gone");
    }
    for window in [&mut first, &mut second] {
        window.disconnect();
        window.connect(&daemon);
        window.catch_up();
        window.disconnect();
    }
    let mut reader = daemon.client(&[]);
    let stored = logged(&mut reader, "s");
    let numbers: Vec<u64> = stored.iter().map(|(seq, ..)| *seq).collect();
    assert_eq!(
        numbers,
        (1..=numbers.len() as u64).collect::<Vec<_>>(),
        "seed {seed}"
    );
    let expected = folded(&stored);
    for (name, window) in [("first", &first), ("second", &second)] {
        assert_eq!(
            folded(&window.chunks),
            expected,
            "seed {seed}: {victim:?}, {name} window"
        );
    }
    daemon.stop();
}

#[test]
fn two_clients_end_with_the_messages_of_the_log_whatever_is_killed() {
    for seed in 0..KILLS {
        kill_once(seed);
    }
}

#[test]
#[ignore = "long: KILLS sets the number of kills"]
fn two_clients_survive_many_kills() {
    let kills = std::env::var("KILLS")
        .ok()
        .and_then(|kills| kills.parse().ok());
    for seed in 0..kills.unwrap_or(500) {
        kill_once(seed);
    }
}
