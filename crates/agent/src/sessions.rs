//! The open sessions of a connection, and their turns.

use super::error::{AgentError, FailureKind};
use super::session::Session;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The open sessions by their ids.
#[derive(Debug, Default)]
pub struct HeldSessions(Mutex<BTreeMap<String, HeldSession>>);

#[derive(Debug)]
struct HeldSession {
    session: Arc<Session>,
    turn: Option<TurnSignals>,
}

/// Request and signals of a running turn.
#[derive(Debug, Clone, Default)]
pub struct TurnSignals {
    /// Id of the request with the prompt.
    pub request: Value,
    /// Cancelled when the client cancels the turn.
    pub cancel: CancellationToken,
    /// Cancelled when the turn has ended.
    pub ended: CancellationToken,
}

impl HeldSessions {
    /// Adds a session, or replaces one of the same id that runs no turn.
    pub fn insert(&self, session: Session) -> Result<Arc<Session>, AgentError> {
        let mut sessions = self.lock();
        if let Some(before) = sessions.get(session.id()) {
            if before.turn.is_some() {
                return Err(busy(session.id()));
            }
            session.continue_from(&before.session);
        }
        let session = Arc::new(session);
        let open = HeldSession {
            session: Arc::clone(&session),
            turn: None,
        };
        sessions.insert(session.id().to_owned(), open);
        Ok(session)
    }

    /// Returns an open session.
    pub fn get(&self, id: &str) -> Result<Arc<Session>, AgentError> {
        let sessions = self.lock();
        let open = sessions.get(id).ok_or_else(|| unknown(id))?;
        Ok(Arc::clone(&open.session))
    }

    /// Starts a turn of a session for a request.
    ///
    /// # Errors
    /// The session is not open, or runs another turn.
    pub fn start_turn(
        &self,
        id: &str,
        request: Value,
    ) -> Result<(Arc<Session>, TurnSignals), AgentError> {
        let mut sessions = self.lock();
        let open = sessions.get_mut(id).ok_or_else(|| unknown(id))?;
        if open.turn.is_some() {
            return Err(busy(id));
        }
        let turn = open.turn.insert(TurnSignals {
            request,
            ..TurnSignals::default()
        });
        Ok((Arc::clone(&open.session), turn.clone()))
    }

    /// Ends the turn of a session, so that the next one can start.
    pub fn end_turn(&self, id: &str) {
        if let Some(open) = self.lock().get_mut(id) {
            open.turn = None;
        }
    }

    /// Cancels the turn of a session, if it runs one.
    pub fn cancel(&self, id: &str) {
        if let Some(turn) = self.lock().get(id).and_then(|open| open.turn.as_ref()) {
            turn.cancel.cancel();
        }
    }

    /// Cancels the turn of a request, if it runs.
    pub fn cancel_request(&self, request: &Value) {
        let sessions = self.lock();
        let mut turns = sessions.values().filter_map(|open| open.turn.as_ref());
        if let Some(turn) = turns.find(|turn| turn.request == *request) {
            turn.cancel.cancel();
        }
    }

    /// Cancels all turns.
    pub fn cancel_all(&self) {
        for turn in self.lock().values().filter_map(|open| open.turn.as_ref()) {
            turn.cancel.cancel();
        }
    }

    /// Removes a session and cancels its turn.
    pub fn remove(&self, id: &str) -> Result<(Arc<Session>, Option<TurnSignals>), AgentError> {
        let open = self.lock().remove(id).ok_or_else(|| unknown(id))?;
        if let Some(turn) = &open.turn {
            turn.cancel.cancel();
        }
        Ok((open.session, open.turn))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, HeldSession>> {
        // A panic leaves no session half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown(id: &str) -> AgentError {
    let message = format!("session `{id}` not found; call session/new first");
    AgentError::new(FailureKind::SessionNotFound, message).with("sessionId", id)
}

fn busy(id: &str) -> AgentError {
    let message =
        format!("session `{id}` is in a turn; wait for its response, or send session/cancel");
    AgentError::new(FailureKind::Busy, message).with("sessionId", id)
}
