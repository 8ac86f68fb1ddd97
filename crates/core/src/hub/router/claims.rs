//! Search for the session to which an agent gave a session's id later, among open and stored sessions.

use super::Router;
use crate::agent_session_record::AgentSessionRecord;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::session::{RestoreEvent, SessionMachine, end_claim};
use crate::sessions::Sessions;
use crate::shared::{PendingStoreReply, StoreCall};
use crate::store::{Card, CardQuery};
use acpipe_model::error::Error;
use acpipe_model::limits::Timeout;
use tracing::warn;

/// Begins the search for a session that is being restored.
pub(super) fn check(router: &mut Router, id: &str, cx: &mut HubCx<'_>) {
    let Some(own) = claim_of(&router.sessions, &router.agents, id) else {
        searched(router, id, &[], cx);
        return;
    };
    let query = CardQuery {
        agent_session: Some(own.id),
        ..CardQuery::default()
    };
    let ticket = router.shared.ids.ticket();
    if router.store.list(ticket, query) {
        let wait = PendingStoreReply {
            until: router.shared.settings.limits.until(Timeout::Store, cx.now),
            call: StoreCall::Claim(id.to_owned()),
        };
        router.shared.pending_store_replies.insert(ticket, wait);
    } else {
        searched(router, id, &[], cx);
    }
}

/// Completes the search with the cards of stored sessions. Without them, the open sessions decide.
pub fn searched(router: &mut Router, id: &str, cards: &[Card], cx: &mut HubCx<'_>) {
    let later = claim_of(&router.sessions, &router.agents, id).and_then(|own| {
        let open = router.sessions.values();
        let open = open.map(|session| (&session.id, session.known.given()));
        let stored = cards.iter().map(|card| (&card.session_id, &*card.agents));
        let stored = stored.filter(|(id, _)| !router.sessions.contains_key(id));
        let mut others = open.chain(stored).filter(|(other, _)| *other != id);
        let later = others.find(|(_, given)| given.iter().any(|other| own.is_ended_by(other)));
        later.map(|(session, _)| session.clone())
    });
    router.with(id, cx, |session, cx| {
        session.restore(RestoreEvent::ClaimChecked(later), cx);
    });
}

/// Completes the search without the stored sessions, which cannot be read.
pub fn not_searched(router: &mut Router, id: &str, error: &Error, cx: &mut HubCx<'_>) {
    warn!(session = id, %error, "cannot check whether another session has the agent's id of the session");
    searched(router, id, &[], cx);
}

/// Ends the claims of all other sessions on the id under which the agent created a session for this one.
pub(super) fn end_others(router: &mut Router, id: &str, cx: &mut HubCx<'_>) {
    let Some(own) = claim_of(&router.sessions, &router.agents, id).filter(|own| own.created) else {
        return;
    };
    let has_claim = |session: &&SessionMachine| {
        let mut given = session.known.given().iter();
        session.id != id && given.any(|other| other.is_of_same_id(&own))
    };
    let others = router.sessions.values().filter(has_claim);
    for other in others.map(|session| session.id.clone()).collect::<Vec<_>>() {
        router.with(&other, cx, |session, cx| {
            end_claim(&own, id, session, cx);
        });
    }
    router.store.end_claims(id, &own);
}

fn claim_of(sessions: &Sessions, agents: &Agents, id: &str) -> Option<AgentSessionRecord> {
    let session = sessions.get(id)?;
    let agent = agents.get(session.agent).identity();
    session.known.find(&agent).cloned()
}
