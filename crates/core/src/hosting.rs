//! File and terminal requests of agents: the host, and the session of each open request.

use acpipe_model::host::{Host, Ticket};
use std::collections::BTreeMap;

/// The host with the open requests of all sessions.
#[derive(Debug, Default)]
pub struct Hosting {
    pub host: Host,
    /// Sessions of open requests.
    tickets: BTreeMap<Ticket, String>,
    /// Sessions with decisions to carry out.
    decided_sessions: Vec<String>,
    last: u64,
}

impl Hosting {
    pub fn open(&mut self, session: &str) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.tickets.insert(ticket, session.to_owned());
        ticket
    }

    pub fn close(&mut self, ticket: Ticket) {
        self.tickets.remove(&ticket);
    }

    pub fn session(&self, ticket: Ticket) -> Option<&String> {
        self.tickets.get(&ticket)
    }

    pub fn note_decision(&mut self, session: &str) {
        self.decided_sessions.push(session.to_owned());
    }

    pub fn take_decided_sessions(&mut self) -> Vec<String> {
        std::mem::take(&mut self.decided_sessions)
    }

    /// Returns the sessions with open requests or terminals.
    pub fn sessions(&self) -> Vec<String> {
        if self.tickets.is_empty() && self.host.is_idle() {
            return Vec::new();
        }
        let mut sessions = self.host.sessions();
        sessions.extend(self.tickets.values().cloned());
        sessions.into_iter().collect()
    }
}
