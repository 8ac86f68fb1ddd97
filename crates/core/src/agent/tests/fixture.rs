//! Test fixture: an agent machine with its context, and the inputs of transcripts.

use super::super::timers::AgentTimer;
use super::super::{AgentCx, AgentMachine, ProcessEnd, Renewal, TimeoutFailure, timeouts};
use super::output;
use crate::client::{ClientId, Reply, Token};
use crate::client_request::ClientRequestId;
use crate::clients::ClientDeclaration;
use crate::effect::{AgentId, Effect, Measure};
use crate::ids::AgentRef;
use crate::profile::Profile;
use crate::shared::Shared;
use crate::testing::{RecordingClient, SettingsBuilder, params};
use acpipe_json::to_raw;
use acpipe_model::dialect::{AgentLine, Child, TransportOrder};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, Exit};
use acpipe_protocol::wire::{AgentState, Done, FoundBy, Program};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Input of an agent machine.
#[derive(Debug, Clone)]
pub(super) enum On {
    /// The client connects the agent with these parameters.
    Connect(Value),
    Disconnect,
    /// A call needs the agent.
    Need,
    /// The newest process runs.
    Started,
    /// The agent answers the handshake.
    Ready,
    /// The agent answers the last call.
    Answer(Value),
    /// The agent answers the last call with an error.
    Refuse,
    /// The newest process exits.
    Exit,
    /// The newest process could not be started.
    StartFailed,
    /// The newest process closes its stdout, but still runs.
    OutputClosed,
    /// Time passes; then all timers that are due expire.
    Wait(Duration),
    Status,
    /// The newest process was measured.
    Measured,
    UpdateEnvironment(Value),
    /// No session of the agent has work left.
    Idle,
    /// The agent completes a turn.
    TurnCompleted,
    Authenticate(Value),
    Logout,
    /// The agent sends an elicitation with this key.
    Ask(&'static str),
    /// The agent withdraws the elicitation with this key.
    Withdraw(&'static str),
    /// The client answers the last elicitation, even if it was answered before.
    Client(Value),
    /// The agent was unused for this long.
    StopIdle(Duration),
    /// Stops are expedited.
    Expedite,
}

/// An agent machine with its context.
pub(super) struct Fixture {
    pub agent: AgentMachine,
    pub shared: Shared,
    pub client: RecordingClient,
    pub now: Instant,
    /// The agent's response to the handshake.
    pub handshake: Value,
    /// Queued prompts.
    pub ahead: Vec<Token>,
    pub is_busy: bool,
    /// Whether a session is being opened.
    pub is_opening: bool,
    effects: Vec<Effect>,
    tokens: u64,
    /// Source of the input: the newest process.
    pub process: AgentId,
    last_call: u64,
    last_ask: Option<ClientRequestId>,
    seen_asks: BTreeSet<ClientRequestId>,
    seen_withdrawn: usize,
    /// Tokens of answered calls.
    pub answered: BTreeSet<u64>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::of(SettingsBuilder::new(Instant::now()))
    }

    pub fn of(settings: SettingsBuilder) -> Self {
        let settings = settings.build();
        let (now, _) = settings.clock;
        let configured = settings.default_agent.clone();
        let mut shared = Shared::new(settings);
        let mut declaration = ClientDeclaration::new(Profile::V7);
        declaration.capabilities.questions = true;
        shared.clients.declare(ClientId::FIRST, declaration);
        Self {
            agent: AgentMachine::new(AgentRef(0), configured),
            shared,
            client: RecordingClient::default(),
            now,
            handshake: json!({ "protocolVersion": 1 }),
            ahead: Vec::new(),
            is_busy: false,
            is_opening: false,
            effects: Vec::new(),
            tokens: 0,
            process: AgentId(0),
            last_call: 0,
            last_ask: None,
            seen_asks: BTreeSet::new(),
            seen_withdrawn: 0,
            answered: BTreeSet::new(),
        }
    }

    pub fn ready() -> Self {
        Self::ready_with(json!({ "protocolVersion": 1 }))
    }

    /// Returns a ready agent that answered the handshake with this response.
    pub fn ready_with(handshake: Value) -> Self {
        let mut t = Self::new();
        t.handshake = handshake;
        for event in [On::Need, On::Started, On::Ready] {
            t.on(&event);
        }
        t
    }

    /// Passes an event to the machine.
    pub fn act<T>(&mut self, act: impl FnOnce(&mut AgentMachine, &mut AgentCx<'_>) -> T) -> T {
        let mut cx = AgentCx {
            now: self.now,
            shared: &mut self.shared,
            clients: &mut self.client,
            effects: &mut self.effects,
        };
        act(&mut self.agent, &mut cx)
    }

    /// Plays a transcript: each input must lead to exactly this output.
    #[track_caller]
    pub fn play(&mut self, script: &[(On, &[&str])]) {
        for (row, (event, want)) in script.iter().enumerate() {
            let output = self.on(event);
            assert_eq!(output, *want, "row {row}: {event:?}");
        }
    }

    /// Passes an input to the machine; returns all output that follows.
    pub fn on(&mut self, event: &On) -> Vec<String> {
        match event {
            On::Connect(p) => {
                let p = params(p.clone());
                self.command(|agent, token, cx| agent.connect(token, p, cx));
            }
            On::Disconnect => self.disconnect(),
            On::Need => self.command(|agent, token, cx| {
                agent.need(None, cx)?;
                // The call itself would continue in a session.
                cx.reply(token, Reply::Done(Done {}));
                Ok(())
            }),
            On::Started => self.started(),
            On::Ready => {
                let result = self.handshake.clone();
                self.read(&json!({ "id": self.last_call, "result": result }));
            }
            On::Answer(result) => self.read(&json!({ "id": self.last_call, "result": result })),
            On::Refuse => {
                let error = json!({ "code": -32603, "message": "no" });
                self.read(&json!({ "id": self.last_call, "error": error }));
            }
            On::Exit => self.exited(),
            On::StartFailed => {
                let error = Error::new(ErrorKind::AgentNotFound, "not found in PATH");
                if let Some(child) = self.agent.connection().and_then(|c| c.child(self.process)) {
                    let gone = self.act(|a, cx| a.process_ended(child, Err(&error), cx));
                    self.gone(&gone, &error);
                }
            }
            On::OutputClosed => {
                let error = Error::new(ErrorKind::Streaming, "stdout was closed");
                if let Some(child) = self.agent.connection().and_then(|c| c.child(self.process)) {
                    self.failed(child, &error);
                }
            }
            On::Wait(time) => self.wait(*time),
            On::Status => self.command(|agent, token, cx| {
                agent.request_status(token, cx);
                Ok(())
            }),
            On::Measured => {
                let id = self.process;
                if let Some(child) = self.agent.connection().and_then(|c| c.child(id)) {
                    let measure = Measure {
                        processes: 2,
                        rss: 7,
                    };
                    self.act(|agent, cx| agent.measured(id, child, measure, cx));
                }
            }
            On::UpdateEnvironment(p) => {
                let (p, sessions) = (params(p.clone()), (self.is_busy, self.ahead.clone()));
                self.command(|agent, token, cx| agent.update_environment(token, p, sessions, cx));
            }
            On::Idle => self.continue_renewal(),
            On::TurnCompleted => self.agent.note_turn(),
            On::Authenticate(p) => {
                let (p, ahead) = (params(p.clone()), self.ahead.clone());
                self.command(|agent, token, cx| agent.authenticate(token, p, ahead, cx));
            }
            On::Logout => self.command(AgentMachine::logout),
            On::Ask(key) => {
                let schema = json!({ "type": "object", "properties": {} });
                let params =
                    json!({ "mode": "form", "message": "Who?", "requestedSchema": schema });
                self.read(&json!({ "id": key, "method": "elicitation/create", "params": params }));
            }
            On::Withdraw(key) => {
                let params = json!({ "requestId": key });
                self.read(&json!({ "method": "$/cancel_request", "params": params }));
            }
            On::Client(answer) => {
                if let Some(id) = self.last_ask {
                    self.client.open_requests.remove(&id);
                    let answer = Ok(to_raw(answer));
                    self.act(|agent, cx| {
                        agent.decide_questions(|open| {
                            open.client_answered(ClientId::FIRST, id, &answer, cx)
                        });
                    });
                }
            }
            On::StopIdle(limit) => {
                if self.act(|agent, cx| agent.stop_idle(*limit, cx)) {
                    self.stopped();
                }
            }
            On::Expedite => self.act(|agent, cx| {
                if let Some(connection) = agent.connection_mut() {
                    connection.expedite(cx);
                }
            }),
        }
        self.act(|agent, cx| agent.deliver(cx.now, cx.shared, cx.effects));
        self.output()
    }

    /// Takes the output since the last call.
    fn output(&mut self) -> Vec<String> {
        let mut all: Vec<String> = self
            .client
            .notices
            .drain(..)
            .map(|n| output::notice(&n))
            .collect();
        for (id, request) in &self.client.open_requests {
            if self.seen_asks.insert(*id) {
                self.last_ask = Some(*id);
                all.push(format!("ask {}", request.method()));
            }
        }
        for (_, by) in &self.client.withdrawn[self.seen_withdrawn..] {
            all.push(format!("withdraw by {}", by.word()));
        }
        self.seen_withdrawn = self.client.withdrawn.len();
        for (token, reply) in self.client.take_replies() {
            self.answered.insert(token.call);
            all.push(format!("reply {} {}", token.call, output::reply(&reply)));
        }
        for effect in self.effects.drain(..) {
            match &effect {
                Effect::Open(id, _) => self.process = *id,
                Effect::Send(_, lines) => {
                    self.last_call = last_call(lines).unwrap_or(self.last_call);
                }
                _ => {}
            }
            all.extend(output::effect(&effect));
        }
        all
    }

    /// Returns the number of calls so far.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    fn command(
        &mut self,
        call: impl FnOnce(&mut AgentMachine, Token, &mut AgentCx<'_>) -> Result<(), Error>,
    ) {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.act(|agent, cx| {
            if let Err(error) = call(agent, token, cx) {
                cx.fail([token], &error);
            }
        });
    }

    fn started(&mut self) {
        let program = Program {
            file: "/agent".into(),
            real_file: "/agent".into(),
            found_by: FoundBy::GivenPath,
            passed_over: Vec::new(),
            added_path: Vec::new(),
        };
        if let Some(child) = self.agent.connection().and_then(|c| c.child(self.process)) {
            let now = self.now;
            self.agent
                .connection_mut()
                .unwrap()
                .note_started(child, (42, program), now);
        }
    }

    fn disconnect(&mut self) {
        self.agent.forbid_restart();
        if self.act(AgentMachine::stop) {
            self.stopped();
        } else if self.agent.give_up_restart() {
            self.act(|agent, cx| cx.notify_state(agent.name(), AgentState::Disconnected, None));
        }
        self.command(|agent, token, cx| {
            agent.disconnect(token, cx);
            Ok(())
        });
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
        for timer in AgentTimer::ALL {
            for TimeoutFailure { error, process } in self.act(|agent, cx| agent.tick(timer, cx)) {
                match process {
                    Some(child) => self.failed(child, &error),
                    None => self.agent_failed(&error),
                }
            }
        }
    }

    fn exited(&mut self) {
        let exit = Exit {
            code: Some(1),
            ..Exit::default()
        };
        if let Some(child) = self.agent.connection().and_then(|c| c.child(self.process)) {
            let gone = self.act(|agent, cx| agent.process_ended(child, Ok(&exit), cx));
            let error = timeouts::exit_error(self.agent.connection(), self.agent.spec(), &exit);
            self.gone(&gone, &error);
        }
    }

    /// Handles a process that can no longer be used.
    fn failed(&mut self, child: Child, error: &Error) {
        match self
            .agent
            .connection_mut()
            .and_then(|c| c.process_failed(child, error))
        {
            None => {}
            Some(ProcessEnd::Events(_, false) | ProcessEnd::All) => self.agent_failed(error),
            Some(_) => self
                .agent
                .connection_mut()
                .unwrap()
                .order(child, TransportOrder::Stop),
        }
    }

    fn gone(&mut self, gone: &ProcessEnd, error: &Error) {
        if matches!(gone, ProcessEnd::All | ProcessEnd::Events(_, false)) {
            self.over(error);
        }
    }

    fn agent_failed(&mut self, error: &Error) {
        self.fail_calls(error);
        let is_over = self.act(|agent, cx| {
            agent.note_crash(cx.now);
            if agent.renewal().is_some_and(Renewal::is_pending) {
                agent.replace(cx)
            } else if agent.is_stopping() {
                false
            } else {
                agent.begin_stopping(None, None, cx)
            }
        });
        if is_over {
            self.stopped();
        }
    }

    fn stopped(&mut self) {
        self.over(&Error::new(ErrorKind::Cancelled, "the agent was stopped"));
    }

    /// Handles the end of the connection.
    fn over(&mut self, error: &Error) {
        self.fail_calls(error);
        self.act(|agent, cx| {
            agent.note_crash(cx.now);
            agent.gone(error, true, cx);
        });
    }

    fn fail_calls(&mut self, error: &Error) {
        self.act(|agent, cx| agent.fail_calls(error, cx));
        if !self.agent.renewal().is_some_and(Renewal::is_pending) {
            let is_opening = self.is_opening;
            self.act(|agent, cx| agent.answer_renewal(|_| is_opening, cx));
        }
        self.act(|agent, cx| agent.forget_sessions(error, cx));
    }

    fn continue_renewal(&mut self) {
        let Some(renewal) = self.agent.renewal() else {
            return;
        };
        if renewal.has_started() {
            let is_opening = self.is_opening;
            self.act(|agent, cx| agent.answer_renewal(|_| is_opening, cx));
        } else if self.act(AgentMachine::replace) {
            self.stopped();
        }
    }

    /// Reads a message of the agent.
    fn read(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let (line, mut events) = (message.to_string(), Vec::new());
        let Some(connection) = self.agent.connection_mut() else {
            return;
        };
        let child = connection.child(self.process).unwrap_or(Child::MAIN);
        connection
            .read(child, AgentLine::Whole(line.as_bytes()), &mut events)
            .unwrap();
        for event in events {
            self.event(event);
        }
    }

    fn event(&mut self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Ready(info) => {
                self.act(|agent, cx| agent.ready(info, cx));
            }
            AgentEvent::NotReady(error) => self.agent_failed(&error),
            AgentEvent::Done { call } => {
                self.agent.connection_mut().unwrap().take_call(call);
                self.act(|agent, cx| agent.sign_in_answered(call, &Ok(()), cx));
            }
            AgentEvent::Failed { call, error } => {
                self.agent.connection_mut().unwrap().take_call(call);
                self.act(|agent, cx| agent.sign_in_answered(call, &Err(error), cx));
            }
            AgentEvent::Elicitation(asked) => {
                self.act(|agent, cx| agent.ask_without_session(*asked, None, cx));
            }
            AgentEvent::Withdrawn { key } => {
                self.act(|agent, cx| agent.withdrawn(&key, cx));
            }
            other => panic!("{other:?} is not for an agent"),
        }
    }
}

/// Returns the id of the last request in data written to a process.
fn last_call(lines: &[u8]) -> Option<u64> {
    let lines = lines.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let calls = messages.filter(|message| message["method"].is_string());
    calls.filter_map(|call| call["id"].as_u64()).next_back()
}
