//! The hub: five parts, and the order in which they see an event.
//!
//! The router owns the machines, `AgentEvents` reads what agents send, the catalog knows names, `HistoryReads` reads what
//! is stored, and `Lifecycle` has times and the end of the program. The hub owns nothing else, and has no rule about a
//! turn, a restore or a restart. A part does not see the hub: it gets the other parts that it uses as parameters.
//!
//! Events enter through few methods (`command`, `client_answered`, `agent`, `drained`, `handle_host_event`,
//! `stored`, `tick`, `client_disconnected`), each of which runs to its end without waiting. Effects for the shell are
//! collected in order; replies and chunks go to the [`ClientSinks`] at once.

mod agent_events;
mod agents;
mod catalog;
mod commands;
mod cx;
mod history_reads;
mod lifecycle;
mod metrics;
mod page;
mod router;
#[cfg(test)]
mod tests;
mod timers;

use super::agent::AgentMachine;
pub use super::agent::AgentSpec;
use super::client::{ClientId, Token};
use super::client_request::{ClientAnswer, ClientRequestId};
pub use super::client_requests::NO_CLIENT;
use super::client_sink::ClientSinks;
pub use super::config::{OnLost, Settings};
pub use super::effect::{AgentId, AgentInput, Effect, Measure};
use super::ids::AgentRef;
pub use super::metrics::HubMetrics;
use super::session::SessionMachine;
pub use super::session::{MAY_NOT_ASK, RUN_NOTICES};
use super::shared::{RequestOwner, StoreCall};
use super::store::{Store, StoreEvent};
use acpipe_model::error::Error;
pub use acpipe_model::event::Exit;
use acpipe_model::host::{HostEvent, HostServices};
use acpipe_model::limits::{Limits, Timeout};
use acpipe_protocol::wire::Program;
use agent_events::AgentEvents;
use agents::Agents;
use catalog::Catalog;
use commands::execute::remove_spent;
pub use cx::HubCx;
use history_reads::HistoryReads;
use lifecycle::Lifecycle;
use router::Router;
use router::panics::Routes;
use router::{claims, hosting, panics, room, storage};
use std::time::Instant;
use tracing::{debug, warn};

/// Passes events between clients, sessions and agents.
pub struct Hub {
    router: Router,
    events: AgentEvents,
    catalog: Catalog,
    reads: HistoryReads,
    lifecycle: Lifecycle,
}

impl Routes for Hub {
    fn router(&mut self) -> &mut Router {
        &mut self.router
    }
}

impl Hub {
    #[must_use]
    pub fn new(settings: Settings, store: Box<dyn Store>) -> Self {
        Self {
            router: Router::new(settings, store),
            events: AgentEvents::default(),
            catalog: Catalog::default(),
            reads: HistoryReads::default(),
            lifecycle: Lifecycle::default(),
        }
    }

    /// Sets the files and terminals that acpipe serves to agents if the client does not.
    #[must_use]
    pub fn serving(mut self, served: HostServices) -> Self {
        self.router.shared_mut().served = served;
        self
    }

    /// Has turns and openings of sessions reported ([`Effect::Report`]).
    #[must_use]
    pub fn reporting(mut self, reports: bool) -> Self {
        self.router.shared_mut().reports = reports;
        self
    }

    pub fn limits(&self) -> &Limits {
        &self.router.shared().settings.limits
    }

    /// Sets the wall clock at a running time, in milliseconds since 1970. The two clocks drift apart while
    /// acpipe is paused.
    pub fn set_time_of_day(&mut self, now: Instant, unix: i64) {
        self.router.shared_mut().settings.clock = (now, unix);
    }

    /// Takes the effects collected since the last call, in order.
    pub fn effects(&mut self, now: Instant) -> Vec<Effect> {
        let limits = self.lifecycle.limits();
        limits.drop_answered(self.router.sessions(), self.router.agents());
        self.router.take_effects(now)
    }

    /// Begins the wait for the next input.
    pub fn rest(&mut self, now: Instant) {
        self.router
            .sessions_mut()
            .settle(SessionMachine::has_more_to_do);
        self.router.shared_mut().waited.begin(now);
    }

    /// Ends the wait for the next input.
    pub fn wake(&mut self, now: Instant) {
        self.router.shared_mut().waited.end(now);
    }

    /// Returns `true` while an agent is being stopped. The steps of a stop must not wait for the client.
    pub fn is_stopping(&self) -> bool {
        self.router.agents().iter().any(AgentMachine::is_stopping)
    }

