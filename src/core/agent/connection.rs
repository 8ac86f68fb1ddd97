//! Connection to an agent: its dialect, processes, sessions and open calls.

use super::cx::AgentCx;
use super::directory::Directory;
use super::process::Process;
use crate::core::agent_definition::AgentDefinition;
use crate::core::agent_spec::AgentSpec;
use crate::core::client::Token;
use crate::core::dialect::{Child, Dialect, Outgoing, TransportOrder};
use crate::core::effect::{AgentId, Effect};
use crate::core::event::{AgentInfo, CallId};
use crate::core::idle_timer::IdleTimer;
use crate::core::ids::Ids;
use crate::core::setting::SetCall;
use crate::core::shared::Shared;
use crate::core::transport::Transport;
use crate::proto::wire::{ProcessStatus, Program};
use std::collections::HashMap;
use std::time::Instant;

/// Connection to an agent that was started and has not ended.
pub struct Connection {
    /// Number of the connection, which distinguishes it from earlier ones: a response to a request of an
    /// earlier connection must not be sent to this one.
    pub number: u64,
    /// Translator of the agent's protocol.
    pub dialect: Box<dyn Dialect>,
    /// Orders to the processes that are not delivered yet.
    pub out: Outgoing,
    /// Phase of the connection.
    pub phase: Phase,
    /// Processes and other transports that have not ended.
    pub processes: Vec<Process>,
    /// Calls that the agent has not answered.
    pub calls: HashMap<CallId, Call>,
    /// The agent's sessions, by agent session id.
    pub directory: Directory,
    /// Program that was found for the agent; `None` until one of its processes was started.
    pub program: Option<Program>,
    /// Time of the last use; a live session counts as use.
    pub used: Instant,
}

/// Phase of a connection.
pub enum Phase {
    /// The processes are being started, and the handshake is running.
    Starting {
        /// `agent/connect` calls to answer when the agent is ready.
        waiters: Vec<Token>,
        /// Measures how long the handshake takes.
        idle: IdleTimer,
    },
    /// The handshake is complete, with the agent's properties.
    Ready(Box<AgentInfo>),
    /// The processes are being stopped.
    Stopping {
        /// `agent/disconnect` calls to answer when the agent has ended.
        waiters: Vec<Token>,
        /// Reason for the stop, unless the client requested it.
        why: Option<String>,
        /// Agent to start when this one has ended, with the calls that wait for it.
        next: Option<(Box<AgentSpec>, Vec<Token>)>,
    },
}

/// Subject of a call to the agent. `session` is the client's id of the session.
#[derive(Debug, Clone)]
pub enum Call {
    /// Opens a session.
    Open {
        /// Session to open.
        session: String,
    },
    /// Requests a page of the agent's session list, for the restore of a session.
    List {
        /// Session that is restored.
        session: String,
    },
    /// Like `List`, for a session that refused a prompt.
    LookUp {
        /// Session that refused the prompt.
        session: String,
    },
    /// Requests a page of the agent's session list for a client.
    ListAll,
    /// Signs the user in or out.
    Sign,
    /// Closes a session.
    Close {
        /// Agent session id of the session.
        agent_session: String,
    },
    /// Sets a mode, model or option.
    Set(SetCall),
    /// Passes on a request of a client that acpipe does not interpret.
    Forward {
        /// Call of the client.
        token: Token,
    },
    /// Sends a prompt.
    Prompt {
        /// Session of the prompt.
        session: String,
    },
}

impl Connection {
    /// Properties that the agent reported in the handshake; `None` unless it is ready.
    #[must_use]
    pub fn ready(&self) -> Option<&AgentInfo> {
        match &self.phase {
            Phase::Ready(info) => Some(info),
            Phase::Starting { .. } | Phase::Stopping { .. } => None,
        }
    }

