//! Requests for files and terminals that nobody waits for any more: withdrawn by the agent, or of a session that has ended.

use super::{Bridge, Effect, Way};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::host::Ticket;
use crate::core::permit::By;
use serde_json::value::RawValue;
use std::time::Instant;

impl Bridge {
    /// The agent withdrew a request: what the client was asked is withdrawn, a file is not read or written any more.
    /// The request is answered all the same. What is done with a terminal goes on.
    pub(in crate::core::bridge) fn unwanted(&mut self, key: &RawValue, outlet: &mut impl Outlet) {
        let agent = self.agent_number();
        let found = self.hosting.open.iter().find(|(_, open)| {
            let may_stop = matches!(open.way, Way::Client(..) | Way::File);
            may_stop && open.agent == agent && open.key.get() == key.get()
        });
        if let Some((&ticket, open)) = found {
            match &open.way {
                Way::Client(asked) => outlet.withdraw(asked.id, &By::Agent),
                _ => self.stop_file(ticket),
            }
            let error = Error::new(ErrorKind::Cancelled, "the agent withdrew its request");
            self.answer_wanted(ticket, &Err(error), outlet);
        }
    }

    fn stop_file(&mut self, ticket: Ticket) {
        self.hosting.host.stop_file(ticket);
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
    }

    /// Terminals and requests of sessions that no agent has any more end.
    pub(super) fn sweep_hosting(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let (serving, agent) = (self.is_serving(), self.agent_number());
        // One that is being opened is the agent's already.
        let live = |id: &str| serving && self.routes.values().any(|routed| routed == id);
        let dead: Vec<Ticket> = self
            .hosting
            .open
            .iter()
            .filter(|(_, open)| open.agent != agent || !live(&open.session))
            .map(|(ticket, _)| *ticket)
            .collect();
        let mut over = self.hosting.host.sessions();
        over.retain(|id| !live(id));
        for ticket in dead {
            match self.hosting.open.get(&ticket).map(|open| &open.way) {
                Some(Way::Client(asked)) => outlet.withdraw(asked.id, &By::End),
                Some(Way::File) => self.stop_file(ticket),
                _ => {}
            }
            let error = Error::new(ErrorKind::Cancelled, "its session has ended");
            self.answer_wanted(ticket, &Err(error), outlet);
        }
        for id in over {
            self.hosting.host.release_session(&id);
        }
        self.settle_host(now, outlet);
    }
}
