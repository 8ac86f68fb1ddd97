//! Opens agents' transports and forwards lines and orders to them; `crates/model/src/transport.rs` defines the
//! requirements on a transport.

use super::{ClientConnection, Shell};
use crate::agent::AgentHandle;
use crate::recorder::ProcessRecorder;
use crate::supervisor::codec::SupervisorOrder;
use crate::{agent, files, in_process, loopback};
use acpipe_core::hub::{AgentId, AgentInput, HubCx};
use acpipe_model::http::shown_url;
use acpipe_model::secret::shown_arguments;
use acpipe_model::transport::Transport;
use std::time::Instant;

impl Shell {
    /// Opens a transport. Its output and failures arrive through the inbox.
    pub(super) fn open(&mut self, id: AgentId, transport: Transport) {
        let events = self.events.clone();
        let recorder = self.recorder_of(id, &transport);
        match transport {
            Transport::Process(spec) => {
                let (terms, login) = (self.terms.clone(), self.login.clone());
                let agent = agent::start(id, spec, terms, login, events, recorder);
                self.agents.insert(id, agent);
            }
            Transport::InProcess(name) => {
                let agent = {
                    let run = self.in_process.get(&name);
                    in_process::start(id, &name, run, events, recorder)
                };
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
                let exchange = self.http.start(id, *request, max_line, events, recorder);
                self.exchanges.insert(id, exchange);
            }
        }
    }

    /// Returns the recorder of a transport's frames. Reads of files and loopbacks are not recorded.
    fn recorder_of(&self, id: AgentId, transport: &Transport) -> Option<ProcessRecorder> {
        let recorder = self.recorder.as_ref()?;
        let command = match transport {
            Transport::Process(spec) => {
                let words = std::iter::once(&spec.command).chain(&spec.args);
                shown_arguments(&words.collect::<Vec<_>>())
            }
            Transport::InProcess(name) => vec![name.clone()],
            Transport::Http(request) => vec!["POST".to_owned(), shown_url(&request.url)],
            Transport::File(_)
            | Transport::Directory(_)
            | Transport::RealPath(_)
            | Transport::Loopback
            | Transport::Removal { .. } => return None,
        };
        let agent = self.hub.agent_of_process(id).map(str::to_owned);
        Some(recorder.process(agent, command))
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
            let _ = self
                .hub
                .agent(id, AgentInput::InputStuck, &mut HubCx::new(now, client));
        }
    }

    /// Closes the input of a transport, which ends a loopback and an HTTP exchange.
    pub(super) fn close_input(&mut self, id: AgentId) {
        self.loopbacks.remove(&id);
        self.exchanges.remove(&id);
        self.with_agent(id, AgentHandle::close_input);
    }

    /// Sends a signal to a transport, which ends an HTTP exchange.
    pub(super) fn signal(&mut self, id: AgentId, order: SupervisorOrder) {
        self.exchanges.remove(&id);
        self.with_agent(id, |agent| agent.order(order));
    }

    /// Calls `act` with the process of this id. A process that has exited and a read-only transport have
    /// none.
    pub(super) fn with_agent(&mut self, id: AgentId, act: impl FnOnce(&mut AgentHandle)) {
        if let Some(agent) = self.agents.get_mut(&id) {
            act(agent);
        }
    }
}
