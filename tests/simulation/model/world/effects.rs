//! Effects of the hub, performed in order.

use super::super::acp::Acp;
use super::super::agent::Ledger;
use super::super::claude::Claude;
use super::super::client::Client;
use super::super::files;
use super::process::{Agent, Process, ProcessOutput};
use super::{MAX_ROUNDS, World};
use acpipe_core::hub::{AgentInput, Effect, Exit, HubCx, Measure};
use acpipe_json::frame::Batch;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::transport::{ProcessSpec, Transport};
use acpipe_protocol::wire::{FoundBy, Program, Protocol};

impl World {
    /// Performs everything that follows from the last event.
    pub fn settle(&mut self) {
        self.deliver_backlog();
        self.hub
            .catch_up(&mut HubCx::new(self.now, &mut self.clients));
        self.hub.replay_turns(&mut self.clients);
        while self.hub.is_reading(&mut self.clients) {
            self.hub
                .read_on(&mut HubCx::new(self.now, &mut self.clients));
        }
        for _ in 0..MAX_ROUNDS {
            let effects = self.hub.effects(self.now);
            if effects.is_empty() {
                self.hand_over();
                let processes = self.processes.values_mut();
                processes
                    .filter_map(|p| p.agent.ledger())
                    .for_each(Ledger::settle);
                self.clients.iter_mut().for_each(Client::settle);
                self.hub.rest(self.now);
                return;
            }
            for effect in effects {
                self.perform(effect);
            }
        }
        panic!("effects without end");
    }

    fn perform(&mut self, effect: Effect) {
        self.trace(|| match &effect {
            Effect::Send(id, lines) => format!("{id:?} gets {}", lines.escape_ascii()),
            other => format!("{other:?}"),
        });
        let over = self.finished && effect != Effect::Finished;
        assert!(!over, "{effect:?} after the end");
        match effect {
            Effect::Open(id, transport) => self.open(id.0, &transport),
            Effect::Send(id, lines) => self.send(id.0, &lines),
            Effect::CloseInput(id) => self.request_exit(id.0, 0),
            Effect::Terminate(id) => self.request_exit(id.0, 1),
            Effect::Kill(id) => self.request_exit(id.0, 2),
            Effect::Measure(id) => {
                if let Some(process) = self.processes.get_mut(&id.0) {
                    let measured = AgentInput::Measured(Measure::default());
                    process.said.push_back(ProcessOutput::Event(measured));
                }
            }
            Effect::FindPrograms(ticket, specs) => self.find_programs(ticket, &specs),
            Effect::Host(effect) => self.host.perform(effect, &mut self.dice),
            // No dialect has processes that end by themselves yet, and this hub does not report.
            Effect::FinishInput(_) | Effect::Watch(_) | Effect::Report(_) => {}
            Effect::Finished => {
                assert!(self.hub.is_ending(), "it ended though nobody wished it");
                self.finished = true;
            }
        }
    }

    fn find_programs(&mut self, ticket: u64, specs: &[ProcessSpec]) {
        let program = Program {
            file: "/agent".into(),
            real_file: "/agent".into(),
            found_by: FoundBy::Path,
            passed_over: Vec::new(),
            added_path: Vec::new(),
        };
        // Some programs are not installed.
        let found = (ticket..)
            .zip(specs)
            .map(|(number, _)| (number % 5 != 0).then(|| program.clone()));
        let found = found.collect();
        let now = self.now;
        self.hub
            .programs_found((ticket, found), &mut HubCx::new(now, &mut self.clients));
    }

    fn open(&mut self, id: u64, transport: &Transport) {
        let said = match transport {
            Transport::Process(spec) => return self.spawn(id, spec),
            // The simulation registers no agents of this kind.
            Transport::InProcess(name) => panic!("{name} is not registered"),
            Transport::File(_) if self.history.is_empty() => files::history(&mut self.dice),
            Transport::File(_) => self.history.iter().map(files::again).collect(),
            Transport::Directory(_) => files::list(&mut self.dice),
            Transport::RealPath(path) => files::path(path),
            Transport::Loopback => return self.add(id, Agent::Loopback, Vec::new()),
            Transport::Removal { .. } => vec![AgentInput::Exited(Exit {
                code: Some(0),
                ..Exit::default()
            })],
            Transport::Http(_) => {
                let error = Error::new(ErrorKind::Network, "there is no network");
                vec![AgentInput::StartFailed(error)]
            }
        };
        self.plain(id, said);
    }

    fn spawn(&mut self, id: u64, spec: &ProcessSpec) {
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
            Protocol::Command | Protocol::OpenAi | Protocol::UiStream => {
                unreachable!("the simulation has agents of two protocols")
            }
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
            said: said.into_iter().map(ProcessOutput::Event).collect(),
            is_stopping: false,
            exit_stage: self.dice.pick(&[0, 0, 0, 1, 2]),
        };
        let before = self.processes.insert(id, process);
        assert!(before.is_none(), "the number {id} was given twice");
    }

    fn send(&mut self, id: u64, lines: &[u8]) {
        // A process that has exited reads nothing; the hub will receive its exit.
        let Some(process) = self.processes.get_mut(&id) else {
            return;
        };
        assert!(lines.ends_with(b"\n"), "a torn line");
        if matches!(process.agent, Agent::Loopback) {
            let lines = Batch::Lines(lines.to_vec().into());
            let returned = ProcessOutput::Event(AgentInput::Batch(lines));
            process.said.push_back(returned);
            return;
        }
        for line in lines.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let message = serde_json::from_slice(line)
                .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(line)));
            match &mut process.agent {
                Agent::Acp(acp) => acp.hear(&message, &self.clients),
                Agent::Claude(claude) => claude.hear(&message, &self.clients),
                Agent::Plain | Agent::Loopback => {}
            }
        }
    }

    fn request_exit(&mut self, id: u64, how: usize) {
        if let Some(process) = self.processes.get_mut(&id) {
            process.is_stopping = true;
            if process.lives && how >= process.exit_stage {
                process.lives = false;
                let exit = AgentInput::Exited(Exit::default());
                process.said.push_back(ProcessOutput::Event(exit));
            }
        }
    }
}
