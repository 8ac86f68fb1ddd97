//! Dialect for ACP agents that cannot run two sessions in one process: each session has its own process.
//!
//! The first process performs the handshake and gets the first session. Each further session gets another
//! process, whose own handshake precedes the opening of the session. The end of a process affects only its
//! session.

mod process_events;
mod queued_call;

use super::Acp;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentServices, AgentText, Child, Dialect,
    DialectFacts, Noted, Outgoing, ProcessSpec, TextMeaning, TransportOrder,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId, Exit};
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::RequestKey;
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::LineFaults;
use queued_call::QueuedCall;
use std::collections::{BTreeMap, HashMap};

/// An ACP agent with one process per session.
#[derive(Debug)]
pub struct PerSession {
    launch: ProcessSpec,
    offer: AgentServices,
    numbers: RequestNumbers,
    children: BTreeMap<Child, Process>,
    /// Process of each session, by the agent's session ids.
    sessions: HashMap<String, Child>,
    last_child: u64,
    /// Whether the first process became ready. From then on the agent stays connected whichever process ends.
    is_established: bool,
    /// Line faults of processes that have ended.
    faults: LineFaults,
}

#[derive(Debug)]
struct Process {
    acp: Acp,
    ready: bool,
    /// Requests to send once the process is ready.
    waiting: Vec<QueuedCall>,
    /// Call that opened the session of the process; `None` while the process has no session.
    opened_by: Option<CallId>,
}

impl PerSession {
    #[must_use]
    pub fn new(launch: ProcessSpec, offer: AgentServices) -> Self {
        Self {
            launch,
            offer,
            numbers: RequestNumbers::default(),
            children: BTreeMap::new(),
            sessions: HashMap::new(),
            last_child: 0,
            is_established: false,
            faults: LineFaults::default(),
        }
    }

    #[must_use]
    pub fn numbered(self, numbers: RequestNumbers) -> Self {
        Self { numbers, ..self }
    }

    /// Starts another process and its handshake.
    fn add(&mut self, out: &mut Outgoing) -> Child {
        self.last_child += 1;
        let child = Child(self.last_child);
        let acp = Acp::new(self.launch.clone(), self.offer.clone());
        let mut acp = acp.of_child(self.numbers, child);
        // The start of a process cannot fail.
        let _ = with_child(child, out, |out| acp.call(AgentCall::Start, out));
        let process = Process {
            acp,
            ready: false,
            waiting: Vec::new(),
            opened_by: None,
        };
        self.children.insert(child, process);
        child
    }

    /// Returns a process without a session, and starts one if there is none.
    fn idle_process(&mut self, out: &mut Outgoing) -> Child {
        let idle_process = self.children.iter().find(|(_, p)| p.opened_by.is_none());
        let idle_process = idle_process.map(|(child, _)| *child);
        idle_process.unwrap_or_else(|| self.add(out))
    }

    /// Signs in or out through the process that the next session gets.
    fn queue_sign_in(&mut self, queued: QueuedCall, out: &mut Outgoing) {
        let child = self.idle_process(out);
        if let Some(process) = self.children.get_mut(&child) {
            process.wish(child, queued, out);
        }
    }

    /// Process whose session this call opened or is to open.
    fn opened_by(&self, call: CallId) -> Option<Child> {
        let mut children = self.children.iter();
        let opened = children.find(|(_, process)| process.opened_by == Some(call));
        opened.map(|(child, _)| *child)
    }

    /// Passes a call on to a process; `None` if it does not run.
    fn pass(
        &mut self,
        child: Option<Child>,
        call: AgentCall<'_>,
        out: &mut Outgoing,
    ) -> Option<Result<bool, Error>> {
        let child = child?;
        let process = self.children.get_mut(&child)?;
        Some(with_child(child, out, |out| process.acp.call(call, out)))
    }

    fn stop(&mut self, child: Child, out: &mut Outgoing) {
        self.remove(child);
        out.order(child, TransportOrder::Stop);
    }

    /// Stops the process of a session, if it has one.
    fn end(&mut self, session: &str, out: &mut Outgoing) {
        if let Some(child) = self.sessions.get(session) {
            self.stop(*child, out);
        }
    }

    fn remove(&mut self, child: Child) -> Option<Process> {
        self.sessions.retain(|_, of| *of != child);
        let process = self.children.remove(&child)?;
        self.faults = sum(self.faults, process.acp.faults());
        Some(process)
    }
}

