//! Search for the session to which an agent gave a session's id later, among open and stored sessions.

use super::Hub;
use super::cx::HubCx;
use crate::core::agent_session_record::AgentSessionRecord;
use crate::core::error::Error;
use crate::core::limits::Timeout;
use crate::core::session::SessionMachine;
use crate::core::shared::{PendingStoreReply, StoreCall};
use crate::core::store::{Card, CardQuery};
use tracing::warn;

impl Hub {
    /// Begins the search for a session that is being restored.
    pub(super) fn check_claim(&mut self, id: &str, cx: &mut HubCx<'_>) {
        let Some(own) = self.claim_of(id) else {
            self.claim_searched(id, &[], cx);
            return;
        };
        let query = CardQuery {
            agent_session: Some(own.id),
            ..CardQuery::default()
        };
        let ticket = self.shared.ids.ticket();
        if self.store.list(ticket, query) {
            let wait = PendingStoreReply {
                until: self.shared.settings.limits.until(Timeout::Store, cx.now),
                call: StoreCall::Claim(id.to_owned()),
            };
            self.shared.pending_store_replies.insert(ticket, wait);
        } else {
            self.claim_searched(id, &[], cx);
        }
    }

    /// Completes the search with the cards of stored sessions. Without them, the open sessions decide.
    pub(super) fn claim_searched(&mut self, id: &str, cards: &[Card], cx: &mut HubCx<'_>) {
        let later = self.claim_of(id).and_then(|own| {
            let open = self.sessions.values();
            let open = open.map(|session| (&session.id, session.known.given()));
            let stored = cards.iter().map(|card| (&card.session_id, &*card.agents));
            let stored = stored.filter(|(id, _)| !self.sessions.contains_key(id));
            let mut others = open.chain(stored).filter(|(other, _)| *other != id);
            let later = others.find(|(_, given)| given.iter().any(|other| own.is_ended_by(other)));
            later.map(|(session, _)| session.clone())
        });
        self.with(id, cx, |session, cx| {
            session.claim_checked(later, cx);
        });
    }

    /// Completes the search without the stored sessions, which cannot be read.
    pub(super) fn claim_not_searched(&mut self, id: &str, error: &Error, cx: &mut HubCx<'_>) {
        warn!(session = id, %error, "cannot check whether another session has the agent's id of the session");
        self.claim_searched(id, &[], cx);
    }

    /// Ends the claims of all other sessions on the id under which the agent created a session for this one.
    pub(super) fn end_other_claims(&mut self, id: &str, cx: &mut HubCx<'_>) {
        let Some(own) = self.claim_of(id).filter(|own| own.created) else {
            return;
        };
        let has_claim = |session: &&SessionMachine| {
            let mut given = session.known.given().iter();
            session.id != id && given.any(|other| other.is_of_same_id(&own))
        };
        let others = self.sessions.values().filter(has_claim);
        for other in others.map(|session| session.id.clone()).collect::<Vec<_>>() {
            self.with(&other, cx, |session, cx| {
                session.end_claim(&own, id, cx);
            });
        }
        self.store.end_claims(id, &own);
    }

    /// Returns the record of a session at its agent.
    fn claim_of(&self, id: &str) -> Option<AgentSessionRecord> {
        let session = self.sessions.get(id)?;
        let agent = self.agents.get(session.agent).identity();
        session.known.find(&agent).cloned()
    }
}
