//! Lines of an agent that its dialect cannot use: repaired and read again, or given up.

use super::AgentEvents;
use super::readable::readable;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use acpipe_json::repair::Faults;
use acpipe_model::dialect::{AgentLine, AgentText, Child, Noted, TextMeaning};
use acpipe_model::line_repair::{LineOutcome, LineReader, LostLine};

/// Largest message of a log line that is compared with the next line, in bytes.
const MOST_COMPARED: usize = 1 << 20;

/// Message that was read out of a log line of this process.
///
/// Some agents log each message that they send, before they send it. The message must not be handled twice.
#[derive(Debug)]
pub(super) struct QuotedMessage {
    pub(super) agent: AgentRef,
    pub(super) child: Child,
    pub(super) text: String,
}

/// Reader of the parts of a line.
pub(super) struct UnusableLine<'h, 'c> {
    pub(super) events: &'h mut AgentEvents,
    pub(super) router: &'h mut Router,
    pub(super) agent: AgentRef,
    pub(super) child: Child,
    pub(super) cx: &'h mut HubCx<'c>,
}

impl LineReader for UnusableLine<'_, '_> {
    fn read(&mut self, line: &[u8]) -> LineOutcome {
        let line = readable(line);
        let (agent, child) = (self.agent, self.child);
        self.events
            .line(self.router, agent, child, &line, &mut Vec::new(), self.cx)
    }

    fn takes_beside_text(&mut self, object: &str) -> bool {
        let connection = self
            .router
            .agents_mut()
            .get_mut(self.agent)
            .connection_mut();
        let text = AgentText::Quoted(object);
        if connection.is_some_and(|c| matches!(c.meaning(text), TextMeaning::OwnMessage)) {
            return false;
        }
        if object.len() <= MOST_COMPARED {
            self.events.quoted = Some(QuotedMessage {
                agent: self.agent,
                child: self.child,
                text: object.to_owned(),
            });
        }
        true
    }

    fn is_response(&mut self, object: &str) -> bool {
        let connection = self.router.agents().get(self.agent).connection();
        let text = AgentText::Quoted(object);
        connection.is_some_and(|c| matches!(c.meaning(text), TextMeaning::Response))
    }

    fn repaired(&mut self, faults: Faults) {
        if let Some(connection) = self
            .router
            .agents_mut()
            .get_mut(self.agent)
            .connection_mut()
        {
            connection.note(self.child, Noted::Repaired(faults));
        }
    }

    fn lost(&mut self, line: &LostLine<'_>) {
        let (agent, child) = (self.agent, self.child);
        self.events
            .catch_in_output(self.router, agent, child, self.cx, |own, router, cx| {
                let mut events = Vec::new();
                if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
                    if let Some(process) = connection.process_mut(child) {
                        process.add_stray(line);
                    }
                    // A line that is given up is not given up again.
                    let _ = connection.read(child, AgentLine::Lost(line), &mut events);
                }
                for event in events {
                    own.event(router, agent, event, cx);
                }
            });
    }
}
