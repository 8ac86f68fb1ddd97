//! Agents that have to wait for their clients.

use crate::client::ClientId;
use crate::client_sink::ClientSinks;
use crate::clients::ClientDeclaration;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::session::SessionMachine;
use acpipe_protocol::wire::OnDisconnect;
use std::collections::BTreeSet;

/// Returns `true` if an agent has to wait because no client that it works for has room.
///
/// An agent works for the clients whose turns it runs or whose sessions it opens, otherwise for the clients
/// of its sessions.
/// If one of them has room, the agent continues and the others lag.
pub(super) fn must_wait(
    router: &mut Router,
    agent: AgentRef,
    clients: &mut dyn ClientSinks,
) -> bool {
    let mut all = router.shared().clients.ids();
    let is_any_full = all.any(|client| clients.is_client_full(client));
    drop(all);
    is_any_full && waits_for_all(router, agent, clients)
}

#[cold]
fn waits_for_all(router: &mut Router, agent: AgentRef, clients: &mut dyn ClientSinks) -> bool {
    let own = || router.sessions().of(agent);
    let leader = |session: &SessionMachine| session.talk.output.subscribers().awaited_leader();
    let is_awaited =
        |session: &&SessionMachine| session.talk.turns.is_prompted() || session.is_opening();
    let awaited: Vec<Option<ClientId>> = own().filter(is_awaited).map(leader).collect();
    // A session for which no client has to read has room, like one whose client reads.
    let is_any_free = awaited.contains(&None);
    let mut served: BTreeSet<ClientId> = awaited.into_iter().flatten().collect();
    if served.is_empty() {
        served = own().filter_map(leader).collect();
    }
    if served.is_empty() {
        let waits = |d: &ClientDeclaration| d.on_disconnect == OnDisconnect::Cancel;
        served = router.shared().clients.declared(waits).collect();
    }
    let full: BTreeSet<ClientId> = served
        .iter()
        .copied()
        .filter(|client| clients.is_client_full(*client))
        .collect();
    if full.len() == served.len() && !is_any_free {
        return !served.is_empty();
    }
    if !full.is_empty() {
        for id in router.sessions().ids_of(agent) {
            if let Some(session) = router.sessions_mut().get_mut(&id) {
                session.talk.output.lag_leader(&full);
            }
        }
    }
    false
}
