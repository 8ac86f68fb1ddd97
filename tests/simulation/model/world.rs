//! Drives a bridge as the loop does, in a time of its own, and holds it to its word at every step.

use super::acp::Acp;
use super::agent::{Ledger, Line, Mark};
use super::asks;
use super::claude::Claude;
use super::client::{Asked, Client};
use super::dice::Dice;
use super::disk::Disk;
use super::host::Host;
use super::{files, logs};
use acpipe::core::ask::{AskId, Refusal};
use acpipe::core::bridge::{AgentId, AgentInput, AgentSpec, Bridge, Effect, Exit, Measure, OnLost};
use acpipe::core::client::{Command, Token};
use acpipe::core::error::{Error, ErrorKind};
use acpipe::core::host::Offer;
use acpipe::core::policy::Mode;
use acpipe::core::running_clock::RunningClock;
use acpipe::core::vitals::Vitals;
use acpipe::proto::frame::{Batch, Overlong, lines};
use acpipe::proto::wire::{FoundBy, Program, Protocol, Variables};
use acpipe::testing::SettingsBuilder;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// What a process is.
enum Agent {
    Acp(Box<Acp>),
    Claude(Box<Claude>),
    /// Something that says what it says, and ends.
    Plain,
}

impl Agent {
    fn ledger(&mut self) -> Option<&mut Ledger> {
        match self {
            Self::Acp(acp) => Some(&mut acp.ledger),
            Self::Claude(claude) => Some(&mut claude.ledger),
            Self::Plain => None,
        }
    }
}

/// What a process said, on its way to the bridge.
enum Said {
    Line(Line),
    Event(AgentInput),
}

struct Process {
    agent: Agent,
    said: VecDeque<Said>,
    lives: bool,
    /// Whether it was told to end, or its pipes are closed: questions of it need no answer.
    leaves: bool,
    /// Whether it ends when it is told to: at which step.
    obeys: usize,
}

impl Process {
    fn is_prompted(&self) -> bool {
        match &self.agent {
            Agent::Acp(acp) => acp.is_prompted(),
            Agent::Claude(claude) => claude.is_prompted(),
            Agent::Plain => false,
        }
    }

    /// Answers what is left, well, prompts too if it `ends_turns`; false where nothing is.
    fn answer_all(&mut self, dice: &mut Dice, ends_turns: bool) -> bool {
        if !self.lives || (self.is_prompted() && !ends_turns) {
            return false;
        }
        let lines = match &mut self.agent {
            Agent::Acp(acp) => acp.answer_all(dice),
            Agent::Claude(claude) => claude.answer_all(),
            Agent::Plain => Vec::new(),
        };
        let some = !lines.is_empty();
        self.said.extend(lines.into_iter().map(Said::Line));
        some
    }
}

/// What the bridge did not take because the client has to read first.
struct Backlog {
    from: u64,
    rest: AgentInput,
    marks: Vec<Mark>,
}

/// All of it.
pub struct World {
    pub dice: Dice,
    bridge: Bridge,
    pub client: Client,
    disk: Disk,
    now: Instant,
    processes: BTreeMap<u64, Process>,
    host: Host,
    backlog: Option<Backlog>,
    deaf_since: Option<Instant>,
    finished: bool,
    /// What is in every history of the CLI's, unless the dice tell.
    history: Vec<AgentInput>,
    /// How many sessions may be live at most.
    max_sessions: Option<usize>,
    tokens: u64,
    turns: u64,
    /// How many steps were made.
    pub steps: u64,
    /// Processes that were started.
    pub spawned: u64,
    /// Whether it tells what happens.
    loud: bool,
}

/// How often something may go on until it has to be over.
const ENOUGH: usize = 2000;

