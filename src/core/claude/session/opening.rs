//! Conditions for an open session: its history is read, and its process has answered.

use super::{Open, Session};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::AgentEvent;
use tracing::debug;

impl Session {
    /// Handles the end of reading the history, or its failure.
    pub fn history_read(&mut self, how: Result<(), Error>) -> Option<AgentEvent<'static>> {
        let opening = self.opening.as_mut()?;
        match how {
            Ok(()) => {
                opening.history = false;
                self.opened()
            }
            Err(error) if !opening.loads => {
                debug!(%error, "cannot read the history of a resumed session");
                opening.history = false;
                self.opened()
            }
            Err(mut error) => {
                // Another restore strategy may be left.
                error.kind = ErrorKind::Session;
                let call = self.opening.take()?.call;
                Some(AgentEvent::Failed { call, error })
            }
        }
    }

    pub(super) fn opened(&mut self) -> Option<AgentEvent<'static>> {
        let ready = |opening: &mut Open| {
            !opening.history && opening.servers.is_none() && opening.state.is_some()
        };
        let mut opening = self.opening.take_if(ready)?;
        if let (Some(state), Some(failures)) = (&mut opening.state, &opening.failures) {
            state.set_owned("mcpFailures", failures);
        }
        Some(AgentEvent::SessionOpened {
            call: opening.call,
            agent_session: self.id.clone(),
            state: opening.state.unwrap_or_default(),
        })
    }
}
