//! The connection to an agent: its dialect, its processes, the calls that it has not answered.

use super::cx::AgentCx;
use super::directory::Directory;
use super::process::Process;
use crate::core::agent_spec::AgentSpec;
use crate::core::client::Token;
use crate::core::dialect::{Child, Dialect, Order, Outgoing};
use crate::core::effect::{AgentId, Effect};
use crate::core::event::{AgentInfo, CallId};
use crate::core::ids::Ids;
use crate::core::setting::SetCall;
use crate::core::silence::Silence;
use crate::core::transport::Transport;
use crate::proto::wire::{ProcessStatus, Program};
use std::collections::HashMap;
use std::time::Instant;

/// An agent that was started and has not ended.
pub struct Connection {
    /// Distinguishes it from earlier connections: an answer to an earlier one's question is not for this one.
    pub number: u64,
    pub dialect: Box<dyn Dialect>,
    /// What is to be done to its processes and was not handed out yet.
    pub out: Outgoing,
    pub phase: Phase,
    pub processes: Vec<Process>,
    /// The calls that the agent has not answered.
    pub calls: HashMap<CallId, Call>,
    /// The agent's sessions, by the agent's ids.
    pub directory: Directory,
    /// Its program, once a process of it was started.
    pub program: Option<Program>,
    /// When it last had a live session or another use.
    pub used: Instant,
}

/// The phases of a connection.
pub enum Phase {
    Starting {
        waiters: Vec<Token>,
        /// Measures how long the handshake takes.
        idle: Silence,
    },
    Ready(Box<AgentInfo>),
    Stopping {
        waiters: Vec<Token>,
        /// Why, unless the client asked for it.
        why: Option<String>,
        /// The agent to start when this one has ended, and who waits for that.
        then: Option<(Box<AgentSpec>, Vec<Token>)>,
    },
}

/// What a call to the agent is about. Sessions are named by the client's id.
#[derive(Debug, Clone)]
pub enum Call {
    Open {
        session: String,
    },
    /// A page of the agent's sessions, for the restore of a session.
    List {
        session: String,
    },
    /// Like `List`, for a session that refused a prompt.
    Look {
        session: String,
    },
    /// Like `List`, for a client.
    ListAll,
    /// Sign-in or sign-out.
    Sign,
    Close {
        agent_session: String,
    },
    Set(SetCall),
    Prompt {
        session: String,
    },
}

impl Connection {
    /// What the agent said in the handshake; `None` unless it is ready.
    #[must_use]
    pub fn ready(&self) -> Option<&AgentInfo> {
        match &self.phase {
            Phase::Ready(info) => Some(info),
            Phase::Starting { .. } | Phase::Stopping { .. } => None,
        }
    }

    /// How long the handshake takes; `None` unless the agent is starting.
    #[must_use]
    pub fn start_silence(&self) -> Option<&Silence> {
        match &self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    /// Like `start_silence`, for changes.
    pub fn start_silence_mut(&mut self) -> Option<&mut Silence> {
        match &mut self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    #[must_use]
    pub fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping { .. })
    }

    /// Asks the agent to close a session, by the agent's id, where it can do that. To open the session again waits
    /// for the answer, `until` at most.
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

    /// Ends the process of a session that has one of its own, by the agent's id; false where it has none.
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

    /// The process that serves one session alone, by the agent's id of the session.
    #[must_use]
    pub fn own_process(&self, agent_session: &str) -> Option<Child> {
        let child = self.dialect.child_of(Some(agent_session), None)?;
        (child != Child::MAIN).then_some(child)
    }

    /// The dialect's number of a process.
    #[must_use]
    pub fn child(&self, id: AgentId) -> Option<Child> {
        let process = self.processes.iter().find(|process| process.id == id)?;
        Some(process.child)
    }

    /// Finds a process by the dialect's number.
    pub fn process_mut(&mut self, child: Child) -> Option<&mut Process> {
        self.processes.iter_mut().find(|p| p.child == child)
    }

    /// The process that serves a session, by the agent's id of the session or by the call that opens it.
    #[must_use]
    pub fn process_of(
        &self,
        agent_session: Option<&str>,
        call: Option<CallId>,
    ) -> Option<&Process> {
        let child = self.dialect.child_of(agent_session, call)?;
        self.processes.iter().find(|p| p.child == child)
    }

    /// The process of the handshake.
    #[must_use]
    pub fn first_process(&self) -> Option<&Process> {
        self.processes.iter().find(|p| !p.is_read_only)
    }

    /// The pid of the process that serves all sessions.
    #[must_use]
    pub fn main_pid(&self) -> Option<u32> {
        let main = self.processes.iter().find(|p| p.child == Child::MAIN)?;
        main.pid
    }

    /// Notes output of a process; false where its output is not read any more.
    pub fn note_output(&mut self, child: Child, now: Instant) -> bool {
        self.process_mut(child).is_some_and(|process| {
            process.heard = Some(now);
            !process.is_ignored
        })
    }

    /// The processes that run.
    #[must_use]
    pub fn running(&self) -> Vec<AgentId> {
        let running = self.processes.iter().filter(|p| p.pid.is_some());
        running.map(|process| process.id).collect()
    }

    /// The state of the processes that run.
    #[must_use]
    pub fn process_status(&self, now: Instant) -> Vec<ProcessStatus> {
        self.processes
            .iter()
            .filter_map(|p| p.status(now))
            .collect()
    }

    /// Turns the dialect's orders into effects.
    pub fn deliver<C>(&mut self, spec: &AgentSpec, cx: &mut AgentCx<'_, C>) {
        let limits = &cx.shared.settings.limits;
        let (now, effects) = (cx.now, &mut *cx.effects);
        let stopping = self.is_stopping();
        for (child, order) in self.out.take() {
            let process = self.processes.iter_mut().find(|p| p.child == child);
            match (order, process) {
                (Order::Lines(lines), Some(process))
                    if !lines.is_empty() && !process.input_closed =>
                {
                    effects.push(Effect::Send(process.id, lines));
                }
                (Order::FinishInput, Some(process)) if process.has_open_input() => {
                    process.input_closed = true;
                    effects.push(Effect::FinishInput(process.id));
                }
                (Order::Stop, Some(process)) if process.stop.is_none() => {
                    effects.push(process.begin_stop(now, limits));
                }
                (Order::Open(mut transport), _) if !stopping => {
                    if let Transport::Process(process) = &mut transport {
                        // The client's variables override the dialect's.
                        process.env.0.extend(spec.env.0.clone());
                    }
                    let id = AgentId(cx.shared.ids.process());
                    let process = Process::new(id, child, transport.is_read_only(), now);
                    self.processes.push(process);
                    effects.push(Effect::Open(id, transport));
                }
                (Order::Open(_) | Order::Lines(_) | Order::FinishInput | Order::Stop, _) => {}
            }
        }
    }

    /// Begins the end of all processes.
    pub fn stop_processes<C>(&mut self, spec: &AgentSpec, cx: &mut AgentCx<'_, C>) {
        self.deliver(spec, cx);
        // A file may be long, or on a disk that does not answer: nothing waits for its end.
        self.processes.retain(|process| !process.is_read_only);
        for process in self.processes.iter_mut().filter(|p| p.stop.is_none()) {
            cx.effects
                .push(process.begin_stop(cx.now, &cx.shared.settings.limits));
        }
    }
}
