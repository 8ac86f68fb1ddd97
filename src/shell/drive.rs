//! The loop: one `select!` over everything that can happen, one owner of all state.

use super::agent::{self, Agent};
use super::input::ClientInput;
use super::output::Output;
use crate::core::bridge::{AgentId, AgentInput, Bridge, Effect};
use crate::core::client::{Command, Outlet, Token};
use rustix::process::Signal;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// How many batches may wait between an agent and the loop: enough to overlap, too few to matter.
const AGENT_QUEUE: usize = 4;

/// How long the last output may take once everything else has ended.
const LAST_FLUSH: Duration = Duration::from_secs(2);

/// Bounds that the user sets.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The longest line of an agent that is kept, in bytes.
    pub max_line: usize,
}

/// A client of the bridge: it says what it wants, and forms what it gets.
pub trait Client: Outlet {
    /// Takes what came on stdin.
    fn input(&mut self, input: ClientInput);
    /// A signal asked for the end; `first` unless there was one before.
    fn interrupted(&mut self, first: bool, signal: Interrupt);
    /// Nobody reads what is written any more.
    fn left(&mut self);
    /// The next thing the client wants.
    fn next_wish(&mut self) -> Option<Wish>;
    /// Appends what is to be written to stdout.
    fn take_output(&mut self, buffer: &mut Vec<u8>);
}

/// What a client can want of the loop.
#[derive(Debug)]
pub enum Wish {
    /// Something of the bridge.
    Command(Token, Command),
    /// The end, in order.
    End,
    /// The end, at once.
    Hurry,
}

/// A signal that asks for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C.
    Int,
    /// SIGTERM or SIGHUP.
    Term,
}

/// Runs until everything has ended.
///
/// # Errors
/// Threads or signal handlers could not be set up.
pub async fn drive(
    bridge: Bridge,
    client: &mut impl Client,
    stdin: Option<mpsc::Receiver<ClientInput>>,
    limits: Limits,
) -> std::io::Result<()> {
    let (events, mut agent_events) = mpsc::channel(AGENT_QUEUE);
    let mut stdin = stdin;
    let mut shell = Shell {
        bridge,
        output: Output::new()?,
        agents: HashMap::new(),
        events,
        limits,
        ending: false,
        finished: false,
        deaf_since: None,
    };
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let mut interrupts = 0;
    shell.settle(client, Instant::now());
    while !shell.finished {
        let room = shell.ending || !shell.output.is_full();
        // A client that does not read may still cancel; only one that floods us too is not heard.
        let heard = shell.ending || !shell.output.is_overfull();
        shell.note_deafness(room);
        let due = shell.bridge.deadline().map(|(at, _)| at);
        shell.bridge.rest(Instant::now());
        let happened = tokio::select! {
            Some((id, input)) = agent_events.recv(), if room => Happened::Agent(id, input),
            input = next_input(&mut stdin), if heard => Happened::Client(input),
            () = shell.output.progress() => Happened::Written,
            () = until(due), if room => Happened::Due,
            _ = int.recv() => Happened::Signal(Interrupt::Int),
            _ = term.recv() => Happened::Signal(Interrupt::Term),
            _ = hup.recv() => Happened::Signal(Interrupt::Term),
        };
        let now = Instant::now();
        shell.bridge.wake(now);
        match happened {
            Happened::Agent(id, input) => {
                shell.bridge.agent(id, input, now, client);
                shell.gather(client);
                // Whatever waits already is dealt with before anything is written.
                while !shell.output.is_full()
                    && let Ok((id, input)) = agent_events.try_recv()
                {
                    shell.bridge.agent(id, input, now, client);
                    shell.gather(client);
                }
            }
            Happened::Client(input) => {
                let end = matches!(input, ClientInput::End);
                client.input(input);
                if end {
                    stdin = None;
                }
            }
            Happened::Written => {}
            Happened::Due => shell.bridge.tick(now, client),
            Happened::Signal(signal) => {
                interrupts += 1;
                client.interrupted(interrupts == 1, signal);
            }
        }
        shell.settle(client, now);
    }
    let last = async {
        while shell.output.is_pending() {
            shell.output.flush();
            shell.output.progress().await;
        }
    };
    // A client that does not read cannot keep the program alive.
    let _ = tokio::time::timeout(LAST_FLUSH, last).await;
    Ok(())
}

