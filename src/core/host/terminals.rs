//! The terminals of sessions: what each said, how it ended, who waits for that.

use super::output::Output;
use super::{
    Answered, HostAnswer, HostEffect, TerminalExit, TerminalId, TerminalOutput, TerminalSpec,
    TerminalView, Ticket,
};
use crate::core::error::{Error, ErrorKind};
use std::collections::BTreeMap;

/// How much output of a terminal is kept where the agent does not say, in bytes.
pub const USUAL_OUTPUT: usize = 1024 * 1024;

/// How much is kept at most, whatever the agent says.
pub const MAX_OUTPUT: usize = 10 * 1024 * 1024;

/// How many terminals a session may have at once: those that were released and are on their way to end count.
pub const MAX_TERMINALS: usize = 32;

/// How many requests may wait for the end of one terminal.
const MAX_WAITERS: usize = 64;

/// Whose a terminal is, and which request made it.
#[derive(Debug, Clone, Copy)]
pub struct Owned<'a> {
    pub session: &'a str,
    pub ticket: Ticket,
}

#[derive(Debug, Default)]
pub struct Terminals {
    /// The number that was given last.
    pub last: u64,
    all: BTreeMap<TerminalId, Terminal>,
}

#[derive(Debug)]
pub struct Terminal {
    session: String,
    /// The request that made it, until it runs.
    asked: Option<Ticket>,
    output: Output,
    exit: Option<TerminalExit>,
    waiters: Vec<Ticket>,
    life: Life,
    /// Whether the agent has no use for it any more.
    released: bool,
    /// Whether there is something that was not shown.
    news: bool,
}

/// How much of a terminal is left in the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// Its command runs, or is being started, or what it left behind still ends.
    Runs,
    /// The same, but it was killed.
    Killed,
    /// Nothing.
    Gone,
}