impl World {
    /// A world in which everything is left to the dice.
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
        if world.dice.percent(5) {
            let p = serde_json::from_str(r#"{"chunks":false}"#).unwrap();
            world.ask("subscribe", Command::Subscribe(p));
            world.client.sees_all = false;
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
        let max_sessions = settings.max_sessions;
        let served = Offer {
            read_files: dice.percent(50),
            write_files: dice.percent(50),
            terminals: dice.percent(50),
        };
        let disk = Disk::new(dice.roll(), BTreeMap::new());
        let mut world = Self {
            dice,
            bridge: Bridge::new(settings, Box::new(disk.clone())).serving(served),
            client: Client::default(),
            disk,
            now,
            processes: BTreeMap::new(),
            host: Host::default(),
            backlog: None,
            deaf_since: None,
            finished: false,
            history: Vec::new(),
            max_sessions,
            tokens: 0,
            turns: 0,
            steps: 0,
            spawned: 0,
            loud: std::env::var_os("TRACE").is_some(),
        };
        let answers = world.dice.percent(70);
        world.client.answers = answers;
        let hosts = world.dice.percent(30);
        world.client.serves = hosts;
        let can = format!(
            r#"{{"permissions":{answers},"questions":{answers},"fs":{{"readTextFile":{hosts}}},"terminal":{hosts}}}"#
        );
        let hello =
            format!(r#"{{"protocolVersion":1,"chunkProfile":{profile},"capabilities":{can}}}"#);
        let hello = serde_json::from_str(&hello).unwrap();
        world.client.loud = world.loud;
        world.ask("initialize", Command::Initialize(hello));
        world.client.sees_all = profile == 7;
        world.settle();
        world
    }

    /// A world with one session, `default`, whose prompt the agent has just got.
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

    /// A world in which a session of the CLI is brought back, with this history.
    #[must_use]
    pub fn with_history(said: Vec<AgentInput>) -> Self {
        let mut world = Self::new(Dice::of(&[]), Protocol::Claude, 7);
        world.history = said;
        let ensure = r#"{"agentSessionId":"s","strategy":"load"}"#;
        let ensure = serde_json::from_str(ensure).unwrap();
        world.ask("ensure", Command::Ensure(ensure));
        world
    }

    /// The agent says this, whatever it is.
    pub fn feed(&mut self, input: AgentInput) {
        let mut processes = self.processes.iter_mut().rev();
        let Some((id, process)) = processes.find(|(_, process)| process.lives) else {
            return;
        };
        if let Some(ledger) = process.agent.ledger() {
            ledger.given(&Mark::Wild);
        }
        process.said.push_back(Said::Event(input));
        let id = *id;
        self.deliver(id, 1);
        self.drain();
        self.settle();
    }

    /// Something happens.
    pub fn step(&mut self) {
        self.steps += 1;
        match self.dice.below(100) {
            0..=37 => {
                for _ in 0..=self.dice.below(3) {
                    let many = 1 + self.dice.below(4);
                    if let Some(id) = self.talker() {
                        self.deliver(id, many);
                    }
                }
                self.drain();
            }
            38..=67 => self.agent_acts(),
            68..=81 => self.client_asks(),
            82 | 83 => self.client_answers(),
            84 => self.host_acts(),
            85..=90 => self.time_passes(),
            91..=95 => _ = self.sync(),
            96 => {
                let percent = self.dice.pick(&[0, 0, 0, 10, 100]);
                self.disk.fail(percent);
                self.client.disk_fails = percent > 0;
                self.client.disk_failed |= percent > 0;
            }
            97 => self.process_fails(),
            _ => {
                let room = self.dice.below(4);
                self.client.room = (self.client.room.is_none()).then_some(room);
            }
        }
        self.settle();
        self.check();
    }

    fn any_process(&mut self) -> Option<u64> {
        let ids: Vec<u64> = self.processes.keys().copied().collect();
        (!ids.is_empty()).then(|| self.dice.pick(&ids))
    }

    /// A process that has something to say.
    fn talker(&mut self) -> Option<u64> {
        let talks = self.processes.iter().filter(|(_, p)| !p.said.is_empty());
        let ids: Vec<u64> = talks.map(|(id, _)| *id).collect();
        (!ids.is_empty()).then(|| self.dice.pick(&ids))
    }

    fn agent_acts(&mut self) {
        let Some(id) = self.any_process() else { return };
        let dice = &mut self.dice;
        let Some(process) = self.processes.get_mut(&id).filter(|p| p.lives) else {
            return;
        };
        let lines = match &mut process.agent {
            Agent::Acp(acp) => acp.act(dice),
            Agent::Claude(claude) => claude.act(dice),
            Agent::Plain => Vec::new(),
        };
        process.said.extend(lines.into_iter().map(Said::Line));
    }

    fn client_asks(&mut self) {
        let ask = asks::any(&mut self.dice, &mut self.turns);
        self.client.again.extend(ask.again);
        self.give(ask.command, ask.asked);
    }

    /// What is served goes on.
    fn host_acts(&mut self) {
        self.host.act(&mut self.dice);
        for _ in 0..=self.dice.below(3) {
            if let Some(event) = self.host.next() {
                self.tell(|| format!("{event:?}"));
                self.bridge.wake(self.now);
                self.bridge.hosted(event, self.now, &mut self.client);
            }
        }
    }

    /// All that is served comes to its end.
    fn host_ends(&mut self) {
        self.host.end_all();
        while let Some(event) = self.host.next() {
            self.bridge.wake(self.now);
            self.bridge.hosted(event, self.now, &mut self.client);
            self.settle();
            self.host.end_all();
        }
    }

    /// The client answers what it was asked, or what is decided long since.
    fn client_answers(&mut self) {
        let open: Vec<AskId> = self.client.asks.iter().copied().collect();
        let decided = &self.client.decided;
        let late = open.is_empty() || self.dice.percent(20);
        let from = if late { decided } else { &open };
        if from.is_empty() {
            return;
        }
        let ask = self.dice.pick(from);
        let answer = self.dice.pick(&[
            r#"{"outcome":{"outcome":"selected","optionId":"y"}}"#,
            r#"{"outcome":{"outcome":"selected","optionId":"n","message":"no"}}"#,
            r#"{"outcome":{"outcome":"selected","optionId":"allow"}}"#,
            r#"{"outcome":{"outcome":"cancelled"}}"#,
            r#"{"action":"accept","content":{"a":"b"}}"#,
            r#"{"action":"decline"}"#,
            r#"{"content":"x"}"#,
            r#"{"terminalId":"own"}"#,
            r#"{"output":"o","truncated":false}"#,
            "{}",
            "null",
        ]);
        let answer = if self.dice.percent(10) {
            Err(Refusal {
                code: -32603,
                message: "went wrong".to_owned(),
            })
        } else {
            Ok(RawValue::from_string(answer.to_owned()).unwrap())
        };
        self.tell(|| format!("{ask:?} is answered {answer:?}"));
        if self.client.asks.remove(&ask) {
            self.client.decided.push(ask);
        }
        self.bridge.wake(self.now);
        self.bridge
            .client_answered(ask, &answer, self.now, &mut self.client);
    }

    fn ask(&mut self, what: &'static str, command: Command) {
        let session = "default".to_owned();
        self.give(command, Asked { what, session });
    }

    fn give(&mut self, command: Command, asked: Asked) {
        self.tokens += 1;
        self.client.waiting.insert(self.tokens, asked);
        let token = Token(self.tokens);
        self.tell(|| format!("{token:?} {command:?}"));
        self.bridge.wake(self.now);
        self.bridge
            .command(token, command, self.now, &mut self.client);
    }

    fn process_fails(&mut self) {
        let Some(id) = self.any_process() else { return };
        let how = self.dice.below(8);
        let code = Some(i32::try_from(self.dice.below(3)).unwrap());
        let Some(process) = self.processes.get_mut(&id).filter(|p| p.lives) else {
            return;
        };
        if matches!(process.agent, Agent::Plain) && how != 0 {
            return;
        }
        let input = match how {
            0..=3 => {
                process.lives = false;
                let exit = Exit {
                    code,
                    ..Exit::default()
                };
                AgentInput::Exited(exit)
            }
            4 => AgentInput::OutputClosed,
            5 => AgentInput::InputClosed,
            6 => AgentInput::InputStuck,
            _ => {
                let head: &[u8] = self.dice.pick(&[
                    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",".as_slice(),
                    b"{\"type\":\"control_request\",\"request_id\":\"long\",",
                    b"{\"type\":\"assistant\",",
                    b"xxxxxx",
                ]);
                AgentInput::Batch(Batch::TooLong(Overlong {
                    len: 1 << 30,
                    head: head.to_vec().into(),
                    tail: b"xxx}".as_slice().into(),
                }))
            }
        };
        process.leaves |= !matches!(input, AgentInput::Batch(_));
        process.said.push_back(Said::Event(input));
    }

    /// Whether the loop listens to agents.
    fn is_deaf(&self) -> bool {
        acpipe::core::client::Outlet::is_full(&self.client) || self.backlog.is_some()
    }

    /// The bridge hears of a process: one thing, or a batch of at most so many lines.
    fn deliver(&mut self, id: u64, many: usize) {
        if self.is_deaf() {
            return;
        }
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        let mut text = Vec::new();
        let mut marks = Vec::new();
        while marks.len() < many && matches!(process.said.front(), Some(Said::Line(_))) {
            let Some(Said::Line(line)) = process.said.pop_front() else {
                break;
            };
            text.extend(line.text);
            text.push(b'\n');
            if let Some(ledger) = process.agent.ledger() {
                ledger.given(&line.mark);
            }
            marks.push(line.mark);
        }
        let input = if marks.is_empty() {
            match process.said.pop_front() {
                Some(Said::Event(input)) => input,
                _ => return,
            }
        } else {
            AgentInput::Batch(Batch::Lines(text.into()))
        };
        self.hear(id, input, marks);
    }

    fn hear(&mut self, from: u64, input: AgentInput, marks: Vec<Mark>) {
        let over = matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_));
        self.tell(|| format!("process {from} says {input:?}"));
        self.bridge.wake(self.now);
        let rest = self
            .bridge
            .agent(AgentId(from), input, self.now, &mut self.client);
        if over {
            assert!(rest.is_none(), "an end was not taken");
            self.processes.remove(&from);
        }
        let left = match &rest {
            Some(AgentInput::Batch(Batch::Lines(left))) => lines(left).count(),
            Some(other) => panic!("{other:?} was not taken"),
            None => 0,
        };
        let mut marks = marks;
        let unread = marks.split_off(marks.len().saturating_sub(left));
        if let Some(process) = self.processes.get_mut(&from)
            && let Some(ledger) = process.agent.ledger()
        {
            for mark in &marks {
                ledger.read(mark);
            }
        }
        if let Some(rest) = rest {
            assert!(
                self.is_deaf(),
                "something was not taken though there is room"
            );
            let marks = unread;
            self.backlog = Some(Backlog { from, rest, marks });
        }
        self.hand_over();
    }

