//! Connection to an agent: its dialect, its processes, the agent's ids of sessions, and open calls.
//!
//! Owns these, which exist from a start of the agent to its end, and the specification of a process that waits to be started.
//! It may not start or stop the agent on its own account, answer clients, or decide anything about sessions, whose machines
//! belong to the router: it has no rules of its own. Calls at the agent that belong to no machine are known to
//! `hub/agent_events.rs`.

use super::cx::AgentCx;
use super::directory::Directory;
use super::process::Process;
use crate::agent_definition::AgentDefinition;
use crate::agent_spec::AgentSpec;
use crate::client::Token;
use crate::effect::{AgentId, Effect};
use crate::ids::Ids;
use crate::shared::Shared;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentText, Child, Dialect, DialectFacts,
    Noted, Outgoing, TextMeaning, TransportOrder,
};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, AgentInfo, CallId, Exit};
use acpipe_model::idle_timer::IdleTimer;
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::RequestKey;
use acpipe_model::setting::SetCall;
use acpipe_model::transport::Transport;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::{LineFaults, ProcessStatus, Program};
use std::collections::HashMap;
use std::time::Instant;

/// Connection to an agent that was started and has not ended.
pub struct Connection {
    /// Number of the connection, which distinguishes it from earlier ones: a response to a request of an
    /// earlier connection must not be sent to this one.
    pub number: u64,
    dialect: Box<dyn Dialect>,
    /// Orders to the processes that are not delivered yet.
    out: Outgoing,
    pub(super) phase: Phase,
    /// Processes and other transports that have not ended.
    pub(super) processes: Vec<Process>,
    /// Calls that the agent has not answered.
    pub calls: HashMap<CallId, Call>,
    /// The agent's sessions, by agent session id.
    pub directory: Directory,
    /// Program that was found for the agent; `None` until one of its processes was started.
    pub(super) program: Option<Program>,
    /// Time of the last use; a live session counts as use.
    pub used: Instant,
}

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
    Open {
        session: String,
    },
    /// Requests a page of the agent's session list, for the restore of a session.
    List {
        session: String,
    },
    /// Like `List`, for a session that refused a prompt.
    LookUp {
        session: String,
    },
    /// Requests a page of the agent's session list for a client.
    ListAll,
    /// Signs the user in or out.
    Sign,
    Close {
        agent_session: String,
    },
    /// Sets a mode, model or option.
    Set(SetCall),
    /// Passes on a request of a client that acpipe does not interpret.
    Forward {
        token: Token,
    },
    Prompt {
        session: String,
    },
}

/// Consequence of a process's end.
pub enum ProcessEnd {
    /// Nothing: the agent continues, or its other processes are still ending.
    Nothing,
    /// A stopped process has exited: the session with this agent session id is closed.
    Closed(String),
    /// Events for sessions from the dialect; with `false`, the agent as a whole has ended.
    Events(Vec<AgentEvent<'static>>, bool),
    /// The agent has ended.
    All,
}

impl Connection {
    #[must_use]
    pub fn start(number: u64, dialect: Box<dyn Dialect>, phase: Phase, now: Instant) -> Self {
        let mut connection = Self {
            number,
            dialect,
            out: Outgoing::default(),
            phase,
            processes: Vec::new(),
            calls: HashMap::new(),
            directory: Directory::default(),
            program: None,
            used: now,
        };
        connection.tell(AgentCall::Start);
        connection
    }

    pub fn facts(&self) -> DialectFacts {
        self.dialect.facts()
    }

    /// Sends a call to the agent.
    ///
    /// # Errors
    /// The agent cannot take the call. Nothing was sent.
    pub fn call(&mut self, call: AgentCall<'_>) -> Result<bool, Error> {
        self.dialect.call(call, &mut self.out)
    }

    /// Sends a call that every agent can take. Returns what [`AgentCall`] says for its kind.
    pub fn tell(&mut self, call: AgentCall<'_>) -> bool {
        self.call(call).unwrap_or(false)
    }

    /// Makes the orders of a call without sending them.
    ///
    /// # Errors
    /// The agent cannot take the call.
    pub fn prepare(&mut self, call: AgentCall<'_>, orders: &mut Outgoing) -> Result<bool, Error> {
        self.dialect.call(call, orders)
    }

    pub fn send(&mut self, mut orders: Outgoing) {
        self.out.append(&mut orders);
    }

    pub fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>) {
        self.dialect.answer(key, answer, &mut self.out);
    }

    /// Returns `true` if the agent works in a session without a prompt.
    pub fn is_busy(&self, agent_session: &str) -> bool {
        self.dialect.is_busy(agent_session)
    }