impl Terminals {
    /// A terminal that is to be started.
    pub fn create(
        &mut self,
        owned: Owned<'_>,
        spec: &TerminalSpec,
        output_limit: Option<u64>,
    ) -> Result<TerminalId, Error> {
        if self.of(owned.session).len() >= MAX_TERMINALS {
            let message = format!(
                "{} was not started: the session has {MAX_TERMINALS} terminals already; release some first",
                spec.command
            );
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        let limit = output_limit.map_or(USUAL_OUTPUT, |limit| {
            usize::try_from(limit).map_or(MAX_OUTPUT, |limit| limit.min(MAX_OUTPUT))
        });
        self.last += 1;
        let id = TerminalId(self.last);
        let terminal = Terminal {
            session: owned.session.to_owned(),
            asked: Some(owned.ticket),
            output: Output::new(limit),
            exit: None,
            waiters: Vec::new(),
            life: Life::Runs,
            released: false,
            news: false,
        };
        self.all.insert(id, terminal);
        Ok(id)
    }

    /// The terminal of a session by the name that the agent knows.
    pub fn find(
        &mut self,
        session: &str,
        name: &str,
    ) -> Result<(TerminalId, &mut Terminal), Error> {
        let id = TerminalId::of(name);
        let terminal = id.and_then(|id| Some((id, self.all.get_mut(&id)?)));
        let own =
            terminal.filter(|(_, t)| t.session == session && !t.released && t.asked.is_none());
        own.ok_or_else(|| {
            let message =
                format!("the session has no terminal {name:?}: it was released, or was never made");
            Error::new(ErrorKind::ResourceNotFound, message)
        })
    }

    /// Whether a session has a terminal of this name, released or not.
    pub fn has(&self, session: &str, name: &str) -> bool {
        let terminal = TerminalId::of(name).and_then(|id| self.all.get(&id));
        terminal.is_some_and(|terminal| terminal.session == session)
    }

    /// All of a session's.
    pub fn of(&self, session: &str) -> Vec<TerminalId> {
        let own = self.all.iter().filter(|(_, t)| t.session == session);
        own.map(|(id, _)| *id).collect()
    }

    /// Its command runs.
    pub fn started(&mut self, id: TerminalId) -> Option<Answered> {
        let ticket = self.all.get_mut(&id)?.asked.take()?;
        Some((ticket, Ok(HostAnswer::Created(id.to_string()))))
    }

    /// Its command could not be started.
    pub fn failed(&mut self, id: TerminalId, error: Error) -> Option<Answered> {
        let ticket = self.all.remove(&id)?.asked?;
        Some((ticket, Err(error)))
    }

    /// Takes what it said; true when somebody may want to see it.
    pub fn said(&mut self, id: TerminalId, bytes: &[u8]) -> bool {
        let Some(terminal) = self.all.get_mut(&id).filter(|t| !t.released) else {
            return false;
        };
        terminal.output.push(bytes);
        terminal.news = true;
        true
    }

    /// Its command ended: answers those who waited for that.
    pub fn ended(&mut self, id: TerminalId, exit: &TerminalExit) -> Vec<Answered> {
        let Some(terminal) = self.all.get_mut(&id) else {
            return Vec::new();
        };
        terminal.exit = Some(exit.clone());
        terminal.output.finish();
        terminal.news = true;
        let waiters = std::mem::take(&mut terminal.waiters);
        let answer = |ticket| (ticket, Ok(HostAnswer::Exit(exit.clone())));
        waiters.into_iter().map(answer).collect()
    }

    /// Nothing of it is left in the world: forgotten, where it was released.
    pub fn gone(&mut self, id: TerminalId) {
        if self.all.get(&id).is_some_and(|t| t.released) {
            self.all.remove(&id);
        } else if let Some(terminal) = self.all.get_mut(&id) {
            terminal.life = Life::Gone;
        }
    }

    /// The agent has no use for it any more: ends what is left of it.
    pub fn release(&mut self, id: TerminalId) -> Option<HostEffect> {
        let terminal = self.all.get_mut(&id)?;
        terminal.released = true;
        // Only who waits for the end of its command wants something of it.
        terminal.output = Output::new(0);
        if terminal.life == Life::Gone {
            self.all.remove(&id);
            return None;
        }
        terminal.kill().then_some(HostEffect::Kill(id))
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whose they are; those that were released have nobody any more.
    pub fn sessions(&self) -> impl Iterator<Item = &String> {
        let used = self.all.values().filter(|t| !t.released);
        used.map(|terminal| &terminal.session)
    }

    /// Those that have something new to show.
    pub fn news(&self) -> Vec<(String, TerminalId)> {
        let fresh = self.all.iter().filter(|(_, t)| t.news && !t.released);
        fresh.map(|(id, t)| (t.session.clone(), *id)).collect()
    }

    /// What one shows: it has nothing new then.
    pub fn show(&mut self, id: TerminalId) -> Option<TerminalView<'_>> {
        let terminal = self.all.get_mut(&id)?;
        terminal.news = false;
        Some(TerminalView {
            text: terminal.output.text(),
            total: terminal.output.total(),
            exit: terminal.exit.as_ref(),
        })
    }
}

impl Terminal {
    pub fn output(&self) -> TerminalOutput {
        TerminalOutput {
            text: self.output.text().to_owned(),
            truncated: self.output.is_truncated(),
            exit: self.exit.clone(),
        }
    }

    /// How it ended; where it has not, that is told later.
    pub fn wait(&mut self, ticket: Ticket) -> Result<Option<TerminalExit>, Error> {
        if self.exit.is_none() {
            if self.waiters.len() >= MAX_WAITERS {
                let message =
                    format!("{MAX_WAITERS} requests wait for this terminal's end already");
                return Err(Error::new(ErrorKind::Overloaded, message));
            }
            self.waiters.push(ticket);
        }
        Ok(self.exit.clone())
    }

    /// Whether there is anything to be killed that was not killed before.
    pub fn kill(&mut self) -> bool {
        let runs = self.life == Life::Runs;
        if runs {
            self.life = Life::Killed;
        }
        runs
    }
}