    /// The client reads again, as far as it has room.
    fn hear_backlog(&mut self) {
        if acpipe::core::client::Outlet::is_full(&self.client) {
            self.deaf_since.get_or_insert(self.now);
            return;
        }
        if let Some(since) = self.deaf_since.take() {
            self.bridge.postpone(self.now - since);
        }
        if let Some(Backlog { from, rest, marks }) = self.backlog.take() {
            self.hear(from, rest, marks);
            self.drain();
        }
    }

    fn drain(&mut self) {
        self.bridge
            .drained(self.backlog.is_none(), self.now, &mut self.client);
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.bridge.commit(self.now, &mut self.client);
        self.client.hand_over();
    }

    /// acpipe does not run for a while: what was said meanwhile is heard before anything is given up, and no time has
    /// passed but that for which the loop wanted to sleep.
    fn pause(&mut self) {
        let due = self.bridge.deadline().map(|(at, _)| at);
        let mut clock = RunningClock::new(self.now);
        let Some(wake) = clock.sleep(due) else { return };
        let by = self.dice.pick(&[200, 1_000, 61_000, 3_600_000]);
        let real = wake.max(self.now) + Duration::from_millis(by);
        self.tell(|| format!("acpipe does not run for {by} ms"));
        assert!(clock.woke(real).is_some(), "the pause is not noticed");
        assert!(clock.now() <= wake.max(self.now), "the pause counts");
        self.now = clock.now();
        let due = self.bridge.deadline();
        let acted_on = due.filter(|(at, _)| clock.is_due(*at, real));
        assert_eq!(acted_on, None, "it is given up before what waits is read");
        while !self.is_deaf()
            && let Some(id) = self.talker()
        {
            self.deliver(id, usize::MAX);
            self.drain();
            self.settle();
        }
        self.tick();
    }

