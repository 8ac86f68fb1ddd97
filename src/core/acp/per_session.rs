//! Dialect for ACP agents that cannot run two sessions in one process: each session has its own process.
//!
//! The first process performs the handshake and gets the first session. Each further session gets another
//! process, whose own handshake precedes the opening of the session. The end of a process affects only its
//! session.

mod wish;

use super::{Acp, Pending};
use crate::core::dialect::{
    Child, Dialect, Offer, Opening, Order, Outgoing, Place, ProcessSpec, PromptPart,
};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, CallId, Exit};
use crate::core::host::HostAnswer;
use crate::core::permit::Decision;
use crate::core::request_key::RequestKey;
use crate::core::setting::Setting;
use crate::proto::frame::Overlong;
use crate::proto::wire::LineFaults;
use std::collections::{BTreeMap, HashMap};
use wish::{Way, Wish};

/// An ACP agent with one process per session.
#[derive(Debug)]
pub struct PerSession {
    launch: ProcessSpec,
    offer: Offer,
    children: BTreeMap<Child, Process>,
    /// Process of each session, by the agent's session ids.
    sessions: HashMap<String, Child>,
    last_child: u64,
    /// Whether the first process became ready. From then on the agent stays connected whichever process ends.
    serves: bool,
    /// Line faults of processes that have ended.
    faults: LineFaults,
}

#[derive(Debug)]
struct Process {
    acp: Acp,
    ready: bool,
    /// Requests to send once the process is ready.
    waiting: Vec<Wish>,
    /// Call that opened the session of the process; `None` while the process has no session.
    opened_by: Option<CallId>,
}

impl PerSession {
    /// Creates the dialect for an agent whose processes `launch` starts.
    #[must_use]
    pub fn new(launch: ProcessSpec, offer: Offer) -> Self {
        Self {
            launch,
            offer,
            children: BTreeMap::new(),
            sessions: HashMap::new(),
            last_child: 0,
            serves: false,
            faults: LineFaults::default(),
        }
    }

