//! Store for sessions that are kept in memory only.

use super::{DiskSessions, Durability, real_path};
use acpipe_core::agent_session_record::AgentSessionRecord;
use acpipe_core::store::{CardQuery, LogFile, MemoryStore, Store};
use acpipe_model::error::Error;
use std::path::{Path, PathBuf};
use tracing::warn;

/// [`MemoryStore`] store that compares paths like the store on disk.
#[derive(Debug, Default)]
pub struct MemorySessions {
    sessions: MemoryStore,
    /// State directory with stored sessions, which lose the ids that agents give to the sessions in memory.
    beside: Option<PathBuf>,
    /// Opened when an agent first gives an id.
    stored: Option<DiskSessions>,
}

impl MemorySessions {
    /// Creates a store beside the stored sessions of a state directory.
    #[must_use]
    pub fn beside(state: &Path) -> Self {
        Self {
            beside: Some(state.to_owned()),
            ..Self::default()
        }
    }
}

impl Store for MemorySessions {
    fn has(&self, id: &str) -> Result<bool, Error> {
        self.sessions.has(id)
    }

    fn real_path(&self, path: &str) -> String {
        real_path(path)
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        self.sessions.open(id)
    }

    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        self.sessions.list(ticket, query)
    }

    fn end_claims(&mut self, session: &str, created: &AgentSessionRecord) {
        let Some(state) = self.beside.as_deref().filter(|state| state.exists()) else {
            return;
        };
        if self.stored.is_none() {
            match DiskSessions::begin(state, Durability::None) {
                Ok((stored, _)) => self.stored = Some(stored),
                Err(error) => warn!(%error, "cannot end the claims of stored sessions"),
            }
        }
        if let Some(stored) = &mut self.stored {
            stored.end_claims(session, created);
        }
    }
}
