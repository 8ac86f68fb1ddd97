//! The directories of sessions: held open while a session is, and what is done with files in them.

use super::{Host, HostEffect, Ticket};

impl Host {
    /// Holds the directories of a session from its opening on.
    pub fn hold_roots(&mut self, session: &str, roots: Vec<String>) {
        let session = session.to_owned();
        self.effects.push(HostEffect::HoldRoots { session, roots });
    }

    /// Lets go of the directories of a session.
    pub fn release_roots(&mut self, session: &str) {
        let session = session.to_owned();
        self.effects.push(HostEffect::ReleaseRoots(session));
    }

    /// Stops what is done for a request that was answered.
    pub fn stop_file(&mut self, ticket: Ticket) {
        self.effects.push(HostEffect::StopFile(ticket));
    }
}
