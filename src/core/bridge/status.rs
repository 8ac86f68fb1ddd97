//! What the agent is and how it fares, for whoever asks.

use super::{Agent, AgentId, Bridge, Effect, Phase};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::event::AgentInfo;
use crate::proto::wire::{self, AgentState};
use std::time::Instant;

/// What an agent's process has below it, itself included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    pub processes: u32,
    /// Their resident memory, in bytes; what they share counts for each.
    pub rss: u64,
}

/// A client that waits until all processes are measured.
pub(super) struct Asked {
    token: Token,
    missing: Vec<AgentId>,
}

impl Bridge {
    /// Has the agent's processes measured, and then tells its status.
    pub(super) fn tell_status(&mut self, token: Token, now: Instant, outlet: &mut impl Outlet) {
        let agent = self.agent.as_ref();
        let missing: Vec<AgentId> = agent.map(Agent::running).unwrap_or_default();
        if missing.is_empty() {
            let status = self.status(now);
            outlet.reply(token, Ok(Reply::Status(Box::new(status))));
            return;
        }
        // One that is measured already is not asked twice.
        let new = |id: &&AgentId| !self.asked.iter().any(|asked| asked.missing.contains(id));
        let effects = missing.iter().filter(new).map(|id| Effect::Measure(*id));
        self.effects.extend(effects);
        self.asked.push(Asked { token, missing });
    }

    /// A process was measured, or is no more: who waited for it alone is told.
    pub(super) fn tell_measured(&mut self, id: AgentId, now: Instant, outlet: &mut impl Outlet) {
        for asked in &mut self.asked {
            asked.missing.retain(|missing| *missing != id);
        }
        let told = self.asked.extract_if(.., |asked| asked.missing.is_empty());
        for Asked { token, .. } in told.collect::<Vec<_>>() {
            let status = self.status(now);
            outlet.reply(token, Ok(Reply::Status(Box::new(status))));
        }
    }

    pub(super) fn status(&self, now: Instant) -> wire::AgentStatus {
        let Some(agent) = &self.agent else {
            let coming = self.crashed.as_ref().map(|crashed| &crashed.spec);
            let coming = coming.filter(|_| self.restart_at.is_some());
            return wire::AgentStatus {
                state: coming.map_or(AgentState::Disconnected, |_| AgentState::Starting),
                reason: self.last_end.clone(),
                protocol: None,
                command: coming.map(|spec| spec.command.clone()),
                program: None,
                args: coming.map(|spec| spec.args.clone()).unwrap_or_default(),
                source: coming.map(|spec| spec.source),
                pid: None,
                processes: Vec::new(),
                restarts: self.restarts,
                agent_info: None,
                capabilities: None,
                auth_methods: Vec::new(),
                faults: wire::LineFaults::default(),
                waiting_for: None,
            };
        };
        let (state, info) = match &agent.phase {
            Phase::Starting { .. } => (AgentState::Starting, None),
            Phase::Ready(info) => (AgentState::Ready, Some(info.as_ref())),
            Phase::Stopping { .. } => (AgentState::Stopping, None),
        };
        wire::AgentStatus {
            state,
            reason: None,
            protocol: Some(agent.dialect.name().to_owned()),
            command: Some(agent.spec.command.clone()),
            program: agent.program.clone(),
            args: agent.spec.args.clone(),
            source: Some(agent.spec.source),
            pid: agent.main_pid(),
            processes: agent.processes_at(now),
            restarts: self.restarts,
            agent_info: info.and_then(peer_info),
            capabilities: info.map(|i| i.capabilities),
            auth_methods: info.map(|i| i.auth_methods.clone()).unwrap_or_default(),
            faults: agent.dialect.faults(),
            waiting_for: self.start_waits(now),
        }
    }
}

fn peer_info(info: &AgentInfo) -> Option<wire::PeerInfo> {
    Some(wire::PeerInfo {
        name: info.name.clone()?,
        title: info.title.clone(),
        version: info.version.clone(),
    })
}
