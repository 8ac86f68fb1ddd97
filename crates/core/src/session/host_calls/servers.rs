//! Selection of the server for files and terminals of a session: one of its clients, or acpipe.

use super::HostCalls;
use crate::client::ClientId;
use crate::subscribers::Subscribers;
use acpipe_model::host::{HostRequest, Ticket};
use std::collections::BTreeMap;

/// Maximum number of client terminals that are remembered per session. Requests for further ones go to the
/// leader, the client that the session works for.
const MAX_CLIENT_TERMINALS: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostServer {
    /// A client that declared the capability.
    Client(ClientId),
    Acpipe,
}

pub(super) fn note(terminals: &mut BTreeMap<String, ClientId>, terminal: &str, client: ClientId) {
    if terminals.len() < MAX_CLIENT_TERMINALS {
        terminals.insert(terminal.to_owned(), client);
    }
}

impl HostCalls {
    /// Returns the client that serves a request, among those that can (`covers`); `None` without any.
    ///
    /// A terminal is served by its creator. Other requests are served by a client if one can: a new terminal
    /// by a client that already has terminals of the session, otherwise the leader, otherwise any client.
    pub fn serving_client(
        &self,
        request: &HostRequest,
        subscribers: &Subscribers,
        covers: impl Fn(ClientId) -> bool,
    ) -> Option<ClientId> {
        let made_by = match request.terminal() {
            Some(terminal) => self.client_terminals.get(terminal).copied(),
            None if request.creates_terminal() => self.client_terminals.values().next().copied(),
            None => None,
        };
        let others = subscribers.leader().into_iter();
        let others = others.chain(subscribers.controllers());
        let mut candidates = made_by.into_iter().chain(others);
        candidates.find(|client| {
            covers(*client) && subscribers.controllers().any(|other| other == *client)
        })
    }

    /// Forgets a client that leaves. Returns the requests that it was serving.
    pub fn client_left(&mut self, client: ClientId) -> Vec<Ticket> {
        self.client_terminals.retain(|_, server| *server != client);
        let is_own = |ticket: &Ticket| {
            let forwarded = self.calls.get(ticket).and_then(|call| call.forwarded());
            forwarded.is_some_and(|forwarded| forwarded.client == client)
        };
        self.calls.keys().copied().filter(is_own).collect()
    }
}
