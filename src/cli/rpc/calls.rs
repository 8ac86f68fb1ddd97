//! The client's calls that are not answered yet.

use super::batch::BatchId;
use crate::core::client::{Command, Token};
use serde_json::value::RawValue;
use std::collections::HashMap;

/// How many calls may be open: sixteen for each of the sessions that may be open by default. Whatever the core keeps for a
/// call (who waits for an agent, a list, a measurement) is bounded by this.
const MOST_CALLS: usize = 16 * 1024;

/// How many bytes the ids of open calls may have together. Ids are a few bytes, or a UUID; nothing else says how long one
/// may be.
const MOST_ID_BYTES: usize = 4 << 20;

/// A call of the client.
pub struct Caller {
    /// Absent for notifications: what they cause is not answered.
    pub id: Option<Box<RawValue>>,
    pub batch: Option<BatchId>,
}

impl Caller {
    fn id_size(&self) -> usize {
        self.id.as_ref().map_or(0, |id| id.get().len())
    }
}

/// The calls that are not answered yet.
#[derive(Default)]
pub struct Calls {
    last_token: u64,
    open: HashMap<Token, Caller>,
    id_bytes: usize,
}

impl Calls {
    /// Whether one more call with this id can be open; `session/cancel` and `shutdown` always can.
    pub fn have_room(&self, command: &Command, id: Option<&RawValue>) -> bool {
        if matches!(command, Command::Cancel(_) | Command::Shutdown) {
            return true;
        }
        let id = id.map_or(0, |id| id.get().len());
        self.open.len() < MOST_CALLS && self.id_bytes.saturating_add(id) <= MOST_ID_BYTES
    }

    /// Opens a call.
    pub fn open(&mut self, caller: Caller) -> Token {
        self.last_token += 1;
        let token = Token::first(self.last_token);
        self.id_bytes += caller.id_size();
        self.open.insert(token, caller);
        token
    }

    /// Closes a call, which is being answered.
    pub fn close(&mut self, token: Token) -> Option<Caller> {
        let caller = self.open.remove(&token)?;
        self.id_bytes -= caller.id_size();
        Some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(id: &RawValue) -> Caller {
        Caller {
            id: Some(id.to_owned()),
            batch: None,
        }
    }

    fn cancel() -> Command {
        Command::Cancel(serde_json::from_str("{}").unwrap())
    }

    #[test]
    fn open_calls_are_bounded_in_number() {
        let mut calls = Calls::default();
        let id = RawValue::from_string("1".to_owned()).unwrap();
        let tokens: Vec<Token> = (0..MOST_CALLS).map(|_| calls.open(caller(&id))).collect();
        assert!(!calls.have_room(&Command::ListAgents, Some(&id)));
        assert!(!calls.have_room(&Command::ListAgents, None));
        assert!(calls.have_room(&cancel(), Some(&id)));
        assert!(calls.have_room(&Command::Shutdown, Some(&id)));
        assert!(calls.close(tokens[5]).is_some());
        assert!(calls.close(tokens[5]).is_none());
        assert!(calls.have_room(&Command::ListAgents, Some(&id)));
    }

    #[test]
    fn ids_of_open_calls_are_bounded_in_bytes() {
        let mut calls = Calls::default();
        let id = format!("{:?}", "x".repeat(MOST_ID_BYTES / 2));
        let id = RawValue::from_string(id).unwrap();
        let token = calls.open(caller(&id));
        assert!(!calls.have_room(&Command::ListAgents, Some(&id)));
        assert!(calls.have_room(&Command::ListAgents, Some(RawValue::NULL)));
        calls.close(token);
        assert!(calls.have_room(&Command::ListAgents, Some(&id)));
    }
}