    pub fn is_ending(&self) -> bool {
        self.lifecycle.is_ending()
    }

    /// Shuts down in order after the client is gone: its stdin ended, or it closed acpipe's stdout.
    pub fn client_disconnected(&mut self, cx: &mut HubCx<'_>) {
        self.end(None, cx);
    }

    fn end(&mut self, token: Option<Token>, cx: &mut HubCx<'_>) {
        storage::number_unsent(&mut self.router, cx.clients);
        self.reads.stop(cx);
        self.catalog.end_searches(cx);
        self.lifecycle.end(token);
        self.events.end();
        let until = self.limits().until(Timeout::Store, cx.now);
        for wait in self.router.shared_mut().pending_store_replies.values_mut() {
            wait.until = wait.until.or(until);
        }
        for agent in self.router.agents().all() {
            self.events.stop_agent(&mut self.router, agent, cx);
        }
        self.lifecycle.finish_if_done(&mut self.router, cx);
    }

    /// Performs the actions that had to wait for the end of an event.
    pub(super) fn run_deferred(&mut self, cx: &mut HubCx<'_>) {
        self.router.continue_sessions(cx);
        // While the agents are being stopped, their sessions end with them.
        if !self.is_ending() {
            remove_spent(&self.catalog, &mut self.router, cx);
        }
        hosting::continue_all(&mut self.router, cx);
        self.reads.files().continue_deletions(&mut self.router, cx);
        for agent in self.router.agents().all() {
            self.events.continue_renewal(&mut self.router, agent, cx);
        }
        self.lifecycle.finish_if_done(&mut self.router, cx);
    }

    /// Ends the answered turns after the received output is read. With `all` false, and for the turns of an
    /// agent that waits for its clients, only a part of it is read: such a turn ends a little later.
    pub fn drained(&mut self, all: bool, cx: &mut HubCx<'_>) {
        let events = &self.events;
        let is_read = |agents: &Agents, agent: Option<AgentRef>| {
            all && !agent.is_some_and(|agent| events.has_output_of(agents, agent))
        };
        self.router.end_answered(is_read, cx);
        panics::catch_and_repair(self, cx, Self::run_deferred);
    }

    pub fn stored(&mut self, event: StoreEvent, cx: &mut HubCx<'_>) {
        match event {
            StoreEvent::Synced { ticket, outcome } => {
                if let Err(error) = &outcome {
                    warn!(%error, "cannot flush to disk; recent messages may be lost if the machine crashes");
                }
                let wait = self
                    .router
                    .shared_mut()
                    .pending_store_replies
                    .remove(&ticket);
                if let Some(wait) = wait {
                    storage::synced(&mut self.router, wait, outcome, cx);
                }
            }
            StoreEvent::Appended => storage::commit(&mut self.router, cx),
            StoreEvent::Listed { ticket, outcome } => {
                let wait = self
                    .router
                    .shared_mut()
                    .pending_store_replies
                    .remove(&ticket);
                match (wait.map(|wait| wait.call), outcome) {
                    (Some(StoreCall::List(token, params, open)), Ok(cards)) => {
                        self.events.listings().cards_listed(
                            &mut self.router,
                            (token, params, open),
                            cards,
                            cx,
                        );
                    }
                    (Some(StoreCall::List(token, ..)), Err(error)) => {
                        cx.clients.reply(token, Err(error));
                    }
                    (Some(StoreCall::Claim(id)), Ok(cards)) => {
                        claims::searched(&mut self.router, &id, &cards, cx);
                    }
                    (Some(StoreCall::Claim(id)), Err(error)) => {
                        claims::not_searched(&mut self.router, &id, &error, cx);
                    }
                    (Some(StoreCall::Turn(..)) | None, _) => {}
                }
            }
        }
        self.lifecycle.finish_if_done(&mut self.router, cx);
    }

