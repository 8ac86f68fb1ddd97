//! Opens agents' transports and forwards lines and orders to them; `core/transport.rs` defines the
//! requirements on a transport.

use super::{ClientConnection, Shell};
use crate::core::hub::{AgentId, AgentInput};
use crate::core::transport::Transport;
use crate::shell::agent::{self, Agent};
use crate::shell::files;
use crate::shell::in_process;
use crate::shell::loopback;
use crate::shell::supervisor::codec::SupervisorOrder;
use std::time::Instant;

impl Shell {
    /// Opens a transport. Its output and failures arrive through the inbox.
    pub(super) fn open(&mut self, id: AgentId, transport: Transport) {
        let events = self.events.clone();
        match transport {
            Transport::Process(spec) => {
                let (terms, login) = (self.terms.clone(), self.login.clone());
                let agent = agent::start(id, spec, terms, login, events);
                self.agents.insert(id, agent);
            }
            Transport::InProcess(name) => {
                let agent = in_process::start(id, &name, self.in_process.get(&name), events);
                self.agents.insert(id, agent);
            }
            Transport::File(path) => files::read(id, path.into(), self.terms.max_line, events),
            Transport::Directory(path) => files::list(id, path.into(), events),
            Transport::RealPath(path) => files::resolve(id, path.into(), events),
            Transport::Loopback => {
                self.loopbacks.insert(id, loopback::start(id, events));
            }
            Transport::Removal { root, path } => {
                files::remove(id, root.into(), path.into(), events);
            }
            Transport::Http(request) => {
                let max_line = self.terms.max_line;
                let exchange = self.http.start(id, *request, max_line, events);
                self.exchanges.insert(id, exchange);
            }
        }
    }

    /// Queues lines for a transport.
    pub(super) fn send(
        &mut self,
        id: AgentId,
        lines: Vec<u8>,
        client: &mut impl ClientConnection,
        now: Instant,
    ) {
        let is_taken = if let Some(loopback) = self.loopbacks.get(&id) {
            loopback.send(lines).is_ok()
        } else {
            let agent = self.agents.get(&id);
            agent.is_none_or(|agent| agent.send(lines).is_ok())
        };
        if !is_taken {
            // Only batches can be accepted in part.
            let _ = self.hub.agent(id, AgentInput::InputStuck, now, client);
        }
    }

    /// Closes the input of a transport, which ends a loopback and an HTTP exchange.
    pub(super) fn close_input(&mut self, id: AgentId) {
        self.loopbacks.remove(&id);
        self.exchanges.remove(&id);
        self.with_agent(id, Agent::close_input);
    }

    /// Sends a signal to a transport, which ends an HTTP exchange.
    pub(super) fn signal(&mut self, id: AgentId, order: SupervisorOrder) {
        self.exchanges.remove(&id);
        self.with_agent(id, |agent| agent.order(order));
    }

    /// Calls `act` with the process of this id. A process that has exited and a read-only transport have
    /// none.
    pub(super) fn with_agent(&mut self, id: AgentId, act: impl FnOnce(&mut Agent)) {
        if let Some(agent) = self.agents.get_mut(&id) {
            act(agent);
        }
    }
}
