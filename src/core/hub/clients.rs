//! Clients: their subscriptions, the clients that an agent waits for, and the effects of a client that
//! leaves.

use super::Hub;
use super::catalog::retire_agents_of;
use super::cx::HubCx;
use super::router::{panics, room, storage};
use crate::core::client::ClientId;
use crate::core::client_request::{ClientAnswer, ClientRequestId};
use crate::core::error::Error;
use crate::core::session::SessionMachine;
use crate::core::shared::RequestOwner;
use crate::proto::wire::SubscribeParams;
use tracing::debug;

impl Hub {
    /// Sets whether a client receives chunks: of one session, or of all sessions to which it is subscribed or
    /// will be.
    pub(super) fn subscribe(
        &mut self,
        client: ClientId,
        p: &SubscribeParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        if let Some(id) = &p.session_id {
            let id = self.catalog.session_id(&self.router, client, Some(id))?;
            return self
                .catalog
                .with_session(&mut self.router, &id, cx, |session, cx| {
                    session.join(client, cx);
                    session.output.set_chunks(client, p.chunks, cx.clients);
                    Ok(())
                });
        }
        if let Some(declaration) = self.router.shared_mut().clients.get_mut(client) {
            declaration.subscription.chunks = p.chunks;
        }
        for session in self.router.sessions_mut().values_mut() {
            session.output.set_chunks(client, p.chunks, cx.clients);
        }
        self.router.unloaded_mut().set_chunks(client, p.chunks);
        Ok(())
    }

    /// Handles a client's response to a client request. A response to a request that is already decided is
    /// ignored.
    pub fn client_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        cx: &mut HubCx<'_>,
    ) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients);
            match hub.router.shared().client_requests.get(&id).cloned() {
                Some(RequestOwner::Session(session)) => {
                    hub.router.with(&session, cx, |session, cx| {
                        session.client_answered(client, id, answer, cx);
                    });
                }
                Some(RequestOwner::Agent(agent)) => {
                    hub.router.with_agent(agent, cx, |agent, cx| {
                        agent.client_answered(client, id, answer, cx);
                    });
                }
                Some(RequestOwner::Hub) => {
                    hub.events
                        .forwards()
                        .answered(&mut hub.router, client, id, answer)
                }
                None => debug!(id = id.0, "response to a request that is already answered"),
            }
            hub.run_deferred(cx);
        });
    }

    /// Handles a client that has left, with only its own requests: its calls are not answered, its turns are
    /// cancelled unless they are to go on, and requests sent to it are left to the other clients.
    pub fn client_left(&mut self, client: ClientId, cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients);
            let declared = hub.router.shared().clients.get(client);
            let usual = declared.map(|d| d.on_disconnect).unwrap_or_default();
            hub.router.shared_mut().clients.remove(client);
            hub.forget_reads(client);
            hub.events.forwards().end_of(&mut hub.router, client);
            hub.agent_files.forget(client);
            room::forget_client(&mut hub.router, client, cx);
            for agent in hub.router.agents().all() {
                hub.router.with_agent(agent, cx, |agent, cx| {
                    agent.client_left(client, cx);
                });
            }
            let all: Vec<String> = hub.router.sessions().keys().cloned().collect();
            for id in all {
                hub.router.with(&id, cx, |session, cx| {
                    session.client_left(client, usual, cx);
                });
            }
            retire_agents_of(&mut hub.router, &mut hub.events, client, usual, cx);
            hub.catalog.forget(client);
            hub.run_deferred(cx);
        });
    }

    /// Sends lagging clients the chunks that they have not received, as far as they have room.
    pub fn catch_up(&mut self, cx: &mut HubCx<'_>) {
        let is_lagging = |session: &SessionMachine| session.output.subscribers().are_lagging();
        if !self.router.sessions().awake().any(is_lagging) {
            return;
        }
        // Only chunks that are written to the log are sent.
        storage::commit(&mut self.router, cx);
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.router
                .sessions_mut()
                .for_each_awake(|session| session.catch_up(cx.clients));
        });
    }
}