    pub fn handle_host_event(&mut self, event: HostEvent, cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            hosting::handle(&mut hub.router, event, cx);
        });
    }

    /// Writes the new records of all sessions. This must come before clients receive anything, since
    /// everything that a client received must be in the log.
    pub fn commit(&mut self, cx: &mut HubCx<'_>) {
        storage::commit(&mut self.router, cx);
    }

    /// Handles input of an agent's process. Input of a process that no longer exists is ignored.
    ///
    /// Returns the part of the output that was not handled, to be passed again when the agent's clients have
    /// room: a few bytes from an agent can become many for a client.
    #[must_use]
    pub fn agent(
        &mut self,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) -> Option<AgentInput> {
        let Some(agent) = self.router.agents().with_process(id) else {
            self.reads.files().input(&mut self.router, id, input, cx);
            return None;
        };
        let rest = self.events.input(&mut self.router, agent, id, input, cx);
        self.lifecycle.finish_if_done(&mut self.router, cx);
        rest
    }

    /// Shortens the time that processes get to stop, after the user's second interrupt.
    pub fn expedite(&mut self, cx: &mut HubCx<'_>) {
        for agent in self.router.agents().all() {
            self.router.with_agent(agent, cx, |agent, cx| {
                if let Some(connection) = agent.connection_mut() {
                    connection.expedite(cx);
                }
            });
        }
    }

    pub fn agent_of_process(&self, id: AgentId) -> Option<&str> {
        let agent = self.router.agents().with_process(id)?;
        Some(self.router.agents().get(agent).name())
    }

    /// Handles the result of [`Effect::FindPrograms`]: its ticket, and for each agent its program, if it was
    /// found.
    pub fn programs_found(&mut self, found: (u64, Vec<Option<Program>>), cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.catalog.answer_search(&hub.router, found, cx.clients);
        });
    }

    /// Makes this the hub of a daemon, whose clients may have settings of their own.
    #[must_use]
    pub fn resident(mut self) -> Self {
        self.router.shared_mut().is_resident = true;
        self
    }

    /// Gives a client settings of its own. Call it before the first call of the client.
    ///
    /// # Errors
    /// There are too many different agent definitions.
    pub fn client_joined(
        &mut self,
        client: ClientId,
        settings: Box<Settings>,
    ) -> Result<(), Error> {
        self.catalog
            .join(self.router.agents_mut(), client, settings)
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
                        agent.decide_questions(|open| open.client_answered(client, id, answer, cx));
                    });
                }
                Some(RequestOwner::Hub) => {
                    hub.events
                        .forwards()
                        .answered(&mut hub.router, client, id, answer);
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
            hub.reads.forget(client);
            hub.events.forwards().end_of(&mut hub.router, client);
            room::forget_client(&mut hub.router, client, cx);
            for agent in hub.router.agents().all() {
                hub.router.with_agent(agent, cx, |agent, cx| {
                    agent.decide_questions(|open| open.client_left(client, cx));
                });
            }
            let all: Vec<String> = hub.router.sessions().keys().cloned().collect();
            for id in all {
                hub.router.with(&id, cx, |session, cx| {
                    session.client_left(client, usual, cx);
                });
            }
            hub.events.retire_of(&mut hub.router, client, usual, cx);
            hub.catalog.forget(client);
            hub.run_deferred(cx);
        });
    }

    /// Sends lagging clients the chunks that they have not received, as far as they have room.
    pub fn catch_up(&mut self, cx: &mut HubCx<'_>) {
        let is_lagging = |session: &SessionMachine| session.talk.output.subscribers().are_lagging();
        if !self.router.sessions().awake().any(is_lagging) {
            return;
        }
        // Only chunks that are written to the log are sent.
        storage::commit(&mut self.router, cx);
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.router
                .sessions_mut()
                .for_each_awake(|session| session.talk.output.catch_up(cx.clients));
        });
    }

    /// Returns `true` while a call reads the history. A replay to a client that has no room waits for the client, so
    /// that it is not tried again without end.
    #[must_use]
    pub fn is_reading(&self, clients: &mut dyn ClientSinks) -> bool {
        self.reads.is_reading(self.router.sessions(), clients)
    }

    /// Reads a piece of the messages that clients requested.
    pub fn read_on(&mut self, cx: &mut HubCx<'_>) {
        self.reads.read_on(&self.catalog, &mut self.router, cx);
    }

    /// Continues the replays as far as the clients have room, one turn after the other for each client.
    pub fn replay_turns(&mut self, clients: &mut dyn ClientSinks) {
        let router = &self.router;
        self.reads
            .replay_turns(router.sessions(), router.shared(), clients);
    }

    /// Ends the calls whose limit has passed. This applies also while their client does not read.
    pub fn end_overlong_calls(&mut self, cx: &mut HubCx<'_>) {
        self.lifecycle.limits().end_overlong(&mut self.router, cx);
    }
}
