//! Order and slicing in which the loop handles the events of agents.

use super::{ClientConnection, Shell};
use crate::core::hub::{AgentId, AgentInput};
use crate::shell::inbox::Inbox;
use std::time::Instant;

impl Shell {
    /// Passes an agent's event to the hub; the part that the hub does not accept is kept in `backlog`.
    pub(super) fn handle_agent_event(
        &mut self,
        id: AgentId,
        input: AgentInput,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_)) {
            self.agents.remove(&id);
            self.exchanges.remove(&id);
        }
        client.set_backpressure(self.output.pressure());
        let rest = self.hub.agent(id, input, now, client);
        self.backlog = rest.map(|rest| (id, rest));
        self.hand_over(client, now);
    }

    /// Handles received events while the client has room. With several agents, all small events are handled
    /// and written first, then one slice of a large batch.
    pub(super) fn handle_queued_events(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if self.agents.len() + self.exchanges.len() <= 1 {
            return self.handle_all_events(inbox, client, now);
        }
        inbox.receive();
        while self.has_room()
            && let Some((id, input)) = inbox.next_small()
        {
            self.handle_agent_event(id, input, client, now);
        }
        self.drained(inbox, client, now);
        self.output.flush();
        if self.has_room()
            && let Some((id, input)) = inbox.next_slice()
        {
            self.handle_agent_event(id, input, client, now);
            self.drained(inbox, client, now);
        }
    }

    /// Handles all received events while the client has room.
    pub(super) fn handle_all_events(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        inbox.receive();
        while self.has_room()
            && let Some((id, input)) = inbox.next_whole()
        {
            self.handle_agent_event(id, input, client, now);
            inbox.receive();
        }
        self.drained(inbox, client, now);
    }

    /// Returns `true` if client and hub accept more events of agents.
    fn has_room(&self) -> bool {
        !self.output.is_full() && self.backlog.is_none()
    }

    /// Handles the timers that are due. Pending responses are handled first, so that none of them is timed
    /// out.
    pub(super) fn tick(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        self.handle_all_events(inbox, client, now);
        self.hub.tick(now, client);
        // A timer may have ended the wait for late output of an answered turn.
        self.drained(inbox, client, now);
    }

    /// Ends answered turns, unless a batch is only partly handled.
    fn drained(&mut self, inbox: &Inbox, client: &mut impl ClientConnection, now: Instant) {
        let all = self.backlog.is_none() && inbox.is_round_over();
        self.hub.drained(all, now, client);
        self.hand_over(client, now);
    }
}
