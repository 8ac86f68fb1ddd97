//! Numbers that identify calls, processes and agents.

use super::ask::AskId;
use super::event::CallId;

/// Identifies an agent machine as long as the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentRef(pub usize);

/// The last numbers that were given.
#[derive(Debug, Default)]
pub struct Ids {
    call: u64,
    name: u64,
    ask: u64,
    ticket: u64,
    process: u64,
    connection: u64,
}

impl Ids {
    /// Number of a call to an agent.
    pub fn call(&mut self) -> CallId {
        self.call += 1;
        CallId(self.call)
    }

    /// Number in the name of a message, turn or question.
    pub fn name(&mut self) -> u64 {
        self.name += 1;
        self.name
    }

    /// Number of a request to the client.
    pub fn ask(&mut self) -> AskId {
        self.ask += 1;
        AskId(self.ask)
    }

    /// Number of a call to the store.
    pub fn ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    /// Number of a process of an agent.
    pub fn process(&mut self) -> u64 {
        self.process += 1;
        self.process
    }

    /// Number of a connection to an agent.
    pub fn connection(&mut self) -> u64 {
        self.connection += 1;
        self.connection
    }

    /// How many processes of agents were started so far.
    #[must_use]
    pub fn processes(&self) -> u64 {
        self.process
    }
}