    /// Starts another process and its handshake.
    fn add(&mut self, out: &mut Outgoing) -> Child {
        self.last_child += 1;
        let child = Child(self.last_child);
        let mut acp = Acp::new(self.launch.clone(), self.offer);
        acting(child, out, |out| acp.start(out));
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
    fn spare(&mut self, out: &mut Outgoing) -> Child {
        let spare = self.children.iter().find(|(_, p)| p.opened_by.is_none());
        let spare = spare.map(|(child, _)| *child);
        spare.unwrap_or_else(|| self.add(out))
    }

    /// Signs in or out through the process that the next session gets.
    fn sign(&mut self, wish: Wish, out: &mut Outgoing) {
        let child = self.spare(out);
        if let Some(process) = self.children.get_mut(&child) {
            process.wish(child, wish, out);
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
            acting(child, out, |out| act(acp, out));
        }
    }

    /// Applies `act` to the process that sent a request, if it still runs.
    fn act_for(
        &mut self,
        key: &RequestKey,
        out: &mut Outgoing,
        act: impl FnOnce(&mut Acp, &mut Outgoing),
    ) {
        if let Some(process) = self.children.get_mut(&key.child) {
            acting(key.child, out, |out| act(&mut process.acp, out));
        }
    }

    /// Stops a process that is no longer needed.
    fn stop(&mut self, child: Child, out: &mut Outgoing) {
        self.remove(child);
        out.order(child, Order::Stop);
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

    /// Processes an event of a process; returns `false` if the event is not to be passed on.
    fn note(&mut self, child: Child, event: &mut AgentEvent<'_>, out: &mut Outgoing) -> bool {
        let Some(process) = self.children.get_mut(&child) else {
            return true;
        };
        match event {
            AgentEvent::Ready(info) => {
                // Closing a session ends its process, so it always works.
                info.capabilities.close = true;
                process.ready = true;
                for wish in std::mem::take(&mut process.waiting) {
                    acting(child, out, |out| wish.ask(&mut process.acp, out));
                }
                !std::mem::replace(&mut self.serves, true)
            }
            AgentEvent::SessionOpened {
                call,
                agent_session,
                ..
            } if process.opened_by == Some(*call) => {
                self.sessions.entry(agent_session.clone()).or_insert(child);
                true
            }
            AgentEvent::Failed { call, .. } if process.opened_by == Some(*call) => {
                process.opened_by = None;
                true
            }
            AgentEvent::Permission(permission) => {
                permission.key.child = child;
                true
            }
            AgentEvent::Elicitation(asked) => {
                asked.key.child = child;
                true
            }
            AgentEvent::Wanted(wanted) => {
                wanted.key.child = child;
                true
            }
            AgentEvent::Withdrawn { key } => {
                key.child = child;
                true
            }
            _ => true,
        }
    }

    /// Processes all events of a process beyond the first `before`.
    fn note_all(
        &mut self,
        child: Child,
        before: usize,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        let mut at = before;
        while let Some(event) = events.get_mut(at) {
            let broken = match event {
                AgentEvent::NotReady(error) if self.serves => Some(error.clone()),
                _ => None,
            };
            if broken.is_none() && self.note(child, event, out) {
                at += 1;
                continue;
            }
            events.remove(at);
            if let Some(error) = broken {
                self.lost(child, &error, events);
                out.order(child, Order::Stop);
            }
        }
    }

    /// Removes a process that has failed: its pending calls fail, and its session is lost.
    fn lost(&mut self, child: Child, error: &Error, events: &mut Vec<AgentEvent<'_>>) {
        let session = self.sessions.iter().find(|(_, of)| **of == child);
        let session = session.map(|(session, _)| session.clone());
        let Some(mut process) = self.remove(child) else {
            return;
        };
        let waiting = process.waiting.iter().map(|wish| AgentEvent::Failed {
            call: wish.call(),
            error: error.clone(),
        });
        events.extend(waiting);
        let asked = process.acp.pending.drain().map(|(_, pending)| pending);
        let asked = asked.filter(|pending| !matches!(pending, Pending::Initialize));
        events.extend(asked.filter_map(|pending| pending.failed(error.clone())));
        if let Some(session) = session {
            let error = error.clone();
            events.push(AgentEvent::SessionLost { session, error });
        }
    }
}

impl Dialect for PerSession {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn start(&mut self, out: &mut Outgoing) {
        self.add(out);
    }

    fn open(&mut self, call: CallId, way: Opening<'_>, place: &Place<'_>, out: &mut Outgoing) {
        let child = self.spare(out);
        let wish = Wish::Open {
            call,
            way: match way {
                Opening::New => Way::New,
                Opening::Resume(id) => Way::Resume(id.to_owned()),
                Opening::Load(id) => Way::Load(id.to_owned()),
            },
            cwd: place.cwd.to_owned(),
            mcp_servers: place.mcp_servers.to_vec(),
        };
        if let Some(process) = self.children.get_mut(&child) {
            process.opened_by = Some(call);
            process.wish(child, wish, out);
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
        let child = child.unwrap_or_else(|| self.spare(out));
        let wish = Wish::List {
            call,
            cwd: cwd.map(str::to_owned),
            cursor: cursor.map(str::to_owned),
        };
        if let Some(process) = self.children.get_mut(&child) {
            process.wish(child, wish, out);
        }
    }

    fn close(&mut self, _: CallId, session: &str, out: &mut Outgoing) -> bool {
        self.end(session, out);
        false
    }

    fn authenticate(&mut self, call: CallId, method: &str, out: &mut Outgoing) -> bool {
        let method = Some(method.to_owned());
        self.sign(Wish::Sign { call, method }, out);
        true
    }

    fn logout(&mut self, call: CallId, out: &mut Outgoing) {
        self.sign(Wish::Sign { call, method: None }, out);
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
        acting(child, out, |out| {
            acp.prompt(call, session, parts, degrade, out)
        })
    }

    fn unsend(&mut self, call: CallId, session: &str) {
        if let Some((_, acp)) = self.of(session) {
            acp.unsend(call, session);
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
        self.act_for(key, out, |acp, out| acp.answer(key, decision, out));
    }

    fn takes_answer(&self, key: &RequestKey) -> bool {
        self.children.contains_key(&key.child)
    }

    fn elicited(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outgoing) {
        self.act_for(key, out, |acp, out| acp.elicited(key, decision, out));
    }

    fn give(&mut self, key: &RequestKey, answer: Result<&HostAnswer, &Error>, out: &mut Outgoing) {
        self.act_for(key, out, |acp, out| acp.give(key, answer, out));
    }

    fn read<'a>(
        &mut self,
        child: Child,
        line: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) {
        let before = events.len();
        // Output of a process that is being stopped is ignored, since nothing waits for it.
        if let Some(process) = self.children.get_mut(&child) {
            acting(child, out, |out| process.acp.read(child, line, events, out));
            self.note_all(child, before, events, out);
        }
    }

    fn read_overlong(
        &mut self,
        child: Child,
        line: &Overlong,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) {
        let before = events.len();
        if let Some(process) = self.children.get_mut(&child) {
            acting(child, out, |out| {
                process.acp.read_overlong(child, line, events, out);
            });
            self.note_all(child, before, events, out);
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
        self.lost(child, &error, events);
        self.serves
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
    fn wish(&mut self, child: Child, wish: Wish, out: &mut Outgoing) {
        if self.ready {
            acting(child, out, |out| wish.ask(&mut self.acp, out));
        } else {
            self.waiting.push(wish);
        }
    }
}

/// Runs `act` with a separate queue and forwards the orders for its single process to `child`.
fn acting<T>(child: Child, out: &mut Outgoing, act: impl FnOnce(&mut Outgoing) -> T) -> T {
    let mut single = Outgoing::default();
    let done = act(&mut single);
    for (_, order) in single.take() {
        match order {
            Order::Lines(lines) => out.lines(child).extend_from_slice(&lines),
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
