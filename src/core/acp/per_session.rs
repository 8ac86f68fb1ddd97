//! Dialect for ACP agents that cannot run two sessions in one process: each session has its own process.
//!
//! The first process performs the handshake and gets the first session. Each further session gets another
//! process, whose own handshake precedes the opening of the session. The end of a process affects only its
//! session.

mod process_events;
mod queued_call;

use super::{Acp, requests};
use crate::core::client_answer::ClientAnswer;
use crate::core::decision::Decision;
use crate::core::dialect::{
    AgentServices, Child, Dialect, Opening, Outgoing, ProcessSpec, PromptPart, SessionSetup,
    TransportOrder,
};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, CallId, Exit};
use crate::core::host::HostAnswer;
use crate::core::line_repair::{LostLine, UnusableLine};
use crate::core::request_key::RequestKey;
use crate::core::request_numbers::RequestNumbers;
use crate::core::setting::Setting;
use crate::core::update_run::UpdateRun;
use crate::proto::json::repair::Faults;
use crate::proto::wire::LineFaults;
use queued_call::{OpenAs, QueuedCall};
use serde_json::value::RawValue;
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
    /// Creates the dialect for an agent whose processes `launch` starts.
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

    /// Sets the source of the request ids.
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
        with_child(child, out, |out| acp.start(out));
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

    /// Process of a session, by the agent's session id.
    fn of(&mut self, session: &str) -> Option<(Child, &mut Acp)> {
        let child = *self.sessions.get(session)?;
        Some((child, &mut self.children.get_mut(&child)?.acp))
    }

    /// Applies `act` to the process of a session, if it has one.
    fn act(
        &mut self,
        session: &str,
        out: &mut Outgoing,
        act: impl FnOnce(&mut Acp, &mut Outgoing),
    ) {
        if let Some((child, acp)) = self.of(session) {
            with_child(child, out, |out| act(acp, out));
        }
    }

    /// Applies `act` to the process that sent a request, if it still runs.
    fn for_request(
        &mut self,
        key: &RequestKey,
        out: &mut Outgoing,
        act: impl FnOnce(&mut Acp, &mut Outgoing),
    ) {
        if let Some(process) = self.children.get_mut(&key.child) {
            with_child(key.child, out, |out| act(&mut process.acp, out));
        }
    }

    /// Stops a process that is no longer needed.
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
    fn name(&self) -> &'static str {
        "acp"
    }

    fn start(&mut self, out: &mut Outgoing) {
        self.add(out);
    }

    fn open(
        &mut self,
        call: CallId,
        way: Opening<'_>,
        place: &SessionSetup<'_>,
        out: &mut Outgoing,
    ) {
        let child = self.idle_process(out);
        let queued = QueuedCall::Open {
            call,
            way: match way {
                Opening::New => OpenAs::New,
                Opening::Resume(id) => OpenAs::Resume(id.to_owned()),
                Opening::Load(id) => OpenAs::Load(id.to_owned()),
            },
            cwd: place.cwd.to_owned(),
            mcp_servers: place.mcp_servers.to_vec(),
            acp: place.acp.clone(),
        };
        if let Some(process) = self.children.get_mut(&child) {
            process.opened_by = Some(call);
            process.wish(child, queued, out);
        }
    }

    fn forget(&mut self, call: CallId, out: &mut Outgoing) {
        if let Some(child) = self.opened_by(call) {
            self.stop(child, out);
        }
    }

    fn child_of(&self, session: Option<&str>, call: Option<CallId>) -> Option<Child> {
        let named = session.and_then(|id| self.sessions.get(id)).copied();
        named.or_else(|| self.opened_by(call?))
    }

    fn list(&mut self, call: CallId, cwd: Option<&str>, cursor: Option<&str>, out: &mut Outgoing) {
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

    fn close(&mut self, _: CallId, session: &str, out: &mut Outgoing) -> bool {
        self.end(session, out);
        false
    }

    fn authenticate(&mut self, call: CallId, method: &str, out: &mut Outgoing) -> bool {
        let method = Some(method.to_owned());
        self.queue_sign_in(QueuedCall::Sign { call, method }, out);
        true
    }

    fn logout(&mut self, call: CallId, out: &mut Outgoing) {
        self.queue_sign_in(QueuedCall::Sign { call, method: None }, out);
    }

    fn prompt(
        &mut self,
        call: CallId,
        session: &str,
        parts: &[PromptPart],
        degrade: bool,
        out: &mut Outgoing,
    ) -> Result<(), Error> {
        let Some((child, acp)) = self.of(session) else {
            let message = format!("session {session:?} has no agent process");
            return Err(Error::new(ErrorKind::Session, message));
        };
        with_child(child, out, |out| {
            acp.prompt(call, session, parts, degrade, out)
        })
    }

    fn withdraw_prompt(&mut self, call: CallId, session: &str) {
        if let Some((_, acp)) = self.of(session) {
            acp.withdraw_prompt(call, session);
        }
    }

    fn set(&mut self, call: CallId, session: &str, setting: &Setting, out: &mut Outgoing) {
        self.act(session, out, |acp, out| {
            acp.set(call, session, setting, out);
        });
    }

    fn cancel(&mut self, session: &str, out: &mut Outgoing) {
        self.act(session, out, |acp, out| acp.cancel(session, out));
    }

    fn abandon(&mut self, session: &str, out: &mut Outgoing) -> bool {
        self.end(session, out);
        true
    }

    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outgoing) {
        self.for_request(key, out, |acp, out| acp.answer(key, decision, out));
    }

    fn takes_answer(&self, key: &RequestKey) -> bool {
        self.children.contains_key(&key.child)
    }

    fn answer_elicitation(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outgoing) {
        self.for_request(key, out, |acp, out| {
            acp.answer_elicitation(key, decision, out);
        });
    }

    fn give(&mut self, key: &RequestKey, answer: Result<&HostAnswer, &Error>, out: &mut Outgoing) {
        self.for_request(key, out, |acp, out| acp.give(key, answer, out));
    }

    fn forward(
        &mut self,
        call: Option<CallId>,
        session: Option<&str>,
        method: &str,
        params: Option<&RawValue>,
        out: &mut Outgoing,
    ) -> bool {
        let child = match session {
            Some(session) => self.sessions.get(session).copied(),
            None => self.children.keys().next().copied(),
        };
        let process = child.and_then(|child| Some((child, self.children.get_mut(&child)?)));
        let Some((child, process)) = process else {
            return false;
        };
        with_child(child, out, |out| {
            process.acp.forward(call, session, method, params, out)
        })
    }

    fn answer_forwarded(&mut self, key: &RequestKey, answer: &ClientAnswer, out: &mut Outgoing) {
        self.for_request(key, out, |acp, out| acp.answer_forwarded(key, answer, out));
    }

    fn withdraw_forwarded(&mut self, call: CallId, out: &mut Outgoing) {
        for (child, process) in &mut self.children {
            with_child(*child, out, |out| process.acp.withdraw_forwarded(call, out));
        }
    }

    fn read<'a>(
        &mut self,
        child: Child,
        line: &'a [u8],
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

    fn is_own_message(&self, message: &str) -> bool {
        requests::is_own_message(message)
    }

    fn is_response(&self, message: &str) -> bool {
        requests::is_response(message)
    }

    fn count_repaired(&mut self, child: Child, faults: Faults) {
        if let Some(process) = self.children.get_mut(&child) {
            process.acp.count_repaired(child, faults);
        }
    }

    fn note_run(&mut self, child: Child, run: &UpdateRun<'_>) {
        if let Some(process) = self.children.get_mut(&child) {
            process.acp.note_run(child, run);
        }
    }

    fn read_run<'a>(&self, child: Child, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.children.get(&child)?.acp.read_run(child, lines)
    }

    fn read_lost(
        &mut self,
        child: Child,
        line: &LostLine<'_>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) {
        let before = events.len();
        if let Some(process) = self.children.get_mut(&child) {
            with_child(child, out, |out| {
                process.acp.read_lost(child, line, events, out);
            });
            self.process_events(child, before, events, out);
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

    fn failure(&self, said: &str) -> Error {
        // All processes belong to the same agent, so any of them will do.
        match self.children.values().next() {
            Some(process) => process.acp.failure(said),
            None => Acp::default().failure(said),
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
