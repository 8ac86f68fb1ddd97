//! Counters for the ids of calls, processes and agents.

use super::client_request::ClientRequestId;
use acpipe_model::event::CallId;

/// Id of an agent machine, valid as long as the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentRef(pub usize);

/// Counters from which ids are taken.
#[derive(Debug, Default)]
pub struct Ids {
    call: u64,
    name: u64,
    ask: u64,
    search: u64,
    ticket: u64,
    process: u64,
    connection: u64,
}

impl Ids {
    pub fn call(&mut self) -> CallId {
        self.call += 1;
        CallId(self.call)
    }

    /// Returns the number in the id of a new message, turn or question.
    pub fn name(&mut self) -> u64 {
        self.name += 1;
        self.name
    }

    pub fn ask(&mut self) -> ClientRequestId {
        self.ask += 1;
        ClientRequestId(self.ask)
    }

    /// Returns the ticket of a new search for programs.
    pub fn search(&mut self) -> u64 {
        self.search += 1;
        self.search
    }

    /// Returns the ticket of a new call to the store.
    pub fn ticket(&mut self) -> u64 {
        self.ticket += 1;
        self.ticket
    }

    pub fn process(&mut self) -> u64 {
        self.process += 1;
        self.process
    }

    pub fn connection(&mut self) -> u64 {
        self.connection += 1;
        self.connection
    }

    /// Returns how many agent processes were started so far.
    pub fn processes(&self) -> u64 {
        self.process
    }
}