enum Happened {
    Agent(AgentId, AgentInput),
    Client(ClientInput),
    Written,
    Due,
    Signal(Interrupt),
}

struct Shell {
    bridge: Bridge,
    output: Output,
    agents: HashMap<AgentId, Agent>,
    events: mpsc::Sender<(AgentId, AgentInput)>,
    limits: Limits,
    ending: bool,
    finished: bool,
    /// Since when agents are not listened to.
    deaf_since: Option<Instant>,
}

impl Shell {
    /// Does everything that follows from what happened, then hands the output over.
    fn settle(&mut self, client: &mut impl Client, now: Instant) {
        loop {
            self.perform(client, now);
            self.gather(client);
            if self.output.is_closed() && !self.ending {
                client.left();
                self.end(client, now);
                continue;
            }
            match client.next_wish() {
                Some(Wish::Command(token, command)) => {
                    self.bridge.command(token, command, now, client);
                }
                Some(Wish::End) => self.end(client, now),
                Some(Wish::Hurry) => {
                    self.end(client, now);
                    self.bridge.hurry(now);
                }
                None => break,
            }
        }
        self.output.flush();
        if self.output.is_closed() && !self.ending {
            client.left();
            self.end(client, now);
            self.perform(client, now);
        }
    }

    /// Time in which agents are not listened to is not theirs.
    fn note_deafness(&mut self, room: bool) {
        match (room, self.deaf_since) {
            (false, None) => self.deaf_since = Some(Instant::now()),
            (true, Some(since)) => {
                self.deaf_since = None;
                self.bridge.postpone(since.elapsed());
            }
            (false, Some(_)) | (true, None) => {}
        }
    }

    fn end(&mut self, client: &mut impl Client, now: Instant) {
        if !self.ending {
            self.ending = true;
            self.bridge.client_gone(now, client);
        }
    }

    fn gather(&mut self, client: &mut impl Client) {
        client.take_output(&mut self.output.buffer);
        if self.ending && self.output.is_full() {
            // It is leaving and does not read: what it would never see is not kept.
            self.output.buffer.clear();
        }
    }

    fn perform(&mut self, client: &mut impl Client, now: Instant) {
        loop {
            let effects = self.bridge.effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform_one(effect, client, now);
            }
        }
    }

    fn perform_one(&mut self, effect: Effect, client: &mut impl Client, now: Instant) {
        match effect {
            Effect::Spawn(id, spec) => {
                let agent = agent::start(id, &spec, self.limits.max_line, self.events.clone());
                self.agents.clear();
                self.agents.insert(id, agent);
            }
            Effect::Send(id, lines) => {
                let sent = self.agents.get(&id).is_none_or(|agent| agent.send(lines));
                if !sent {
                    self.bridge.agent(id, AgentInput::InputStuck, now, client);
                }
            }
            Effect::CloseInput(id) => {
                if let Some(agent) = self.agents.get_mut(&id) {
                    agent.close_input();
                }
            }
            Effect::Terminate(id) => self.signal(id, Signal::TERM),
            Effect::Kill(id) => self.signal(id, Signal::KILL),
            Effect::Finished => self.finished = true,
        }
    }

    fn signal(&self, id: AgentId, signal: Signal) {
        if let Some(agent) = self.agents.get(&id) {
            agent.signal(signal);
        }
    }
}

async fn next_input(stdin: &mut Option<mpsc::Receiver<ClientInput>>) -> ClientInput {
    match stdin {
        Some(stdin) => stdin.recv().await.unwrap_or(ClientInput::End),
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
