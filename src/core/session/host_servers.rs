//! Selection of the server for files and terminals of a session: one of its clients, or acpipe.

use super::SessionMachine;
use super::host_call::HostStage;
use crate::core::client::ClientId;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::host::HostRequest;

/// Maximum number of client terminals that are remembered per session. Requests for further ones go to the
/// leader, the client that the session works for.
const MAX_CLIENT_TERMINALS: usize = 1024;

/// Server of a request.
pub(super) enum HostServer {
    Client(ClientId),
    Acpipe,
}

impl SessionMachine {
    /// Returns the server for a request; `None` if no client nor acpipe can serve it.
    ///
    /// A terminal is served by its creator. Other requests are served by a client if one can: a new terminal
    /// by a client that already has terminals of the session, otherwise the leader, otherwise any client.
    /// acpipe comes last.
    pub(super) fn server(&self, request: &HostRequest, cx: &Cx<'_>) -> Option<HostServer> {
        let made_by = match request.terminal() {
            Some(terminal) if cx.hosting.host.has_terminal(&self.id, terminal) => {
                return Some(HostServer::Acpipe);
            }
            Some(terminal) => self.client_terminals.get(terminal).copied(),
            None if request.creates_terminal() => self.client_terminals.values().next().copied(),
            None => None,
        };
        let others = self.subscribers.leader().into_iter();
        let others = others.chain(self.subscribers.controllers());
        let mut candidates = made_by.into_iter().chain(others);
        let client = candidates.find(|client| {
            let declaration = cx.shared.clients.get(*client);
            let covers = declaration.is_some_and(|d| d.offer().covers(request));
            covers && self.subscribers.controllers().any(|other| other == *client)
        });
        let own = || {
            cx.shared
                .served
                .covers(request)
                .then_some(HostServer::Acpipe)
        };
        client.map(HostServer::Client).or_else(own)
    }

    /// Records which client has a terminal.
    pub(super) fn note_client_terminal(&mut self, terminal: &str, client: ClientId) {
        if self.client_terminals.len() < MAX_CLIENT_TERMINALS {
            self.client_terminals.insert(terminal.to_owned(), client);
        }
    }

    /// Handles a client's departure: the agent gets errors for the requests that the client was serving.
    pub(super) fn end_host_calls_to(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        self.client_terminals.retain(|_, server| *server != client);
        let calls = self.host_calls.iter().filter_map(|(ticket, call)| {
            let is_own = matches!(&call.stage, HostStage::Client(f) if f.client == client);
            is_own.then_some(*ticket)
        });
        for ticket in calls.collect::<Vec<_>>() {
            let message = "the client that served this request disconnected";
            let error = Error::new(ErrorKind::Resource, message);
            self.answer_host_call(ticket, &Err(error), cx);
        }
    }
}
