//! Conditions for an open session: its history is read, and its process has answered.
//!
//! Owns what is still missing. It may not read the history or talk to the CLI: it says when the session is open, and for which call.

use acpipe_json::Members;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::debug;

/// Conditions that are missing until a session is open.
#[derive(Debug)]
pub(super) struct SessionOpening {
    call: CallId,
    /// `true` if the history has not been read.
    history: bool,
    /// `true` if loading the history was requested; else a session without readable history still opens.
    loads: bool,
    /// MCP servers that the process has not accepted yet.
    servers: Option<Value>,
    /// MCP servers that could not be reached, with the reasons.
    failures: Option<Box<RawValue>>,
    /// State of the session, once the process has reported it.
    state: Option<Members<'static>>,
}

impl SessionOpening {
    pub(super) fn new(
        call: CallId,
        (history, loads): (bool, bool),
        servers: Option<Value>,
    ) -> Self {
        Self {
            call,
            history,
            loads,
            servers,
            failures: None,
            state: None,
        }
    }

    pub(super) fn call(&self) -> CallId {
        self.call
    }

    pub(super) fn servers(&self) -> Option<&Value> {
        self.servers.as_ref()
    }

    /// Handles the end of reading the history, or its failure.
    ///
    /// # Errors
    /// The session cannot be opened in this way.
    pub(super) fn history_read(&mut self, how: Result<(), Error>) -> Result<(), Error> {
        if let Err(mut error) = how {
            if self.loads {
                // Another restore strategy may be left.
                error.kind = ErrorKind::Session;
                return Err(error);
            }
            debug!(%error, "cannot read the history of a resumed session");
        }
        self.history = false;
        Ok(())
    }

    pub(super) fn initialized(&mut self, state: Members<'static>) {
        self.state = Some(state);
    }

    /// Handles that the process has accepted the MCP servers.
    pub(super) fn has_servers(&mut self, failures: Option<Box<RawValue>>) {
        self.servers = None;
        self.failures = failures;
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.history && self.servers.is_none() && self.state.is_some()
    }

    pub(super) fn into_state(self) -> Members<'static> {
        let mut state = self.state.unwrap_or_default();
        if let Some(failures) = &self.failures {
            state.set_owned("mcpFailures", failures);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_open_when_its_history_state_and_servers_are_there() {
        let servers = Some(Value::Null);
        let mut opening = SessionOpening::new(CallId(1), (true, false), servers);
        opening.initialized(Members::default());
        opening.has_servers(None);
        assert!(!opening.is_complete());
        let unreadable = Error::new(ErrorKind::Storage, "no");
        opening.history_read(Err(unreadable.clone())).unwrap();
        assert!(opening.is_complete());
        let mut loads = SessionOpening::new(CallId(1), (true, true), None);
        let error = loads.history_read(Err(unreadable)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Session);
    }
}
