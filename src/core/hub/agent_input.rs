//! Input from agent processes: process events and output.

use super::Hub;
use super::cx::HubCx;
use super::router::storage;
use super::update_runs::RunOutcome;
use crate::core::dialect::{AgentLine, Child};
use crate::core::effect::{AgentId, AgentInput};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::AgentEvent;
use crate::core::ids::AgentRef;
use crate::core::line_repair::{LineOutcome, LostLine};
use crate::core::sanitize::sanitize;
use crate::proto::frame::{Batch, lines_from};
use crate::proto::json::shallow_line;
use bytes::Bytes;
use std::borrow::Cow;
use tracing::debug;

impl Hub {
    /// Handles input of an agent's process. Input of a process that no longer exists is ignored.
    ///
    /// Returns the part of the output that was not handled, to be passed again when the agent's clients have
    /// room: a few bytes from an agent can become many for a client.
    #[must_use]
    pub fn agent(
        &mut self,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) -> Option<AgentInput> {
        let Some(agent) = self.router.agents().with_process(id) else {
            self.file_input(id, input, cx);
            return None;
        };
        if let AgentInput::Batch(batch) = input {
            let connection = self.router.agents_mut().get_mut(agent).connection_mut()?;
            let child = connection.child(id)?;
            if !connection.note_output(child, cx.now) {
                return None;
            }
            let rest = self.batch(agent, child, batch, cx);
            if rest.is_some() {
                self.waiting.insert(id);
            } else {
                self.waiting.remove(&id);
            }
            return rest.map(|rest| AgentInput::Batch(Batch::Lines(rest)));
        }
        if let AgentInput::Health(change) = input {
            let connection = self.router.agents_mut().get_mut(agent).connection_mut()?;
            let child = connection.child(id)?;
            connection.process_mut(child)?.health.update(&change);
            return None;
        }
        let ends = matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_));
        if ends {
            self.waiting.remove(&id);
        }
        self.catch_in_process_event(agent, ends, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients);
            hub.process_event(agent, id, input, cx);
        });
        None
    }

    /// Handles all input of a process except output and health.
    fn process_event(
        &mut self,
        agent: AgentRef,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) {
        let Some(child) = self.router.agents().get(agent).child(id) else {
            return;
        };
        let mut failed = |hub: &mut Self, kind, message: &str| {
            hub.process_failed(agent, child, &Error::new(kind, message), cx);
        };
        match input {
            AgentInput::Started { pid, program } => {
                let machine = self.router.agents_mut().get_mut(agent);
                machine.started(child, (pid, *program), cx.now);
            }
            AgentInput::Measured(measure) => self.router.with_agent(agent, cx, |agent, cx| {
                agent.measured(id, child, measure, cx);
            }),
            AgentInput::StartFailed(error) => {
                self.process_not_started(agent, child, &error, cx);
            }
            AgentInput::Batch(_) | AgentInput::Health(_) => {}
            AgentInput::OutputClosed | AgentInput::InputClosed
                if self.router.agents().get(agent).is_one_shot(child) => {}
            AgentInput::OutputClosed => {
                let message = "the agent closed its stdout but did not exit";
                failed(self, ErrorKind::Streaming, message);
            }
            AgentInput::InputClosed => {
                let message = "the agent closed its stdin but did not exit";
                failed(self, ErrorKind::Streaming, message);
            }
            AgentInput::InputStuck => {
                let message = "the agent does not read its stdin: too much data is queued";
                failed(self, ErrorKind::Overloaded, message);
            }
            AgentInput::Exited(mut exit) => {
                // It reaches errors, which are shown and stored.
                let hidden = self
                    .router
                    .shared()
                    .settings
                    .secrets
                    .hide(&exit.stderr)
                    .into_owned();
                exit.stderr = hidden;
                self.process_exited(agent, child, &exit, cx);
            }
        }
    }

    /// Handles output of a process; returns the part for which the clients have no room.
    fn batch(
        &mut self,
        agent: AgentRef,
        child: Child,
        batch: Batch,
        cx: &mut HubCx<'_>,
    ) -> Option<Bytes> {
        match batch {
            Batch::Lines(batch) => self.lines(agent, child, &batch, cx),
            Batch::TooLong(line) => {
                self.catch_in_output(agent, child, cx, |hub, cx| {
                    let lost = LostLine::overlong(&line);
                    let mut events = Vec::new();
                    if let Some(connection) =
                        hub.router.agents_mut().get_mut(agent).connection_mut()
                    {
                        // A line that is given up is not given up again.
                        let _ = connection.read(child, AgentLine::Lost(&lost), &mut events);
                    }
                    for event in events {
                        hub.event(agent, event, cx);
                    }
                });
                None
            }
        }
    }

    /// Reads lines until the agent has to wait for its clients; returns the rest.
    fn lines(
        &mut self,
        agent: AgentRef,
        child: Child,
        batch: &Bytes,
        cx: &mut HubCx<'_>,
    ) -> Option<Bytes> {
        let mut events = Vec::new();
        let mut read = 0;
        // Position from which runs are looked for.
        let mut runs_from = 0;
        let mut rest = lines_from(batch, 0);
        while let Some(line) = rest.next() {
            if self.must_wait(agent, cx.clients) {
                return Some(batch.slice(read..));
            }
            if self.quoted.is_some() && self.is_quoted(agent, child, line.text) {
                read = line.end;
                continue;
            }
            if read >= runs_from {
                match self.take_run(agent, child, &batch[read..], cx) {
                    RunOutcome::NoRun => {}
                    RunOutcome::Refused { bytes } => runs_from = read + bytes,
                    RunOutcome::Taken { bytes } => {
                        read += bytes;
                        rest = lines_from(batch, read);
                        continue;
                    }
                    RunOutcome::ProcessFailed => return None,
                }
            }
            let outcome = match readable(line.text) {
                Cow::Borrowed(text) => self.line(agent, child, text, &mut events, cx),
                Cow::Owned(text) => self.line(agent, child, &text, &mut Vec::new(), cx),
            };
            let goes_on = match outcome {
                LineOutcome::Read => true,
                LineOutcome::Last => false,
                LineOutcome::Unusable => self.read_again(agent, child, line.text, cx),
            };
            if !goes_on {
                return None;
            }
            // A panic may have left events of the line; they are dropped.
            events.clear();
            read = line.end;
        }
        None
    }

    /// Reads one line.
    pub(super) fn line<'a>(
        &mut self,
        agent: AgentRef,
        child: Child,
        text: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
        cx: &mut HubCx<'_>,
    ) -> LineOutcome {
        let mut outcome = LineOutcome::Read;
        let goes_on = self.catch_in_output(agent, child, cx, |hub, cx| {
            let Some(connection) = hub.router.agents_mut().get_mut(agent).connection_mut() else {
                return;
            };
            let line = AgentLine::Whole(text);
            if connection.read(child, line, events).is_err() {
                outcome = LineOutcome::Unusable;
                return;
            }
            for event in events.drain(..) {
                match &event {
                    // Hot path: avoids another move of the event.
                    AgentEvent::Update {
                        session,
                        update,
                        original,
                    } if !update.names_call() => {
                        hub.take_update(agent, session, update, *original, cx);
                    }
                    _ => hub.event(agent, event, cx),
                }
            }
        });
        if goes_on { outcome } else { LineOutcome::Last }
    }
}

/// Returns the line without the parts on which other readers fail; most lines are unchanged.
pub(super) fn readable(line: &[u8]) -> Cow<'_, [u8]> {
    let line = sanitize(line);
    let cut = match shallow_line(&line) {
        Cow::Borrowed(_) => return line,
        Cow::Owned(cut) => cut,
    };
    debug!(
        bytes = cut.len(),
        "a line of the agent is nested too deeply; the inner levels were removed"
    );
    Cow::Owned(cut)
}
