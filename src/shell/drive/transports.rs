//! Opens agents' transports and forwards lines and orders to them; `core/transport.rs` defines the
//! requirements on a transport.

use super::{ClientConnection, Shell};
use crate::core::hub::{AgentId, AgentInput};
use crate::core::transport::Transport;
use crate::shell::agent::{self, Agent};
use crate::shell::files;
use crate::shell::in_process;
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
        let agent = self.agents.get(&id);
        if agent.map_or(Ok(()), |agent| agent.send(lines)).is_err() {
            // Only batches can be accepted in part.
            let _ = self.hub.agent(id, AgentInput::InputStuck, now, client);
        }
    }

    /// Calls `act` with the process of this id. A process that has exited and a read-only transport have
    /// none.
    pub(super) fn with_agent(&mut self, id: AgentId, act: impl FnOnce(&mut Agent)) {
        if let Some(agent) = self.agents.get_mut(&id) {
            act(agent);
        }
    }
}
