//! Terminals of sessions: output, exit, and requests that wait for the exit.

use super::output::Output;
use super::{
    Answered, HostAnswer, HostEffect, TerminalExit, TerminalId, TerminalOutput, TerminalSpec,
    TerminalView, Ticket,
};
use crate::error::{Error, ErrorKind};
use std::collections::BTreeMap;

/// Bytes of output that a terminal keeps if the agent sets no limit.
pub const DEFAULT_OUTPUT: usize = 1024 * 1024;

/// Maximum bytes of output that a terminal keeps, whatever limit the agent sets.
pub const MAX_OUTPUT: usize = 10 * 1024 * 1024;

/// Maximum number of terminals of a session; released terminals count until their processes have ended.
pub const MAX_TERMINALS: usize = 32;

/// Maximum number of requests that wait for the exit of one terminal.
const MAX_WAITERS: usize = 64;

/// Owner of a new terminal: its session and the request that creates it.
#[derive(Debug, Clone, Copy)]
pub struct TerminalOwner<'a> {
    pub session: &'a str,
    pub ticket: Ticket,
}

#[derive(Debug, Default)]
pub struct ServedTerminals {
    /// Number of the newest terminal.
    pub last: u64,
    all: BTreeMap<TerminalId, ServedTerminal>,
}

#[derive(Debug)]
pub struct ServedTerminal {
    session: String,
    /// Request that created the terminal, until its command runs.
    creation_ticket: Option<Ticket>,
    output: Output,
    exit: Option<TerminalExit>,
    waiters: Vec<Ticket>,
    life: TerminalState,
    released: bool,
    /// `true` if output or the exit has not been reported.
    unreported: bool,
}

/// State of a terminal's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TerminalState {
    /// The command runs or is being started, or processes that it left behind have not ended.
    Runs,
    /// As [`TerminalState::Runs`], but the terminal was killed.
    Killed,
    /// No process is left.
    Gone,
}

