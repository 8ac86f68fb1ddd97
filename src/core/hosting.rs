//! Files and terminals that are served to agents: the host, and which session each open request belongs to.

use super::host::{Host, Ticket};
use std::collections::BTreeMap;

/// Files and terminals that are served to agents.
#[derive(Debug, Default)]
pub struct Hosting {
    pub host: Host,
    /// The sessions of open requests.
    tickets: BTreeMap<Ticket, String>,
    /// The sessions with decisions to be carried out.
    decided: Vec<String>,
    last: u64,
}

impl Hosting {
    /// Opens a request of a session.
    pub fn open(&mut self, session: &str) -> Ticket {
        self.last += 1;
        let ticket = Ticket(self.last);
        self.tickets.insert(ticket, session.to_owned());
        ticket
    }

    /// Closes a request.
    pub fn close(&mut self, ticket: Ticket) {
        self.tickets.remove(&ticket);
    }

    /// The session of an open request.
    #[must_use]
    pub fn session(&self, ticket: Ticket) -> Option<&String> {
        self.tickets.get(&ticket)
    }

    /// A session has decisions to be carried out.
    pub fn note_decision(&mut self, session: &str) {
        self.decided.push(session.to_owned());
    }

    /// Takes the sessions with decisions to be carried out.
    pub fn take_decided(&mut self) -> Vec<String> {
        std::mem::take(&mut self.decided)
    }

    /// The sessions with open requests or terminals.
    #[must_use]
    pub fn sessions(&self) -> Vec<String> {
        if self.tickets.is_empty() && self.host.is_idle() {
            return Vec::new();
        }
        let mut sessions = self.host.sessions();
        sessions.extend(self.tickets.values().cloned());
        sessions.into_iter().collect()
    }
}
