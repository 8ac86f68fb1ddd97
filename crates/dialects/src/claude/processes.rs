//! Assignment of processes to sessions.

use super::session::CliRequests;
use super::{ChildRole, Claude};
use acpipe_model::dialect::{Child, Outgoing, TransportOrder};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId};
use acpipe_model::request_key::RequestKey;

impl Claude {
    pub(super) fn stop(&mut self, child: Child, out: &mut Outgoing) {
        self.sessions.retain(|_, of| *of != child);
        self.children.remove(&child);
        out.order(child, TransportOrder::Stop);
    }

    /// Stops the process of a session, if it has one.
    pub(super) fn end(&mut self, session: &str, out: &mut Outgoing) {
        if let Some(child) = self.sessions.get(session) {
            self.stop(*child, out);
        }
    }

    /// Changes the id of a session; returns `false` if another session has the new id.
    pub(super) fn rename(&mut self, child: Child, from: &str, to: String) -> bool {
        self.sessions.remove(from);
        *self.sessions.entry(to).or_insert(child) == child
    }

    /// Ends a session that turned out to be the same as the session of another process.
    pub(super) fn end_duplicate(
        &mut self,
        child: Child,
        known_as: String,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        if let Some(ChildRole::Session(mut session)) = self.children.remove(&child) {
            let message = format!(
                "the agent's session {:?} is already open; use the session that has it, or call session/close for \
                     that one first",
                session.id
            );
            session.id = known_as;
            let error = Error::new(ErrorKind::SessionExists, message);
            session.ended(Err(&error), events);
        }
        self.stop(child, out);
    }

    /// Returns the open requests of the process that sent a request.
    pub(super) fn requests_with(&mut self, key: &RequestKey) -> Option<&mut CliRequests> {
        match self.children.get_mut(&key.child)? {
            ChildRole::Session(session) => Some(&mut session.requests),
            _ => None,
        }
    }

    /// Returns the CLI's id and the process of the session that a call opened.
    pub(super) fn opened_by(&self, call: CallId) -> Option<(&String, Child)> {
        let opened_by =
            |role: &ChildRole| matches!(role, ChildRole::Session(s) if s.opened_by == call);
        let mut sessions = self.sessions.iter();
        let opened = sessions.find(|(_, child)| self.children.get(child).is_some_and(opened_by));
        opened.map(|(id, child)| (id, *child))
    }

    pub(super) fn no_session(id: &str) -> Error {
        let message = format!("session {id:?} has no agent process");
        Error::new(ErrorKind::Session, message)
    }
}
