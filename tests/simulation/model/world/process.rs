//! Agent processes, and their output that the hub has not read.

use super::super::acp::Acp;
use super::super::agent::{Ledger, Line, LineEffect};
use super::super::claude::Claude;
use super::super::dice::Dice;
use acpipe_core::hub::AgentInput;
use std::collections::VecDeque;

/// Kind of a process.
pub(super) enum Agent {
    Acp(Box<Acp>),
    Claude(Box<Claude>),
    /// A process that only prints and ends.
    Plain,
    /// Not a process: returns what is written to it.
    Loopback,
}

impl Agent {
    pub(super) fn ledger(&mut self) -> Option<&mut Ledger> {
        match self {
            Self::Acp(acp) => Some(&mut acp.ledger),
            Self::Claude(claude) => Some(&mut claude.ledger),
            Self::Plain | Self::Loopback => None,
        }
    }
}

/// Output of a process on its way to the hub.
pub(super) enum ProcessOutput {
    Line(Line),
    Event(AgentInput),
}

pub(super) struct Process {
    pub(super) agent: Agent,
    pub(super) said: VecDeque<ProcessOutput>,
    pub(super) lives: bool,
    /// Whether it was asked to exit, or its pipes are closed: its requests need no answer.
    pub(super) is_stopping: bool,
    /// Stage of the shutdown at which it exits: 0 for the closed input, 1 for SIGTERM, 2 for SIGKILL.
    pub(super) exit_stage: usize,
}

impl Process {
    pub(super) fn is_prompted(&self) -> bool {
        match &self.agent {
            Agent::Acp(acp) => acp.is_prompted(),
            Agent::Claude(claude) => claude.is_prompted(),
            Agent::Plain | Agent::Loopback => false,
        }
    }

    /// Answers everything that is open with valid messages, prompts only if it `ends_turns`. Returns `false`
    /// if nothing was open.
    pub(super) fn answer_all(&mut self, dice: &mut Dice, ends_turns: bool) -> bool {
        if !self.lives || (self.is_prompted() && !ends_turns) {
            return false;
        }
        let lines = match &mut self.agent {
            Agent::Acp(acp) => acp.answer_all(dice),
            Agent::Claude(claude) => claude.answer_all(),
            Agent::Plain | Agent::Loopback => Vec::new(),
        };
        let some = !lines.is_empty();
        self.said.extend(lines.into_iter().map(ProcessOutput::Line));
        some
    }
}

/// Input that the hub did not take because the client has to read first.
pub(super) struct Backlog {
    pub(super) rest: AgentInput,
    pub(super) marks: Vec<LineEffect>,
}