impl ServedTerminals {
    /// Adds a terminal whose command is about to be started.
    pub fn create(
        &mut self,
        owned: TerminalOwner<'_>,
        spec: &TerminalSpec,
        output_limit: Option<u64>,
    ) -> Result<TerminalId, Error> {
        if self.of(owned.session).len() >= MAX_TERMINALS {
            let message = format!(
                "cannot start {}: the session already has {MAX_TERMINALS} terminals; release some first",
                spec.command
            );
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        let limit = output_limit.map_or(DEFAULT_OUTPUT, |limit| {
            usize::try_from(limit).map_or(MAX_OUTPUT, |limit| limit.min(MAX_OUTPUT))
        });
        self.last += 1;
        let id = TerminalId(self.last);
        let terminal = ServedTerminal {
            session: owned.session.to_owned(),
            creation_ticket: Some(owned.ticket),
            output: Output::new(limit),
            exit: None,
            waiters: Vec::new(),
            life: TerminalState::Runs,
            released: false,
            unreported: false,
        };
        self.all.insert(id, terminal);
        Ok(id)
    }

    pub fn find(
        &mut self,
        session: &str,
        name: &str,
    ) -> Result<(TerminalId, &mut ServedTerminal), Error> {
        let id = TerminalId::of(name);
        let terminal = id.and_then(|id| Some((id, self.all.get_mut(&id)?)));
        let own = terminal
            .filter(|(_, t)| t.session == session && !t.released && t.creation_ticket.is_none());
        own.ok_or_else(|| {
            let message =
                format!("Resource not found: terminal {name:?} was released or never created");
            Error::new(ErrorKind::ResourceNotFound, message)
        })
    }

    /// Returns `true` if the session has a terminal of this name, released or not.
    pub fn has(&self, session: &str, name: &str) -> bool {
        let terminal = TerminalId::of(name).and_then(|id| self.all.get(&id));
        terminal.is_some_and(|terminal| terminal.session == session)
    }

    pub fn of(&self, session: &str) -> Vec<TerminalId> {
        let own = self.all.iter().filter(|(_, t)| t.session == session);
        own.map(|(id, _)| *id).collect()
    }

    /// Records that the command runs, and answers the request that created the terminal.
    pub fn started(&mut self, id: TerminalId) -> Option<Answered> {
        let ticket = self.all.get_mut(&id)?.creation_ticket.take()?;
        Some((ticket, Ok(HostAnswer::Created(id.to_string()))))
    }

    /// Removes a terminal whose command could not be started, and answers the request.
    pub fn failed(&mut self, id: TerminalId, error: Error) -> Option<Answered> {
        let ticket = self.all.remove(&id)?.creation_ticket?;
        Some((ticket, Err(error)))
    }

    /// Appends output; returns `true` if the terminal can still be shown.
    pub fn append_output(&mut self, id: TerminalId, bytes: &[u8]) -> bool {
        let Some(terminal) = self.all.get_mut(&id).filter(|t| !t.released) else {
            return false;
        };
        terminal.output.push(bytes);
        terminal.unreported = true;
        true
    }

    /// Records the exit, and answers the requests that wait for it.
    pub fn ended(&mut self, id: TerminalId, exit: &TerminalExit) -> Vec<Answered> {
        let Some(terminal) = self.all.get_mut(&id) else {
            return Vec::new();
        };
        terminal.exit = Some(exit.clone());
        terminal.output.finish();
        terminal.unreported = true;
        let waiters = std::mem::take(&mut terminal.waiters);
        let answer = |ticket| (ticket, Ok(HostAnswer::Exit(exit.clone())));
        waiters.into_iter().map(answer).collect()
    }

    /// Records that no process is left; a released terminal is removed.
    pub fn processes_ended(&mut self, id: TerminalId) {
        if self.all.get(&id).is_some_and(|t| t.released) {
            self.all.remove(&id);
        } else if let Some(terminal) = self.all.get_mut(&id) {
            terminal.life = TerminalState::Gone;
        }
    }

    /// Releases the terminal for the agent and ends its remaining processes.
    pub fn release(&mut self, id: TerminalId) -> Option<HostEffect> {
        let terminal = self.all.get_mut(&id)?;
        terminal.released = true;
        // The output has no reader any more; only requests that wait for the exit remain.
        terminal.output = Output::new(0);
        if terminal.life == TerminalState::Gone {
            self.all.remove(&id);
            return None;
        }
        terminal.kill().then_some(HostEffect::Kill(id))
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the sessions of all terminals that were not released.
    pub fn sessions(&self) -> impl Iterator<Item = &String> {
        let used = self.all.values().filter(|t| !t.released);
        used.map(|terminal| &terminal.session)
    }

    pub fn unreported(&self) -> Vec<(String, TerminalId)> {
        let fresh = self.all.iter().filter(|(_, t)| t.unreported && !t.released);
        fresh.map(|(id, t)| (t.session.clone(), *id)).collect()
    }

    /// Returns the output and exit of a terminal, and marks them as reported.
    pub fn take_view(&mut self, id: TerminalId) -> Option<TerminalView<'_>> {
        let terminal = self.all.get_mut(&id)?;
        terminal.unreported = false;
        Some(TerminalView {
            text: terminal.output.text(),
            total: terminal.output.total(),
            exit: terminal.exit.as_ref(),
        })
    }
}

impl ServedTerminal {
    pub fn output(&self) -> TerminalOutput {
        TerminalOutput {
            text: self.output.text().to_owned(),
            truncated: self.output.is_truncated(),
            exit: self.exit.clone(),
        }
    }

    /// Returns the exit; if the command still runs, the request is answered later.
    pub fn wait(&mut self, ticket: Ticket) -> Result<Option<TerminalExit>, Error> {
        if self.exit.is_none() {
            if self.waiters.len() >= MAX_WAITERS {
                let message =
                    format!("{MAX_WAITERS} requests already wait for this terminal to exit");
                return Err(Error::new(ErrorKind::Overloaded, message));
            }
            self.waiters.push(ticket);
        }
        Ok(self.exit.clone())
    }

    /// Marks the terminal as killed; returns `true` if it has processes and was not killed before.
    pub fn kill(&mut self) -> bool {
        let runs = self.life == TerminalState::Runs;
        if runs {
            self.life = TerminalState::Killed;
        }
        runs
    }
}
