//! The client's calls that have no response yet.

use super::batch::BatchId;
use acpipe_core::client::{Command, Token};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// Maximum number of open calls: sixteen for each of the sessions that may be open by default. This also
/// bounds what the core keeps per call (calls that wait for an agent, a list or a measurement).
const MOST_CALLS: usize = 16 * 1024;

/// Maximum total size of the ids of open calls. Usual ids are a few bytes or a UUID, but nothing else limits
/// their length.
const MOST_ID_BYTES: usize = 4 << 20;

/// Origin of a call: id and batch.
pub struct CallOrigin {
    /// `None` for a notification, which gets no response.
    pub id: Option<Box<RawValue>>,
    pub batch: Option<BatchId>,
}

impl CallOrigin {
    fn id_size(&self) -> usize {
        self.id.as_ref().map_or(0, |id| id.get().len())
    }
}

/// Open calls by number: the loop knows the client by its own id.
#[derive(Default)]
pub struct CallOrigins {
    last_token: u64,
    open: HashMap<u64, CallOrigin>,
    id_bytes: usize,
}

impl CallOrigins {
    /// Returns `true` if one more call with this id fits. `session/cancel` and `shutdown` always fit.
    pub fn have_room(&self, command: &Command, id: Option<&RawValue>) -> bool {
        if matches!(command, Command::Cancel(_) | Command::Shutdown) {
            return true;
        }
        let id = id.map_or(0, |id| id.get().len());
        self.open.len() < MOST_CALLS && self.id_bytes.saturating_add(id) <= MOST_ID_BYTES
    }

    /// Registers a call and returns its token.
    pub fn open(&mut self, caller: CallOrigin) -> Token {
        self.last_token += 1;
        let token = Token::first(self.last_token);
        self.id_bytes += caller.id_size();
        self.open.insert(token.call, caller);
        token
    }

    /// Removes a call that is being answered.
    pub fn close(&mut self, token: Token) -> Option<CallOrigin> {
        let caller = self.open.remove(&token.call)?;
        self.id_bytes -= caller.id_size();
        Some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire::AgentListParams;

    fn caller(id: &RawValue) -> CallOrigin {
        CallOrigin {
            id: Some(id.to_owned()),
            batch: None,
        }
    }

    fn cancel() -> Command {
        Command::Cancel(serde_json::from_str("{}").unwrap())
    }

    #[test]
    fn open_calls_are_bounded_in_number() {
        let mut calls = CallOrigins::default();
        let id = RawValue::from_string("1".to_owned()).unwrap();
        let tokens: Vec<Token> = (0..MOST_CALLS).map(|_| calls.open(caller(&id))).collect();
        assert!(!calls.have_room(&Command::ListAgents(AgentListParams::default()), Some(&id)));
        assert!(!calls.have_room(&Command::ListAgents(AgentListParams::default()), None));
        assert!(calls.have_room(&cancel(), Some(&id)));
        assert!(calls.have_room(&Command::Shutdown, Some(&id)));
        assert!(calls.close(tokens[5]).is_some());
        assert!(calls.close(tokens[5]).is_none());
        assert!(calls.have_room(&Command::ListAgents(AgentListParams::default()), Some(&id)));
    }

    #[test]
    fn ids_of_open_calls_are_bounded_in_bytes() {
        let mut calls = CallOrigins::default();
        let id = format!("{:?}", "x".repeat(MOST_ID_BYTES / 2));
        let id = RawValue::from_string(id).unwrap();
        let token = calls.open(caller(&id));
        assert!(!calls.have_room(&Command::ListAgents(AgentListParams::default()), Some(&id)));
        assert!(calls.have_room(
            &Command::ListAgents(AgentListParams::default()),
            Some(RawValue::NULL)
        ));
        calls.close(token);
        assert!(calls.have_room(&Command::ListAgents(AgentListParams::default()), Some(&id)));
    }
}