    fn time_passes(&mut self) {
        let full = acpipe::core::client::Outlet::is_full(&self.client);
        if !full && self.dice.percent(5) {
            self.pause();
            return;
        }
        let due = self.bridge.deadline().map(|(at, _)| at);
        let by = self
            .dice
            .pick(&[1, 20, 60, 300, 2_000, 11_000, 61_000, 130_000]);
        let later = self.now + Duration::from_millis(by);
        self.now = match due {
            Some(at) if self.dice.percent(70) => at.max(self.now),
            _ => later,
        };
        self.tick();
    }

    /// Whatever is due is done.
    fn tick(&mut self) {
        let due = |bridge: &Bridge, now| bridge.deadline().filter(|(at, _)| *at <= now);
        if due(&self.bridge, self.now).is_none() {
            return;
        }
        if acpipe::core::client::Outlet::is_full(&self.client) && !self.bridge.is_stopping() {
            return;
        }
        if self.dice.percent(70) {
            self.drain();
        }
        self.tell(|| format!("it is time: {:?}", due(&self.bridge, self.now)));
        self.bridge.wake(self.now);
        self.bridge.tick(self.now, &mut self.client);
        self.settle();
        if let Some((at, what)) = due(&self.bridge, self.now) {
            panic!("{what} is due since {:?}, after the tick", self.now - at);
        }
    }

