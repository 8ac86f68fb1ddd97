//! Drives a hub as the loop does, with a simulated clock, and checks its invariants after every step.

mod client;
mod effects;
mod ending;
mod input;
mod joining;
mod process;
mod time;

use super::agent::LineEffect;
use super::client_calls;
use super::clients::Clients;
use super::dice::Dice;
use super::disk::Disk;
use super::host::Host;
use acpipe_core::client::Command;
use acpipe_core::client_request::ClientRequestId;
use acpipe_core::hub::{AgentInput, Hub, HubCx, OnLost};
use acpipe_core::testing::SettingsBuilder;
use acpipe_model::host::HostServices;
use acpipe_model::limits::Timeout;
use acpipe_policy::Mode;
use acpipe_protocol::wire::{Protocol, Variables};
use process::{Backlog, Process, ProcessOutput};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The simulated world.
pub struct World {
    pub dice: Dice,
    hub: Hub,
    pub clients: Clients,
    disk: Disk,
    now: Instant,
    processes: BTreeMap<u64, Process>,
    host: Host,
    /// Input that the hub did not take, by process.
    backlog: BTreeMap<u64, Backlog>,
    read_paused_since: Option<Instant>,
    finished: bool,
    /// Whether the disk may fail now.
    disk_fails: bool,
    /// Client requests that a client has answered.
    answered: BTreeSet<ClientRequestId>,
    /// Content of every history of the CLI; empty for random histories.
    history: Vec<AgentInput>,
    /// Maximal number of live sessions.
    max_sessions: Option<usize>,
    tokens: u64,
    turns: u64,
    /// Number of steps so far.
    pub steps: u64,
    /// Number of processes that were started.
    pub spawned: u64,
    /// Whether it prints every event.
    verbose: bool,
}

/// Number of rounds after which a loop counts as endless.
const MAX_ROUNDS: usize = 2000;

