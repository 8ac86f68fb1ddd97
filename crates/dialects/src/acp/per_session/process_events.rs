//! Events of the processes of an agent with a process for each session.

use super::{PerSession, with_child};
use crate::acp::Pending;
use acpipe_model::dialect::{Child, Outgoing, TransportOrder};
use acpipe_model::error::Error;
use acpipe_model::event::AgentEvent;

impl PerSession {
    /// Processes an event of a process; returns `false` if the event is not to be passed on.
    fn process_event(
        &mut self,
        child: Child,
        event: &mut AgentEvent<'_>,
        out: &mut Outgoing,
    ) -> bool {
        let Some(process) = self.children.get_mut(&child) else {
            return true;
        };
        match event {
            AgentEvent::Ready(info) => {
                // Closing a session ends its process, so it always works.
                info.capabilities.close = true;
                process.ready = true;
                for queued in std::mem::take(&mut process.waiting) {
                    with_child(child, out, |out| queued.ask(&mut process.acp, out));
                }
                !std::mem::replace(&mut self.is_established, true)
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
            AgentEvent::Forward(forward) => {
                if let Some(key) = &mut forward.key {
                    key.child = child;
                }
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
    pub(super) fn process_events(
        &mut self,
        child: Child,
        before: usize,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        let mut at = before;
        while let Some(event) = events.get_mut(at) {
            let broken = match event {
                AgentEvent::NotReady(error) if self.is_established => Some(error.clone()),
                _ => None,
            };
            if broken.is_none() && self.process_event(child, event, out) {
                at += 1;
                continue;
            }
            events.remove(at);
            if let Some(error) = broken {
                self.fail_process(child, &error, events);
                out.order(child, TransportOrder::Stop);
            }
        }
    }

    /// Removes a process that has failed: its pending calls fail, and its session is lost.
    pub(super) fn fail_process(
        &mut self,
        child: Child,
        error: &Error,
        events: &mut Vec<AgentEvent<'_>>,
    ) {
        let session = self.sessions.iter().find(|(_, of)| **of == child);
        let session = session.map(|(session, _)| session.clone());
        let Some(mut process) = self.remove(child) else {
            return;
        };
        let waiting = process.waiting.iter().map(|queued| AgentEvent::Failed {
            call: queued.call(),
            error: error.clone(),
        });
        events.extend(waiting);
        let asked = process.acp.sent.take_all();
        let asked = asked.filter(|pending| !matches!(pending, Pending::Initialize));
        events.extend(asked.filter_map(|pending| pending.failed(error.clone())));
        if let Some(session) = session {
            let error = error.clone();
            events.push(AgentEvent::SessionLost { session, error });
        }
    }
}