    fn sync(&mut self) -> bool {
        let Some(event) = self.disk.sync_next() else {
            return false;
        };
        self.bridge.stored(event, self.now, &mut self.client);
        true
    }

    /// Does everything that follows from what happened.
    pub fn settle(&mut self) {
        self.hear_backlog();
        self.bridge.retell(&mut self.client);
        while self.bridge.is_reading() {
            self.bridge.read_on(self.now, &mut self.client);
        }
        for _ in 0..ENOUGH {
            let effects = self.bridge.effects(self.now);
            if effects.is_empty() {
                self.hand_over();
                let processes = self.processes.values_mut();
                processes
                    .filter_map(|p| p.agent.ledger())
                    .for_each(Ledger::settle);
                self.client.settle();
                self.bridge.rest(self.now);
                return;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
        panic!("effects without end");
    }

    /// Says what happens, to whoever looks for a fault.
    fn tell(&self, what: impl FnOnce() -> String) {
        if self.loud {
            eprintln!("{} {}", self.steps, what());
        }
    }

    fn perform(&mut self, effect: Effect) {
        self.tell(|| match &effect {
            Effect::Send(id, lines) => format!("{id:?} gets {}", lines.escape_ascii()),
            other => format!("{other:?}"),
        });
        let over = self.finished && effect != Effect::Finished;
        assert!(!over, "{effect:?} after the end");
        match effect {
            Effect::Spawn(id, spec) => self.spawn(id.0, &spec),
            Effect::ReadFile(id, _) => {
                let said = if self.history.is_empty() {
                    files::history(&mut self.dice)
                } else {
                    self.history.iter().map(files::again).collect()
                };
                self.plain(id.0, said);
            }
            Effect::ListFiles(id, _) => {
                let said = files::list(&mut self.dice);
                self.plain(id.0, said);
            }
            Effect::ResolvePath(id, path) => self.plain(id.0, files::path(&path)),
            Effect::Send(id, lines) => self.send(id.0, &lines),
            Effect::CloseInput(id) => self.told_to_end(id.0, 0),
            Effect::Terminate(id) => self.told_to_end(id.0, 1),
            Effect::Kill(id) => self.told_to_end(id.0, 2),
            Effect::Measure(id) => {
                if let Some(process) = self.processes.get_mut(&id.0) {
                    let measured = AgentInput::Measured(Measure::default());
                    process.said.push_back(Said::Event(measured));
                }
            }
            Effect::Host(effect) => self.host.perform(effect, &mut self.dice),
            Effect::Watch(_) => {}
            Effect::Finished => {
                assert!(self.bridge.is_ending(), "it ended though nobody wished it");
                self.finished = true;
            }
        }
    }

    fn spawn(&mut self, id: u64, spec: &AgentSpec) {
        self.spawned += 1;
        let dice = &mut self.dice;
        if dice.percent(3) {
            let error = Error::new(ErrorKind::AgentNotFound, "there is no such program");
            self.plain(id, vec![AgentInput::StartFailed(error)]);
            return;
        }
        let started = AgentInput::Started {
            pid: 7,
            program: Box::new(Program {
                file: "/agent".into(),
                real_file: "/agent".into(),
                found_by: FoundBy::GivenPath,
                passed_over: Vec::new(),
                added_path: Vec::new(),
            }),
            vitals: Vitals::default(),
        };
        if spec.args.iter().any(|arg| arg == "--version") {
            let word = dice.pick(&["2.1.330 (Claude Code)\n", "2.0.1\n", "3\n"]);
            let word = if dice.percent(5) { "nonsense\n" } else { word };
            let mut said = vec![started];
            said.extend(files::lines(word.as_bytes().to_vec()));
            self.plain(id, said);
            return;
        }
        let agent = match spec.protocol {
            Protocol::Acp => Agent::Acp(Box::new(Acp::new(id, dice))),
            Protocol::Claude => Agent::Claude(Box::new(Claude::new(&spec.args))),
        };
        self.add(id, agent, vec![started]);
    }

    fn plain(&mut self, id: u64, said: Vec<AgentInput>) {
        self.add(id, Agent::Plain, said);
    }

    fn add(&mut self, id: u64, agent: Agent, said: Vec<AgentInput>) {
        let process = Process {
            lives: !matches!(agent, Agent::Plain),
            agent,
            said: said.into_iter().map(Said::Event).collect(),
            leaves: false,
            obeys: self.dice.pick(&[0, 0, 0, 1, 2]),
        };
        let before = self.processes.insert(id, process);
        assert!(before.is_none(), "the number {id} was given twice");
    }

    fn send(&mut self, id: u64, lines: &[u8]) {
        // One that has ended reads nothing; the bridge will hear of it.
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        assert!(lines.ends_with(b"\n"), "a torn line");
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let message = serde_json::from_slice(line)
                .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(line)));
            match &mut process.agent {
                Agent::Acp(acp) => acp.hear(&message, &self.client),
                Agent::Claude(claude) => claude.hear(&message, &self.client),
                Agent::Plain => {}
            }
        }
    }

    fn told_to_end(&mut self, id: u64, how: usize) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.leaves = true;
            if process.lives && how >= process.obeys {
                process.lives = false;
                let exit = AgentInput::Exited(Exit::default());
                process.said.push_back(Said::Event(exit));
            }
        }
    }

    fn check(&mut self) {
        if self.backlog.is_some() {
            return;
        }
        let ledgers = self
            .processes
            .values_mut()
            .filter(|process| !process.leaves);
        let ledgers = ledgers.filter_map(|process| process.agent.ledger());
        let unanswered: usize = ledgers.map(|ledger| ledger.unanswered()).sum();
        let asks = self.client.asks.len();
        assert!(
            unanswered <= asks || self.host.is_busy(),
            "{unanswered} questions are not answered, and {asks} asked"
        );
    }

    fn deliver_all(&mut self) {
        for _ in 0..ENOUGH {
            self.settle();
            let Some(id) = self.talker() else { return };
            self.deliver(id, usize::MAX);
            self.drain();
        }
        panic!("agents talk without end");
    }

    /// Everything that is wrong stops to be, and all that waits is answered.
    pub fn calm_down(&mut self) {
        self.disk.fail(0);
        self.client.disk_fails = false;
        self.client.room = None;
        for _ in 0..ENOUGH {
            self.deliver_all();
            let mut quiet = true;
            for process in self.processes.values_mut() {
                quiet &= !process.answer_all(&mut self.dice, true);
            }
            self.deliver_all();
            while self.sync() {
                quiet = false;
            }
            self.host_ends();
            while let Some(ask) = self.client.asks.pop_first() {
                self.client.decided.push(ask);
                let answer = Ok(RawValue::NULL.to_owned());
                self.bridge
                    .client_answered(ask, &answer, self.now, &mut self.client);
                self.settle();
                quiet = false;
            }
            self.settle();
            // What can be answered is answered in time.
            if !quiet || self.talker().is_some() {
                continue;
            }
            let Some((at, _)) = self.bridge.deadline() else {
                break;
            };
            self.now = at.max(self.now);
            self.tick();
        }
        let waiting = &self.client.waiting;
        assert!(waiting.is_empty(), "nobody answers {waiting:?}");
        self.ask("status", Command::Status);
        let list = serde_json::from_str("{}").unwrap();
        let list = acpipe::core::client::History::ListSessions(list);
        self.ask("session/list", Command::History(list));
        while self.sync() {}
        self.settle();
        let all = self.client.list.take().expect("a list");
        let opening = |s: &&serde_json::Value| s["state"] == "opening";
        let sessions = all["sessions"].as_array().unwrap();
        assert_eq!(sessions.iter().find(opening), None, "it is left so");
        let live = sessions.iter().filter(|s| s["state"] == "live").count();
        assert!(live <= self.max_sessions.unwrap_or(live), "{live} are live");
    }

    /// The client leaves, and all comes to its end.
    pub fn finish(&mut self) {
        self.client.room = None;
        self.settle();
        self.bridge.client_gone(self.now, &mut self.client);
        for _ in 0..ENOUGH {
            self.deliver_all();
            while self.sync() {}
            self.host_ends();
            self.settle();
            if self.finished {
                break;
            }
            if let Some((at, _)) = self.bridge.deadline() {
                self.now = at.max(self.now);
                self.tick();
            }
        }
        assert!(self.finished, "it does not end");
        let waiting = &self.client.waiting;
        assert!(waiting.is_empty(), "nobody answered {waiting:?}");
        assert_eq!(self.bridge.deadline(), None);
        let lives = self.processes.values().any(|process| process.lives);
        assert!(!lives, "a process is left");
        assert_eq!(
            self.client.asks.first(),
            None,
            "nobody waits for the answer"
        );
        let failed = self.disk.failures() > 0;
        let open = self.client.open_turns().next();
        assert_eq!(open, None, "it did not end");
        for (id, kept) in self.disk.logs() {
            if let Err(why) = logs::check(&kept.bytes, !failed) {
                panic!("the log of {id}: {why}");
            }
        }
    }
}
