//! What the loop does with the events of agents: which it handles next, and how much at once.

use super::{ClientConnection, Shell};
use crate::core::hub::{AgentId, AgentInput};
use crate::shell::inbox::Inbox;
use std::time::Instant;

impl Shell {
    /// Hands over what an agent said; what the hub does not take waits.
    pub(super) fn hear(
        &mut self,
        id: AgentId,
        input: AgentInput,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_)) {
            self.agents.remove(&id);
        }
        client.press(self.output.pressure());
        let rest = self.hub.agent(id, input, now, client);
        self.backlog = rest.map(|rest| (id, rest));
        self.hand_over(client, now);
    }

    /// Handles what has arrived, as far as the client has room. With several agents only a slice of a large batch is
    /// handled, after everything small was handled and written.
    pub(super) fn hear_waiting(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        if self.agents.len() <= 1 {
            return self.hear_all(inbox, client, now);
        }
        inbox.receive();
        while self.has_room()
            && let Some((id, input)) = inbox.next_small()
        {
            self.hear(id, input, client, now);
        }
        self.drained(inbox, client, now);
        self.output.flush();
        if self.has_room()
            && let Some((id, input)) = inbox.next_slice()
        {
            self.hear(id, input, client, now);
            self.drained(inbox, client, now);
        }
    }

    /// Handles everything that has arrived, as far as the client has room.
    pub(super) fn hear_all(
        &mut self,
        inbox: &mut Inbox,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        inbox.receive();
        while self.has_room()
            && let Some((id, input)) = inbox.next_whole()
        {
            self.hear(id, input, client, now);
            inbox.receive();
        }
        self.drained(inbox, client, now);
    }

    /// Whether the client, and the hub, can take more of what agents say.
    fn has_room(&self) -> bool {
        !self.output.is_full() && self.backlog.is_none()
    }

    /// Ends the turns that were answered, unless a batch is handled in part only.
    fn drained(&mut self, inbox: &Inbox, client: &mut impl ClientConnection, now: Instant) {
        let all = self.backlog.is_none() && inbox.is_round_over();
        self.hub.drained(all, now, client);
        self.hand_over(client, now);
    }
}
