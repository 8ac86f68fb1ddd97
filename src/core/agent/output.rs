//! Output of the agent's processes, and its open calls.

use super::AgentMachine;
use super::connection::Call;

use crate::core::dialect::{Child, TransportOrder};
use crate::core::effect::{AgentId, Effect};
use crate::core::event::CallId;
use crate::core::shared::Shared;
use crate::proto::wire::Program;
use std::time::Instant;

impl AgentMachine {
    /// Returns the dialect's number of a process of this agent.
    #[must_use]
    pub fn child(&self, id: AgentId) -> Option<Child> {
        self.connection()?.child(id)
    }

    /// Records that a process runs.
    pub fn started(&mut self, child: Child, (pid, program): (u32, Program), now: Instant) {
        let Some(connection) = self.connection_mut() else {
            return;
        };
        if let Some(process) = connection.process_mut(child) {
            process.pid = Some(pid);
            process.began = Some(now);
        }
        connection.program = Some(program);
    }

    /// Ignores all further output of a process.
    pub fn ignore_output(&mut self, child: Child) {
        let process = self.connection_mut().and_then(|c| c.process_mut(child));
        if let Some(process) = process {
            process.is_ignored = true;
        }
    }

    /// Returns `true` if the input of a process is closed and the process exits by itself.
    #[must_use]
    pub fn is_one_shot(&self, child: Child) -> bool {
        let processes = self.connection().map(|c| c.processes.iter());
        let mut processes = processes.into_iter().flatten();
        processes.any(|process| process.child == child && process.input_closed)
    }

    /// Orders the stop of a process.
    pub fn stop_process(&mut self, child: Child) {
        if let Some(connection) = self.connection_mut() {
            connection.order(child, TransportOrder::Stop);
        }
    }

    /// Removes and returns a call that was answered.
    pub fn take_call(&mut self, call: CallId) -> Option<Call> {
        self.connection_mut()?.calls.remove(&call)
    }

    /// Converts the dialect's orders to effects.
    pub fn deliver(&mut self, now: Instant, shared: &mut Shared, effects: &mut Vec<Effect>) {
        if let super::State::Connected(connection) = &mut self.state {
            connection.deliver((&self.definition, &self.spec), now, shared, effects);
        }
    }

    /// Cuts off an incomplete line for the agent, which a panic may have left.
    pub fn mend(&mut self) {
        if let Some(connection) = self.connection_mut() {
            connection.mend();
        }
    }
}
