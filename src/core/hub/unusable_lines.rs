//! Lines of an agent that its dialect cannot use: repaired and read again, or given up.

use super::Hub;
use super::agent_input::readable;
use super::cx::HubCx;
use crate::core::dialect::{AgentLine, AgentText, Child, Noted, TextMeaning};
use crate::core::ids::AgentRef;
use crate::core::line_repair::{self, LineOutcome, LineReader, LostLine};
use crate::core::sanitize::sanitize;
use crate::proto::json::repair::Faults;
use tracing::debug;

/// Largest message of a log line that is compared with the next line, in bytes.
const MOST_COMPARED: usize = 1 << 20;

/// Message that was read out of a log line of this process.
///
/// Some agents log each message that they send, before they send it. The message must not be handled twice.
#[derive(Debug)]
pub(super) struct QuotedMessage {
    agent: AgentRef,
    child: Child,
    text: String,
}

/// Reader of the parts of a line.
struct UnusableLine<'h, 'c> {
    hub: &'h mut Hub,
    agent: AgentRef,
    child: Child,
    cx: &'h mut HubCx<'c>,
}

impl Hub {
    /// Reads a line that the dialect cannot use, as far as it can be repaired. Returns `false` if no more output of
    /// the process is to be read.
    #[cold]
    pub(super) fn read_again(
        &mut self,
        agent: AgentRef,
        child: Child,
        line: &[u8],
        cx: &mut HubCx<'_>,
    ) -> bool {
        let mut reader = UnusableLine {
            hub: self,
            agent,
            child,
            cx,
        };
        line_repair::read_again(&sanitize(line), &mut reader)
    }

    /// Returns `true` if the line is the message that the line before it quoted.
    #[cold]
    pub(super) fn is_quoted(&mut self, agent: AgentRef, child: Child, line: &[u8]) -> bool {
        let of_process =
            |quoted: &mut QuotedMessage| quoted.agent == agent && quoted.child == child;
        let quoted = self.quoted.take_if(of_process);
        let is_same = quoted.is_some_and(|quoted| quoted.text.as_bytes() == line.trim_ascii());
        if is_same {
            debug!("skipped a message of the agent that a log line before it has quoted");
        }
        is_same
    }
}

impl LineReader for UnusableLine<'_, '_> {
    fn read(&mut self, line: &[u8]) -> LineOutcome {
        let line = readable(line);
        let (agent, child) = (self.agent, self.child);
        self.hub.line(agent, child, &line, &mut Vec::new(), self.cx)
    }

    fn takes_beside_text(&mut self, object: &str) -> bool {
        let connection = self
            .hub
            .router
            .agents_mut()
            .get_mut(self.agent)
            .connection_mut();
        let text = AgentText::Quoted(object);
        if connection.is_some_and(|c| matches!(c.meaning(text), TextMeaning::OwnMessage)) {
            return false;
        }
        if object.len() <= MOST_COMPARED {
            self.hub.quoted = Some(QuotedMessage {
                agent: self.agent,
                child: self.child,
                text: object.to_owned(),
            });
        }
        true
    }

    fn is_response(&mut self, object: &str) -> bool {
        let connection = self.hub.router.agents().get(self.agent).connection();
        let text = AgentText::Quoted(object);
        connection.is_some_and(|c| matches!(c.meaning(text), TextMeaning::Response))
    }

    fn repaired(&mut self, faults: Faults) {
        if let Some(connection) = self
            .hub
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
        self.hub.catch_in_output(agent, child, self.cx, |hub, cx| {
            let mut events = Vec::new();
            if let Some(connection) = hub.router.agents_mut().get_mut(agent).connection_mut() {
                // A line that is given up is not given up again.
                let _ = connection.read(child, AgentLine::Lost(line), &mut events);
            }
            for event in events {
                hub.event(agent, event, cx);
            }
        });
    }
}