    /// Timer of the handshake; `None` unless the agent is starting.
    #[must_use]
    pub fn start_silence(&self) -> Option<&IdleTimer> {
        match &self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    /// Like `start_silence`, but mutable.
    pub fn start_silence_mut(&mut self) -> Option<&mut IdleTimer> {
        match &mut self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    /// Returns `true` while the agent is being stopped.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping { .. })
    }

    /// Closes a session by its agent session id, if the agent can close sessions. The session cannot be
    /// opened again before the agent's response, or before `until`.
    pub fn close_session(
        &mut self,
        agent_session: &str,
        ids: &mut Ids,
        now: Instant,
        until: Option<Instant>,
    ) {
        if !self.ready().is_some_and(|info| info.capabilities.close) {
            return;
        }
        let child = self.own_process(agent_session);
        let call = ids.call();
        if self.dialect.close(call, agent_session, &mut self.out) {
            let agent_session = agent_session.to_owned();
            self.directory
                .note_closing(&agent_session, None, now, until);
            self.calls.insert(call, Call::Close { agent_session });
        } else if child.is_some() {
            self.directory
                .note_closing(agent_session, child, now, until);
        }
    }

    /// Ends the process that serves only this session; returns `false` if there is none.
    pub fn end_session_process(
        &mut self,
        agent_session: &str,
        now: Instant,
        until: Option<Instant>,
    ) -> bool {
        let child = self.own_process(agent_session);
        if !self.dialect.abandon(agent_session, &mut self.out) {
            return false;
        }
        if child.is_some() {
            self.directory
                .note_closing(agent_session, child, now, until);
        }
        true
    }

    /// Returns the process that serves only this session; `None` if its process serves all sessions.
    #[must_use]
    pub fn own_process(&self, agent_session: &str) -> Option<Child> {
        let child = self.dialect.child_of(Some(agent_session), None)?;
        (child != Child::MAIN).then_some(child)
    }

    /// Returns the dialect's number of a process.
    #[must_use]
    pub fn child(&self, id: AgentId) -> Option<Child> {
        let process = self.processes.iter().find(|process| process.id == id)?;
        Some(process.child)
    }

    /// Finds a process by the dialect's number.
    pub fn process_mut(&mut self, child: Child) -> Option<&mut Process> {
        self.processes.iter_mut().find(|p| p.child == child)
    }

    /// Returns the process that serves a session, given by the agent session id or by the call that opens it.
    #[must_use]
    pub fn process_of(
        &self,
        agent_session: Option<&str>,
        call: Option<CallId>,
    ) -> Option<&Process> {
        let child = self.dialect.child_of(agent_session, call)?;
        self.processes.iter().find(|p| p.child == child)
    }

    /// Returns the process of the handshake.
    #[must_use]
    pub fn first_process(&self) -> Option<&Process> {
        self.processes.iter().find(|p| !p.is_read_only)
    }

    /// Returns the pid of the process that serves all sessions.
    #[must_use]
    pub fn main_pid(&self) -> Option<u32> {
        let main = self.processes.iter().find(|p| p.child == Child::MAIN)?;
        main.pid
    }

    /// Notes output of a process; returns `false` if its output is ignored.
    pub fn note_output(&mut self, child: Child, now: Instant) -> bool {
        self.process_mut(child).is_some_and(|process| {
            process.last_activity = Some(now);
            !process.is_ignored
        })
    }

    /// Returns the ids of the running processes.
    #[must_use]
    pub fn running(&self) -> Vec<AgentId> {
        let running = self.processes.iter().filter(|p| p.pid.is_some());
        running.map(|process| process.id).collect()
    }

    /// Returns the status of the running processes.
    #[must_use]
    pub fn process_status(&self, now: Instant) -> Vec<ProcessStatus> {
        self.processes
            .iter()
            .filter_map(|p| p.status(now))
            .collect()
    }

    /// Converts the dialect's orders to effects.
    pub fn deliver(
        &mut self,
        (definition, spec): (&AgentDefinition, &AgentSpec),
        now: Instant,
        shared: &mut Shared,
        effects: &mut Vec<Effect>,
    ) {
        let limits = shared.settings.limits_of(definition);
        let stopping = self.is_stopping();
        for (child, order) in self.out.take() {
            let process = self.processes.iter_mut().find(|p| p.child == child);
            match (order, process) {
                (TransportOrder::Lines(lines), Some(process))
                    if !lines.is_empty() && !process.input_closed =>
                {
                    effects.push(Effect::Send(process.id, lines));
                }
                (TransportOrder::FinishInput, Some(process)) if process.has_open_input() => {
                    process.input_closed = true;
                    effects.push(Effect::FinishInput(process.id));
                }
                (TransportOrder::Stop, Some(process)) if process.stop.is_none() => {
                    effects.push(process.begin_stop(now, limits));
                }
                (TransportOrder::Open(mut transport), _) if !stopping => {
                    if let Transport::Process(process) = &mut transport {
                        // The client's variables override the dialect's.
                        process.env.0.extend(spec.env.0.clone());
                        if spec.is_in_process() {
                            transport = Transport::InProcess(spec.command.clone());
                        }
                    }
                    let id = AgentId(shared.ids.process());
                    let process = Process::new(id, child, &transport, now);
                    self.processes.push(process);
                    effects.push(Effect::Open(id, transport));
                }
                (
                    TransportOrder::Open(_)
                    | TransportOrder::Lines(_)
                    | TransportOrder::FinishInput
                    | TransportOrder::Stop,
                    _,
                ) => {}
            }
        }
    }

    /// Begins to stop all processes.
    pub fn stop_processes(
        &mut self,
        (definition, spec): (&AgentDefinition, &AgentSpec),
        cx: &mut AgentCx<'_>,
    ) {
        self.deliver((definition, spec), cx.now, cx.shared, cx.effects);
        // Read-only transports are dropped: a file may be long, or on a disk that does not respond, and its
        // end is not needed.
        self.processes.retain(|process| !process.is_read_only);
        for process in self.processes.iter_mut().filter(|p| p.stop.is_none()) {
            let limits = cx.shared.settings.limits_of(definition);
            cx.effects.push(process.begin_stop(cx.now, limits));
        }
    }
}