    /// Returns a request of the agent; `None` if the process that sent it no longer accepts an answer.
    pub fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>> {
        self.dialect.request(key)
    }

    /// Reads a line of a process, and appends its events to `events`.
    ///
    /// # Errors
    /// The line is not a message.
    pub fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
    ) -> Result<(), UnusableLine> {
        self.dialect.read(child, line, events, &mut self.out)
    }

    /// Reads the run of updates with which the lines of a process begin.
    pub fn read_run<'a>(&self, child: Child, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.dialect.read_run(child, lines)
    }

    /// Records what was read of a process in another way than line by line.
    pub fn note(&mut self, child: Child, noted: Noted<'_>) {
        self.dialect.note(child, noted);
    }

    /// Handles the end of a process. Returns the events, and `true` if the agent continues without it.
    pub fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
    ) -> (Vec<AgentEvent<'static>>, bool) {
        let mut events = Vec::new();
        let goes_on = self.dialect.ended(child, how, &mut events, &mut self.out);
        (events, goes_on)
    }

    pub fn take_process(&mut self, child: Child) -> Option<Process> {
        let at = self.processes.iter().position(|p| p.child == child)?;
        Some(self.processes.remove(at))
    }

    pub fn end_of(&mut self, process: &Process, how: Result<&Exit, &Error>) -> ProcessEnd {
        if self.is_stopping() {
            let is_over = self.processes.is_empty();
            return if is_over {
                ProcessEnd::All
            } else {
                ProcessEnd::Nothing
            };
        }
        if process.stop.is_some() {
            let closed = self.directory.closed_by(process.child);
            return closed.map_or(ProcessEnd::Nothing, ProcessEnd::Closed);
        }
        let (events, goes_on) = self.ended(process.child, how);
        ProcessEnd::Events(events, goes_on)
    }

    /// Handles a process that can no longer be used, though it may still run; returns `None` if it is already
    /// being stopped.
    pub fn process_failed(&mut self, child: Child, error: &Error) -> Option<ProcessEnd> {
        let process = self.process_mut(child);
        if process.is_some_and(|process| process.stop.is_some()) {
            return None;
        }
        let (events, goes_on) = self.ended(child, Err(error));
        Some(ProcessEnd::Events(events, goes_on))
    }

    pub fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        self.dialect.meaning(text)
    }

    pub fn faults(&self) -> LineFaults {
        self.dialect.faults()
    }

    pub fn take_orders(&mut self) -> Vec<(Child, TransportOrder)> {
        self.out.take()
    }

    /// Returns the dialect, for tests to replace it.
    #[cfg(test)]
    pub fn dialect_mut(&mut self) -> &mut Box<dyn Dialect> {
        &mut self.dialect
    }

    pub fn order(&mut self, child: Child, order: TransportOrder) {
        self.out.order(child, order);
    }

    /// Cuts off an incomplete last line to the agent, which a panic may have left.
    pub fn mend(&mut self) {
        self.out.mend();
    }

    /// Properties that the agent reported in the handshake; `None` unless it is ready.
    pub fn ready(&self) -> Option<&AgentInfo> {
        match &self.phase {
            Phase::Ready(info) => Some(info),
            Phase::Starting { .. } | Phase::Stopping { .. } => None,
        }
    }

    /// Timer of the handshake; `None` unless the agent is starting.
    pub fn start_silence(&self) -> Option<&IdleTimer> {
        match &self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    pub fn start_silence_mut(&mut self) -> Option<&mut IdleTimer> {
        match &mut self.phase {
            Phase::Starting { idle, .. } => Some(idle),
            Phase::Ready(_) | Phase::Stopping { .. } => None,
        }
    }

    pub fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping { .. })
    }

    /// Returns `true` if the agent is being stopped without a request of the client.
    pub fn is_stopping_by_itself(&self) -> bool {
        matches!(self.phase, Phase::Stopping { why: Some(_), .. })
    }

    /// Specification of the agent that is started when this one has ended.
    pub fn next_spec(&self) -> Option<&AgentSpec> {
        match &self.phase {
            Phase::Stopping { next, .. } => next.as_ref().map(|(spec, _)| spec.as_ref()),
            Phase::Starting { .. } | Phase::Ready(_) => None,
        }
    }

    pub fn next_spec_mut(&mut self) -> Option<&mut AgentSpec> {
        match &mut self.phase {
            Phase::Stopping { next, .. } => next.as_mut().map(|(spec, _)| spec.as_mut()),
            Phase::Starting { .. } | Phase::Ready(_) => None,
        }
    }

    /// Takes the calls that wait for this agent to be ready; `None` if it is being stopped.
    pub fn take_waiters(&mut self) -> Option<Vec<Token>> {
        match &mut self.phase {
            Phase::Starting { waiters, .. } => Some(std::mem::take(waiters)),
            Phase::Ready(_) => Some(Vec::new()),
            Phase::Stopping { .. } => None,
        }
    }

    /// Returns `true` if a call waits for the agent to start, or for the next one.
    pub fn is_awaited_by(&self, token: Token) -> bool {
        match &self.phase {
            Phase::Starting { waiters, .. } => waiters.contains(&token),
            Phase::Stopping { next, .. } => next
                .as_ref()
                .is_some_and(|(_, waiters)| waiters.contains(&token)),
            Phase::Ready(_) => false,
        }
    }

    /// Removes a call that waits for the agent to start, or for the next one. Returns `false` if none can wait.
    pub fn forget_waiter(&mut self, token: Token) -> bool {
        let waiters = match &mut self.phase {
            Phase::Starting { waiters, .. } => Some(waiters),
            Phase::Stopping { next, .. } => next.as_mut().map(|(_, waiters)| waiters),
            Phase::Ready(_) => None,
        };
        let can_wait = waiters.is_some();
        if let Some(waiters) = waiters {
            waiters.retain(|waiter| *waiter != token);
        }
        can_wait
    }

    pub fn take_call(&mut self, call: CallId) -> Option<Call> {
        self.calls.remove(&call)
    }

    pub fn note_started(&mut self, child: Child, (pid, program): (u32, Program), now: Instant) {
        if let Some(process) = self.process_mut(child) {
            process.pid = Some(pid);
            process.began = Some(now);
        }
        self.program = Some(program);
    }

    pub fn ignore_output(&mut self, child: Child) {
        if let Some(process) = self.process_mut(child) {
            process.is_ignored = true;
        }
    }

    /// Returns `true` if the input of a process is closed and the process exits by itself.
    pub fn is_one_shot(&self, child: Child) -> bool {
        let mut processes = self.processes.iter();
        processes.any(|process| process.child == child && process.input_closed)
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
        let session = agent_session;
        if self.tell(AgentCall::Close { call, session }) {
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
        if !self.tell(AgentCall::Abandon(agent_session)) {
            return false;
        }
        if child.is_some() {
            self.directory
                .note_closing(agent_session, child, now, until);
        }
        true
    }

    /// Returns the process that serves only this session; `None` if its process serves all sessions.
    pub fn own_process(&self, agent_session: &str) -> Option<Child> {
        let child = self.dialect.child_of(Some(agent_session), None)?;
        (child != Child::MAIN).then_some(child)
    }

    pub fn child(&self, id: AgentId) -> Option<Child> {
        let process = self.processes.iter().find(|process| process.id == id)?;
        Some(process.child)
    }

    pub fn process(&self, child: Child) -> Option<&Process> {
        self.processes.iter().find(|p| p.child == child)
    }

    pub fn process_mut(&mut self, child: Child) -> Option<&mut Process> {
        self.processes.iter_mut().find(|p| p.child == child)
    }

    /// Returns the process that serves a session, given by the agent session id or by the call that opens it.
    pub fn process_of(
        &self,
        agent_session: Option<&str>,
        call: Option<CallId>,
    ) -> Option<&Process> {
        let child = self.dialect.child_of(agent_session, call)?;
        self.processes.iter().find(|p| p.child == child)
    }

    /// Returns the process of the handshake.
    pub fn first_process(&self) -> Option<&Process> {
        self.processes.iter().find(|p| !p.is_read_only)
    }

    /// Returns the pid of the process that serves all sessions.
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

    pub fn running(&self) -> Vec<AgentId> {
        let running = self.processes.iter().filter(|p| p.pid.is_some());
        running.map(|process| process.id).collect()
    }

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
        for (child, order) in self.take_orders() {
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

    /// Performs the next step of the stop of each process that did not exit in time.
    pub fn continue_stops(&mut self, cx: &mut AgentCx<'_>) {
        for process in &mut self.processes {
            if let Some(step) = process.stop.as_mut().and_then(|stop| stop.tick(cx.now)) {
                cx.effects.push(process.effect(step));
            }
        }
    }

    /// Shortens the time that processes get to stop.
    pub fn expedite(&mut self, cx: &mut AgentCx<'_>) {
        for process in &mut self.processes {
            if let Some(stop) = &mut process.stop {
                let step = stop.expedite(cx.now);
                cx.effects.push(process.effect(step));
            }
        }
    }
}
