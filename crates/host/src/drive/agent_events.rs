//! Order and slicing in which the loop handles the events of agents and reads the history.

use super::{ClientConnection, Shell};
use crate::agent::AgentHandle;
use crate::inbox::Inbox;
use acpipe_core::hub::{AgentId, AgentInput, HubCx};
use acpipe_json::frame::Batch;
use std::time::Instant;

impl Shell {
    /// Passes an agent's event to the hub. If the hub does not accept all of it, the agent is held.
    pub(super) fn handle_agent_event(
        &mut self,
        (id, input): (AgentId, AgentInput),
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if let Some(change) = self.agents.get(&id).and_then(AgentHandle::health_change) {
            // Only batches can be accepted in part.
            let _ = self
                .hub
                .agent(id, AgentInput::Health(change), &mut HubCx::new(now, client));
        }
        if matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_)) {
            self.agents.remove(&id);
            self.exchanges.remove(&id);
        }
        client.set_backpressure(self.pressure());
        if let Some(rest) = self.hub.agent(id, input, &mut HubCx::new(now, client)) {
            self.held.insert(id, (rest, now));
            inbox.hold(id);
        }
        self.hand_over(client, now);
    }

    /// Reports changes in the health of all processes, which explain timeouts. On a runtime with several
    /// threads more may change at once; `handle_agent_event` reports what precedes an event.
    pub(super) fn report_health(&mut self, client: &mut impl ClientConnection, now: Instant) {
        for (id, agent) in &self.agents {
            if let Some(change) = agent.health_change() {
                // Only batches can be accepted in part.
                let _ = self.hub.agent(
                    *id,
                    AgentInput::Health(change),
                    &mut HubCx::new(now, client),
                );
            }
        }
    }

    /// Passes the output of held agents to the hub again. A client that read or left makes room for an agent,
    /// and so does a turn for a client with room.
    pub(super) fn retry_held_agents(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if self.held.is_empty() || !self.has_room() {
            return;
        }
        // The held agents may take all the room, each time: other agents must not wait for them.
        self.handle_small_events(inbox, client, now);
        self.slice_is_first = !self.slice_is_first;
        if self.slice_is_first {
            self.handle_slice(inbox, client, now);
        }
        // They take turns, too: the first one begins after the one whose output was accepted last.
        let mut held = std::mem::take(&mut self.held);
        let next = held.split_off(&AgentId(self.last_retried.0 + 1));
        for (id, (rest, postponed)) in next.into_iter().chain(held) {
            self.flush_output();
            if !self.has_room() {
                self.held.insert(id, (rest, postponed));
                continue;
            }
            let before = length(&rest);
            self.handle_agent_event((id, rest), inbox, client, now);
            let rest = self.held.get(&id).map(|(rest, _)| length(rest));
            if rest.is_none() {
                inbox.release(id);
            }
            if rest != Some(before) {
                self.last_retried = id;
            }
        }
        self.drained(inbox, client, now);
        self.settle(client, now);
    }

    fn has_several_agents(&self) -> bool {
        self.agents.len() + self.exchanges.len() > 1
    }

    /// Sets how much output is queued, by whether agents share stdout.
    pub(super) fn share_output(&mut self, client: &mut impl ClientConnection) {
        let shared = self.has_several_agents();
        if let Some(output) = &mut self.output {
            output.set_shared(shared);
            client.set_window(output.window());
        }
    }

    /// Returns `true` while the hub reads the history for a client with room.
    pub(super) fn is_reading(&self, client: &mut impl ClientConnection) -> bool {
        // The output may have been written since the client last learned of its backpressure.
        client.set_backpressure(self.pressure());
        self.hub.is_reading(client)
    }

    /// Postpones the timeouts of held agents by the time in which their output was not read.
    pub(super) fn postpone_held(&mut self) {
        let now = self.clock.now();
        for (id, (_, postponed)) in &mut self.held {
            self.hub
                .postpone_agent(*id, now.saturating_duration_since(*postponed));
            *postponed = now;
        }
    }

    /// Handles received events while the client has room. With several agents, all small events are handled
    /// and written first, then one slice of a large batch.
    pub(super) fn handle_queued_events(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if !self.has_several_agents() {
            return self.handle_all_events(inbox, client, now);
        }
        self.handle_small_events(inbox, client, now);
        self.drained(inbox, client, now);
        self.flush_output();
        self.handle_slice(inbox, client, now);
    }

    /// Handles all small events that have arrived while the client has room.
    fn handle_small_events(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        inbox.receive();
        while self.has_room()
            && let Some(event) = inbox.next_small()
        {
            self.handle_agent_event(event, inbox, client, now);
        }
    }

    /// Handles one slice of a large batch if the client has room.
    fn handle_slice(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if self.has_room()
            && let Some(event) = inbox.next_slice()
        {
            self.handle_agent_event(event, inbox, client, now);
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
            && let Some(event) = inbox.next_whole()
        {
            self.handle_agent_event(event, inbox, client, now);
            inbox.receive();
        }
        self.drained(inbox, client, now);
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
        self.hub.tick(&mut HubCx::new(now, client));
        // A timer may have ended the wait for late output of an answered turn.
        self.drained(inbox, client, now);
    }

    /// Ends answered turns, unless a batch is only partly handled.
    fn drained(&mut self, inbox: &Inbox, client: &mut impl ClientConnection, now: Instant) {
        self.hub
            .drained(inbox.is_round_over(), &mut HubCx::new(now, client));
        self.hand_over(client, now);
    }
}

/// Returns the number of bytes of a batch of lines; 0 for other events.
fn length(input: &AgentInput) -> usize {
    match input {
        AgentInput::Batch(Batch::Lines(lines)) => lines.len(),
        _ => 0,
    }
}
