//! Claims of stored sessions on agent session ids, which end in their cards.

use super::locked::lock;
use super::replaced::put;
use super::{cards, names};
use acpipe_core::agent_session_record::AgentSessionRecord;
use acpipe_core::store::{Card, CardQuery};
use std::io;
use std::path::Path;
use tracing::{debug, warn};

/// Ends the claims of all sessions that no process has open on the id under which an agent created a session.
pub fn end(sessions: &Path, session: &str, created: &AgentSessionRecord) {
    let query = CardQuery {
        agent_session: Some(created.id.clone()),
        ..CardQuery::default()
    };
    let found = cards::list_at_rest(sessions, query).unwrap_or_else(|error| {
        warn!(%error, "cannot check whether other sessions have the agent's id of a new session");
        Vec::new()
    });
    for card in found {
        if card.session_id != session {
            let id = card.session_id.clone();
            match end_in(sessions, session, created, card) {
                // A process that has the session open notices by the times of the two sessions.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    debug!(session = id, "the claim of an open session does not end");
                }
                Err(error) => warn!(session = id, %error, "cannot end the claim of a session"),
                Ok(()) => {}
            }
        }
    }
}

/// Ends the claim of one session.
fn end_in(
    sessions: &Path,
    session: &str,
    created: &AgentSessionRecord,
    mut card: Card,
) -> io::Result<()> {
    let mut is_changed = false;
    for given in &mut card.agents {
        if given.is_of_same_id(created) && given.ended_by.is_none() {
            given.ended_by = Some(session.to_owned());
            is_changed = true;
        }
    }
    if !is_changed {
        return Ok(());
    }
    let log = names::log(sessions, &card.session_id).map_err(io::Error::other)?;
    // Held until the card is written.
    let _lock = lock(&log, false)?;
    let json = serde_json::to_vec(&card).map_err(io::Error::other)?;
    put(&log.with_extension(names::CARD), "card", &json)
}