impl Dialect for PerSession {
    fn facts(&self) -> DialectFacts {
        super::FACTS
    }

    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        match call {
            AgentCall::Start => {
                self.add(out);
            }
            AgentCall::Open { call, way, place } => {
                let child = self.idle_process(out);
                if let Some(process) = self.children.get_mut(&child) {
                    process.opened_by = Some(call);
                    process.wish(child, QueuedCall::open(call, way, place), out);
                }
            }
            AgentCall::Forget(call) => {
                if let Some(child) = self.opened_by(call) {
                    self.stop(child, out);
                }
            }
            AgentCall::List { call, cwd, cursor } => {
                let ready = self.children.iter().find(|(_, process)| process.ready);
                let child = ready.map(|(child, _)| *child);
                let child = child.unwrap_or_else(|| self.idle_process(out));
                let queued = QueuedCall::List {
                    call,
                    cwd: cwd.map(str::to_owned),
                    cursor: cursor.map(str::to_owned),
                };
                if let Some(process) = self.children.get_mut(&child) {
                    process.wish(child, queued, out);
                }
            }
            AgentCall::Close { session, .. } => {
                self.end(session, out);
                return Ok(false);
            }
            AgentCall::Abandon(session) => self.end(session, out),
            AgentCall::Authenticate { call, method } => {
                let method = Some(method.to_owned());
                self.queue_sign_in(QueuedCall::Sign { call, method }, out);
            }
            AgentCall::Logout(call) => {
                self.queue_sign_in(QueuedCall::Sign { call, method: None }, out);
            }
            AgentCall::Forward { session: None, .. } => {
                let child = self.children.keys().next().copied();
                return self.pass(child, call, out).unwrap_or(Ok(false));
            }
            AgentCall::WithdrawForwarded(call) => {
                for (child, process) in &mut self.children {
                    let withdraw = AgentCall::WithdrawForwarded(call);
                    with_child(*child, out, |out| process.acp.call(withdraw, out))?;
                }
            }
            AgentCall::Prompt { session, .. } => {
                let child = self.sessions.get(session).copied();
                return self.pass(child, call, out).unwrap_or_else(|| {
                    let message = format!("session {session:?} has no agent process");
                    Err(Error::new(ErrorKind::Session, message))
                });
            }
            AgentCall::Transcript { session, .. }
            | AgentCall::WithdrawPrompt { session, .. }
            | AgentCall::Steer { session, .. }
            | AgentCall::Set { session, .. }
            | AgentCall::Cancel(session)
            | AgentCall::Forward {
                session: Some(session),
                ..
            } => {
                let child = self.sessions.get(session).copied();
                return self.pass(child, call, out).unwrap_or(Ok(false));
            }
        }
        Ok(true)
    }

    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing) {
        if let Some(process) = self.children.get_mut(&key.child) {
            with_child(key.child, out, |out| process.acp.answer(key, answer, out));
        }
    }

    fn child_of(&self, session: Option<&str>, call: Option<CallId>) -> Option<Child> {
        let named = session.and_then(|id| self.sessions.get(id)).copied();
        named.or_else(|| self.opened_by(call?))
    }

    fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>> {
        self.children.get(&key.child)?.acp.request(key)
    }

    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let before = events.len();
        // Output of a process that is being stopped is ignored, since nothing waits for it.
        if let Some(process) = self.children.get_mut(&child) {
            with_child(child, out, |out| process.acp.read(child, line, events, out))?;
            self.process_events(child, before, events, out);
        }
        Ok(())
    }

    fn read_run<'a>(&self, child: Child, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.children.get(&child)?.acp.read_run(child, lines)
    }

    fn note(&mut self, child: Child, noted: Noted<'_>) {
        if let Some(process) = self.children.get_mut(&child) {
            process.acp.note(child, noted);
        }
    }

    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        _: &mut Outgoing,
    ) -> bool {
        let error = match how {
            Ok(exit) => exit.error(ErrorKind::AgentExited, "the agent exited unexpectedly"),
            Err(error) => error.clone(),
        };
        self.fail_process(child, &error, events);
        self.is_established
    }

    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        // All processes belong to the same agent, so any of them will do.
        match self.children.values().next() {
            Some(process) => process.acp.meaning(text),
            None => Acp::default().meaning(text),
        }
    }

    fn faults(&self) -> LineFaults {
        let living = self.children.values().map(|process| process.acp.faults());
        living.fold(self.faults, sum)
    }
}

impl Process {
    /// Sends the request now, or once the process is ready.
    fn wish(&mut self, child: Child, queued: QueuedCall, out: &mut Outgoing) {
        if self.ready {
            with_child(child, out, |out| queued.ask(&mut self.acp, out));
        } else {
            self.waiting.push(queued);
        }
    }
}

/// Runs `act` with a separate queue and forwards the orders for its single process to `child`.
fn with_child<T>(child: Child, out: &mut Outgoing, act: impl FnOnce(&mut Outgoing) -> T) -> T {
    let mut single = Outgoing::default();
    let done = act(&mut single);
    for (_, order) in single.take() {
        match order {
            TransportOrder::Lines(lines) => out.lines(child).extend_from_slice(&lines),
            other => out.order(child, other),
        }
    }
    done
}

fn sum(a: LineFaults, b: LineFaults) -> LineFaults {
    LineFaults {
        malformed: a.malformed + b.malformed,
        blank: a.blank + b.blank,
        invalid_utf8: a.invalid_utf8 + b.invalid_utf8,
        too_long: a.too_long + b.too_long,
    }
}
