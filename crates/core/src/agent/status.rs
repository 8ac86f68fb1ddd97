//! `agent/status`: the calls that wait for measurements, and the status of an agent.
//!
//! Owns the waiting calls and what each still waits for. It may not measure processes or answer clients: it says which processes
//! to measure and which calls can be answered.

use crate::client::Token;
use crate::effect::AgentId;
use acpipe_model::event::AgentInfo;
use acpipe_protocol::wire::{AgentState, AgentStatus, LineFaults, PeerInfo};

/// `agent/status` calls that wait until all processes are measured.
#[derive(Default)]
pub(super) struct StatusRequests(Vec<StatusRequest>);

struct StatusRequest {
    token: Token,
    /// Processes that are not measured yet.
    missing: Vec<AgentId>,
}

impl StatusRequests {
    /// Adds a call that waits for the measurement of these processes; returns those of them that are not being measured yet.
    pub(super) fn push(&mut self, token: Token, processes: Vec<AgentId>) -> Vec<AgentId> {
        let mut requests = self.0.iter();
        let new = |id: &&AgentId| !requests.any(|request| request.missing.contains(id));
        let new = processes.iter().filter(new).copied().collect();
        self.0.push(StatusRequest {
            token,
            missing: processes,
        });
        new
    }

    /// Notes that a process was measured or has ended; returns the calls that waited only for it.
    pub(super) fn settle(&mut self, id: AgentId) -> Vec<Token> {
        for request in &mut self.0 {
            request.missing.retain(|missing| *missing != id);
        }
        let settled = self.0.extract_if(.., |request| request.missing.is_empty());
        settled.map(|request| request.token).collect()
    }
}

/// Returns the status of an agent without a connection that is neither starting nor was started.
pub(super) fn absent(agent: &str) -> AgentStatus {
    AgentStatus {
        agent: agent.to_owned(),
        state: AgentState::Disconnected,
        reason: None,
        protocol: None,
        command: None,
        program: None,
        args: Vec::new(),
        source: None,
        pid: None,
        processes: Vec::new(),
        restarts: 0,
        agent_info: None,
        capabilities: None,
        auth_methods: Vec::new(),
        faults: LineFaults::default(),
        waiting_for: None,
        acp: None,
    }
}

/// Returns the name and version of an agent, if it reported a name.
pub(super) fn peer_info(info: &AgentInfo) -> Option<PeerInfo> {
    Some(PeerInfo {
        name: info.name.clone()?,
        title: info.title.clone(),
        version: info.version.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_when_its_last_process_is_measured() {
        let mut requests = StatusRequests::default();
        let (first, second) = (Token::first(1), Token::first(2));
        let [a, b] = [AgentId(1), AgentId(2)];
        assert_eq!(requests.push(first, vec![a]), [a]);
        assert_eq!(requests.push(second, vec![a, b]), [b]);
        assert_eq!(requests.settle(a), [first]);
        assert_eq!(requests.settle(a), []);
        assert_eq!(requests.settle(b), [second]);
    }
}
