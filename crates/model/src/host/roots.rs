//! Directories of sessions, which are held open while a session is open, and cancellation of file operations
//! in them.

use super::{Host, HostEffect, Ticket};

impl Host {
    /// Requests that the shell hold the directories of a session open.
    pub fn hold_roots(&mut self, session: &str, roots: Vec<String>) {
        let session = session.to_owned();
        self.effects.push(HostEffect::HoldRoots { session, roots });
    }

    pub fn release_roots(&mut self, session: &str) {
        let session = session.to_owned();
        self.effects.push(HostEffect::ReleaseRoots(session));
    }

    /// Stops the file operation of a request that was answered.
    pub fn stop_file(&mut self, ticket: Ticket) {
        self.effects.push(HostEffect::StopFile(ticket));
    }
}