impl World {
    /// Returns a world with random settings.
    #[must_use]
    pub fn any(mut dice: Dice) -> Self {
        let protocol = match dice.below(5) {
            0..=2 => Protocol::Acp,
            _ => Protocol::Claude,
        };
        let profile = match dice.below(10) {
            0 => 6,
            1 => 5,
            _ => 7,
        };
        let mut world = Self::new(dice, protocol, profile);
        // Most worlds have three agents.
        for other in client_calls::AGENTS {
            if world.dice.percent(80) {
                world.ask("connect", client_calls::connect(other));
                world.settle();
            }
        }
        // Most worlds have three clients.
        if world.dice.percent(60) {
            world.client_joins();
            world.client_joins();
        }
        if world.dice.percent(5) {
            let p = serde_json::from_str(r#"{"chunks":false}"#).unwrap();
            world.ask("subscribe", Command::Subscribe(p));
            world.clients.first().sees_all = false;
        }
        world
    }

    fn new(mut dice: Dice, protocol: Protocol, profile: u8) -> Self {
        let now = Instant::now();
        let mut inherited = Variables::default();
        let home = Some("/home".to_owned());
        inherited.0.insert("HOME".to_owned(), home);
        // The order of these calls is the order of the dice: recorded seeds depend on it.
        let settings = SettingsBuilder::new(now)
            .protocol(protocol)
            .child_per_session(dice.percent(20))
            .policy(dice.pick(&[Mode::Approve, Mode::Ask, Mode::Reads, Mode::Deny]))
            .id_prefix("x")
            .idle_after(dice.percent(60).then_some(Duration::from_secs(60)))
            .max_sessions(dice.pick(&[None, None, None, Some(1), Some(2), Some(3)]))
            .inherited(inherited)
            .on_lost(OnLost {
                clear: dice.percent(20),
                reinject: dice.below(3) * 50,
            })
            .build();
        let mut settings = settings;
        // Without this limit a slow disk that never fails loses nothing.
        settings.limits.set(Timeout::Store, None);
        let max_sessions = settings.max_sessions;
        let served = HostServices {
            read_files: dice.percent(50),
            write_files: dice.percent(50),
            terminals: dice.percent(50),
        };
        let seed = dice.roll();
        let disk = Disk::new(seed, BTreeMap::new());
        disk.set_slow(if seed % 4 == 1 { 30 } else { 0 });
        let mut world = Self {
            dice,
            hub: Hub::new(settings, Box::new(disk.clone())).serving(served),
            clients: Clients::default(),
            disk,
            now,
            processes: BTreeMap::new(),
            host: Host::default(),
            backlog: BTreeMap::new(),
            read_paused_since: None,
            finished: false,
            disk_fails: false,
            answered: BTreeSet::new(),
            history: Vec::new(),
            max_sessions,
            tokens: 0,
            turns: 0,
            steps: 0,
            spawned: 0,
            verbose: std::env::var_os("TRACE").is_some(),
        };
        world.connect_client(profile);
        world
    }

    /// Returns a world with the session `default`, whose prompt the agent has just received.
    #[must_use]
    pub fn in_a_turn(protocol: Protocol) -> Self {
        let mut world = Self::new(Dice::of(&[]), protocol, 7);
        let ensure = serde_json::from_str("{}").unwrap();
        world.ask("ensure", Command::Ensure(ensure));
        let prompt = serde_json::from_str(r#"{"message":"do it"}"#).unwrap();
        world.ask("prompt", Command::Prompt(prompt));
        for _ in 0..4 {
            world.deliver_all();
            for process in world.processes.values_mut() {
                process.answer_all(&mut world.dice, false);
            }
        }
        let mut processes = world.processes.values();
        assert!(processes.any(Process::is_prompted), "no turn");
        world
    }

    /// Returns a world that restores a session of the CLI with this history.
    #[must_use]
    pub fn with_history(said: Vec<AgentInput>) -> Self {
        let mut world = Self::new(Dice::of(&[]), Protocol::Claude, 7);
        world.history = said;
        let ensure = r#"{"agentSessionId":"s","strategy":"load"}"#;
        let ensure = serde_json::from_str(ensure).unwrap();
        world.ask("ensure", Command::Ensure(ensure));
        world
    }

    /// Delivers this input of the agent, whatever it is.
    pub fn feed(&mut self, input: AgentInput) {
        let mut processes = self.processes.iter_mut().rev();
        let Some((id, process)) = processes.find(|(_, process)| process.lives) else {
            return;
        };
        if let Some(ledger) = process.agent.ledger() {
            ledger.given(&LineEffect::Wild);
        }
        process.said.push_back(ProcessOutput::Event(input));
        let id = *id;
        self.deliver(id, 1);
        self.drain();
        self.settle();
    }

    /// Runs one random step.
    pub fn step(&mut self) {
        self.steps += 1;
        match self.dice.below(100) {
            0..=37 => {
                for _ in 0..=self.dice.below(3) {
                    let many = 1 + self.dice.below(4);
                    if let Some(id) = self.process_with_output() {
                        self.deliver(id, many);
                    }
                }
                self.drain();
            }
            38..=67 => self.agent_acts(),
            68..=81 => self.client_calls(),
            82 | 83 => self.client_answers(),
            84 => self.host_acts(),
            85..=90 => self.time_passes(),
            91..=95 => _ = self.sync(),
            96 => {
                let percent = self.dice.pick(&[0, 0, 0, 10, 100]);
                self.disk.fail(percent);
                self.disk_fails = percent > 0;
                for client in self.clients.iter_mut() {
                    client.disk_fails = percent > 0;
                    client.disk_failed |= percent > 0;
                }
            }
            97 => self.process_fails(),
            98 if self.clients.were_several() && self.dice.percent(50) => {
                if self.clients.len() < 3 {
                    self.client_joins();
                } else {
                    self.client_leaves();
                }
            }
            _ => {
                let (room, some) = (self.dice.below(4), self.dice.percent(50));
                let id = self.clients.any(&mut self.dice);
                let client = self.clients.get(id);
                // The client reads everything, or a few chunks.
                let reads_all = client.room.is_some() && some;
                client.room = (!reads_all).then_some(room);
            }
        }
        self.settle();
        self.check();
    }

    fn any_process(&mut self) -> Option<u64> {
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        (!ids.is_empty()).then(|| self.dice.pick(&ids))
    }

    fn sync(&mut self) -> bool {
        let Some(event) = self.disk.sync_next() else {
            return false;
        };
        self.hub
            .stored(event, &mut HubCx::new(self.now, &mut self.clients));
        true
    }

    /// Prints an event, for a person who looks for a bug.
    fn trace(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            eprintln!("{} {}", self.steps, what());
        }
    }

    fn check(&mut self) {
        // A client request may wait until the client has read, or until the disk answers.
        if !self.backlog.is_empty() || self.clients.is_some_full() || self.disk.is_awaited() {
            return;
        }
        let ledgers = self
            .processes
            .values_mut()
            .filter(|process| !process.is_stopping);
        let ledgers = ledgers.filter_map(|process| process.agent.ledger());
        let unanswered: usize = ledgers.map(|ledger| ledger.unanswered()).sum();
        let open_requests = self.clients.open_requests().len();
        assert!(
            unanswered <= open_requests || self.host.is_busy(),
            "{unanswered} questions are not answered, and {open_requests} asked"
        );
        let is_stopping = self.processes.values().any(|process| process.is_stopping);
        assert!(
            open_requests <= unanswered || is_stopping,
            "{open_requests} requests are open, and agents wait for {unanswered}"
        );
        for client in self.clients.iter() {
            let others = &client.decided_by_others;
            let unanswered = others.iter().find(|ask| !self.answered.contains(ask));
            assert_eq!(unanswered, None, "no other client has answered it");
        }
    }
}
