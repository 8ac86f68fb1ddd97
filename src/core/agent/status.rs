//! Implements `agent/status`.

use super::connection::Connection;
use super::cx::AgentCx;
use super::{AgentMachine, Phase, State};
use crate::core::acp_settings::initialize;
use crate::core::client::{Reply, Token};
use crate::core::dialect::Child;
use crate::core::effect::{AgentId, Effect, Measure};
use crate::core::event::AgentInfo;
use crate::core::secret::Secrets;
use crate::proto::wire::{self, AgentState};
use std::sync::Arc;
use std::time::Instant;

/// An `agent/status` call that waits until all processes are measured.
pub(super) struct StatusRequest {
    token: Token,
    missing: Vec<AgentId>,
}

impl State {
    /// Returns the state as clients know it.
    fn listed(&self) -> AgentState {
        match self {
            Self::Connected(connection) => match &connection.phase {
                Phase::Starting { .. } => AgentState::Starting,
                Phase::Ready(_) => AgentState::Ready,
                Phase::Stopping { .. } => AgentState::Stopping,
            },
            Self::Absent { .. } => AgentState::Disconnected,
            Self::Backoff { .. } => AgentState::Starting,
        }
    }
}

impl AgentMachine {
    /// Measures the agent's processes, then answers with its status.
    pub fn request_status(&mut self, token: Token, cx: &mut AgentCx<'_>) {
        let running = self.connection().map(Connection::running);
        let missing = running.unwrap_or_default();
        if missing.is_empty() {
            let status = self.status(&cx.shared.settings.secrets, cx.now);
            cx.reply(token, Reply::Status(Box::new(status)));
            return;
        }
        // A process that is already being measured is not measured twice.
        let mut requests = self.status_requests.iter();
        let new = |id: &&AgentId| !requests.any(|request| request.missing.contains(id));
        let effects = missing.iter().filter(new).map(|id| Effect::Measure(*id));
        cx.effects.extend(effects.collect::<Vec<_>>());
        self.status_requests.push(StatusRequest { token, missing });
    }

    /// Handles the measurement of a process.
    pub fn measured(&mut self, id: AgentId, child: Child, measure: Measure, cx: &mut AgentCx<'_>) {
        let process = self.connection_mut().and_then(|c| c.process_mut(child));
        if let Some(process) = process {
            process.measure = Some(measure);
        }
        self.settle_status(id, cx);
    }

    /// Answers the calls that waited only for this process, which was measured or has ended.
    pub(super) fn settle_status(&mut self, id: AgentId, cx: &mut AgentCx<'_>) {
        for request in &mut self.status_requests {
            request.missing.retain(|missing| *missing != id);
        }
        let requests = &mut self.status_requests;
        let settled = requests.extract_if(.., |request| request.missing.is_empty());
        for StatusRequest { token, .. } in settled.collect::<Vec<_>>() {
            let status = self.status(&cx.shared.settings.secrets, cx.now);
            cx.reply(token, Reply::Status(Box::new(status)));
        }
    }

    /// Returns the agent's status.
    #[must_use]
    pub fn status(&self, secrets: &Secrets, now: Instant) -> wire::AgentStatus {
        let connection = match &self.state {
            State::Connected(connection) => connection,
            State::Absent { why } => {
                return self.status_without(AgentState::Disconnected, why.clone());
            }
            State::Backoff { why, .. } => {
                return self.status_without(AgentState::Starting, why.clone());
            }
        };
        let info = connection.ready();
        wire::AgentStatus {
            agent: self.definition.name.clone(),
            state: self.state.listed(),
            reason: None,
            protocol: Some(connection.facts().name.to_owned()),
            command: Some(self.spec.command.clone()),
            program: connection.program.clone(),
            args: self.spec.args.clone(),
            source: Some(self.spec.source),
            pid: connection.main_pid(),
            processes: connection.process_status(now),
            restarts: self.restarts,
            agent_info: info.and_then(peer_info),
            capabilities: info.map(|i| i.capabilities),
            auth_methods: info.map(|i| i.auth_methods.clone()).unwrap_or_default(),
            faults: connection.faults(),
            waiting_for: self.start_wait(secrets, now),
            acp: info.map(|info| self.acp_handshake(info)),
        }
    }

    /// Records what the agent reports when it is ready.
    pub(super) fn note_seen(&mut self, info: &AgentInfo) {
        self.last_seen = Some((peer_info(info), info.capabilities));
    }

    /// Returns the agent's entry in a list; `sessions` is the number of its open sessions. Its program has to
    /// be searched for.
    #[must_use]
    pub fn summary(&self, sessions: u64) -> wire::AgentSummary {
        wire::AgentSummary {
            agent: self.definition.name.clone(),
            is_default: false,
            description: self.definition.description.clone(),
            tags: self.definition.tags.clone(),
            state: self.state.listed(),
            protocol: self.spec.protocol,
            command: self.spec.command.clone(),
            args: self.spec.args.clone(),
            source: self.spec.source,
            installed: false,
            program: None,
            agent_info: self.last_seen.as_ref().and_then(|(info, _)| info.clone()),
            capabilities: self.last_seen.as_ref().map(|(_, can)| *can),
            sessions,
        }
    }

    fn status_without(&self, state: AgentState, reason: Option<String>) -> wire::AgentStatus {
        let coming = Some(&self.spec).filter(|_| state == AgentState::Starting);
        wire::AgentStatus {
            agent: self.definition.name.clone(),
            state,
            reason,
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
            acp: None,
        }
    }

    /// Returns the agent's result of `initialize` in ACP.
    fn acp_handshake(&self, info: &AgentInfo) -> Arc<str> {
        let own = || initialize(&self.definition.name, info).to_string().into();
        info.acp.clone().unwrap_or_else(own)
    }
}

fn peer_info(info: &AgentInfo) -> Option<wire::PeerInfo> {
    Some(wire::PeerInfo {
        name: info.name.clone()?,
        title: info.title.clone(),
        version: info.version.clone(),
    })
}
