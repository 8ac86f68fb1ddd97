//! Input from agent processes: events of processes, and output, which is read line by line.

use super::AgentEvents;
use super::backpressure::must_wait;
use super::readable::readable;
use super::unusable_lines::{QuotedMessage, UnusableLine};
use super::updates::take_update;
use crate::effect::{AgentId, AgentInput};
use crate::hub::cx::HubCx;
use crate::hub::router::{Router, panics, storage};
use crate::ids::AgentRef;
use crate::sanitize::sanitize;
use acpipe_json::frame::{Batch, lines_from};
use acpipe_model::dialect::{AgentLine, Child, Noted};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::AgentEvent;
use acpipe_model::line_repair;
use acpipe_model::line_repair::{LineOutcome, LostLine};
use bytes::Bytes;
use std::borrow::Cow;
use tracing::debug;

/// Result of looking for a run of updates.
#[derive(Debug, Clone, Copy)]
enum RunOutcome {
    /// The lines do not begin with a run.
    NoRun,
    /// The lines of the run, which have this size, must be read one by one.
    Refused { bytes: usize },
    /// The lines of the run, which have this size, were handled.
    Taken { bytes: usize },
    /// No more output of the process is to be read.
    ProcessFailed,
}

impl AgentEvents {
    /// Handles input of an agent's process.
    ///
    /// Returns the part of the output that was not handled, to be passed again when the agent's clients have
    /// room: a few bytes from an agent can become many for a client.
    #[must_use]
    pub(in crate::hub) fn input(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) -> Option<AgentInput> {
        if let AgentInput::Batch(batch) = input {
            let connection = router.agents_mut().get_mut(agent).connection_mut()?;
            let child = connection.child(id)?;
            if !connection.note_output(child, cx.now) {
                return None;
            }
            let rest = self.batch(router, agent, child, batch, cx);
            if rest.is_some() {
                self.waiting.insert(id);
            } else {
                self.waiting.remove(&id);
            }
            return rest.map(|rest| AgentInput::Batch(Batch::Lines(rest)));
        }
        if let AgentInput::Health(change) = input {
            let connection = router.agents_mut().get_mut(agent).connection_mut()?;
            let child = connection.child(id)?;
            connection.process_mut(child)?.health.update(&change);
            return None;
        }
        let ends = matches!(input, AgentInput::Exited(_) | AgentInput::StartFailed(_));
        if ends {
            self.waiting.remove(&id);
        }
        self.catch_in_process_event(router, agent, ends, cx, |own, router, cx| {
            storage::number_unsent(router, cx.clients);
            own.process_event(router, agent, id, input, cx);
        });
        None
    }

    /// Handles all input of a process except output and health.
    fn process_event(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        id: AgentId,
        input: AgentInput,
        cx: &mut HubCx<'_>,
    ) {
        let connection = router.agents().get(agent).connection();
        let Some(child) = connection.and_then(|connection| connection.child(id)) else {
            return;
        };
        let mut failed = |events: &mut Self, router: &mut Router, kind, message: &str| {
            events.process_failed(router, agent, child, &Error::new(kind, message), cx);
        };
        match input {
            AgentInput::Started { pid, program } => {
                if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
                    connection.note_started(child, (pid, *program), cx.now);
                }
            }
            AgentInput::Measured(measure) => router.with_agent(agent, cx, |agent, cx| {
                agent.measured(id, child, measure, cx);
            }),
            AgentInput::StartFailed(error) => {
                self.process_not_started(router, agent, child, &error, cx);
            }
            AgentInput::Batch(_) | AgentInput::Health(_) => {}
            AgentInput::OutputClosed | AgentInput::InputClosed
                if router
                    .agents()
                    .get(agent)
                    .connection()
                    .is_some_and(|c| c.is_one_shot(child)) => {}
            AgentInput::OutputClosed => {
                let message = "the agent closed its stdout but did not exit";
                failed(self, router, ErrorKind::Streaming, message);
            }
            AgentInput::InputClosed => {
                let message = "the agent closed its stdin but did not exit";
                failed(self, router, ErrorKind::Streaming, message);
            }
            AgentInput::InputStuck => {
                let message = "the agent does not read its stdin: too much data is queued";
                failed(self, router, ErrorKind::Overloaded, message);
            }
            AgentInput::Exited(mut exit) => {
                // Both reach errors, which are shown and stored.
                let secrets = &router.shared().settings.secrets;
                exit.stderr = secrets.hide(&exit.stderr).into_owned();
                let connection = router.agents().get(agent).connection();
                let process = connection.and_then(|c| c.process(child));
                exit.stdout = process.map_or_else(String::new, |p| p.stray_text(secrets));
                self.process_exited(router, agent, child, &exit, cx);
            }
        }
    }

    /// Handles output of a process; returns the part for which the clients have no room.
    fn batch(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        batch: Batch,
        cx: &mut HubCx<'_>,
    ) -> Option<Bytes> {
        match batch {
            Batch::Lines(batch) => self.lines(router, agent, child, &batch, cx),
            Batch::TooLong(line) => {
                self.catch_in_output(router, agent, child, cx, |own, router, cx| {
                    let lost = LostLine::overlong(&line);
                    let mut events = Vec::new();
                    if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
                        // A line that is given up is not given up again.
                        let _ = connection.read(child, AgentLine::Lost(&lost), &mut events);
                    }
                    for event in events {
                        own.event(router, agent, event, cx);
                    }
                });
                None
            }
        }
    }

    /// Reads lines until the agent has to wait for its clients; returns the rest.
    fn lines(
        &mut self,
        router: &mut Router,
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
            if must_wait(router, agent, cx.clients) {
                return Some(batch.slice(read..));
            }
            if self.quoted.is_some() && self.is_quoted(agent, child, line.text) {
                read = line.end;
                continue;
            }
            if read >= runs_from {
                match self.take_run(router, agent, child, &batch[read..], cx) {
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
                Cow::Borrowed(text) => self.line(router, agent, child, text, &mut events, cx),
                Cow::Owned(text) => self.line(router, agent, child, &text, &mut Vec::new(), cx),
            };
            let goes_on = match outcome {
                LineOutcome::Read => true,
                LineOutcome::Last => false,
                LineOutcome::Unusable => self.read_again(router, agent, child, line.text, cx),
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

    pub(super) fn line<'a>(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        text: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
        cx: &mut HubCx<'_>,
    ) -> LineOutcome {
        let mut outcome = LineOutcome::Read;
        let goes_on = self.catch_in_output(router, agent, child, cx, |own, router, cx| {
            let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() else {
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
                        take_update(router, agent, session, update, *original, cx);
                    }
                    _ => own.event(router, agent, event, cx),
                }
            }
        });
        if goes_on { outcome } else { LineOutcome::Last }
    }

    /// Like `catch_panic`, for output of a process. If the session is not known, the process has failed: returns
    /// `false`, and no more of its output is to be read.
    pub(super) fn catch_in_output(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut Router, &mut HubCx<'_>),
    ) -> bool {
        let Err(panic) = panics::catch_panic(router, cx, |router, cx| act(self, router, cx)) else {
            return true;
        };
        if panic.mended {
            return true;
        }
        if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
            connection.ignore_output(child);
        }
        let ended = panics::catch_panic(router, cx, |router, cx| {
            self.process_failed(router, agent, child, &panic.error, cx);
        });
        if ended.is_err() {
            panics::catch_and_repair(router, cx, |router, cx| {
                self.agent_failed(router, agent, &panic.error, cx);
            });
        }
        false
    }

    /// Like `catch_panic`, for another process event. The agent has failed if the session is not known, or if the
    /// process `ends`, since other sessions may have missed the event.
    fn catch_in_process_event(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        ends: bool,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut Router, &mut HubCx<'_>),
    ) {
        if let Err(panic) = panics::catch_panic(router, cx, |router, cx| act(self, router, cx))
            && (ends || !panic.mended)
        {
            panics::catch_and_repair(router, cx, |router, cx| {
                self.agent_failed(router, agent, &panic.error, cx);
            });
        }
    }

    /// Reads a line that the dialect cannot use, as far as it can be repaired. Returns `false` if no more output of
    /// the process is to be read.
    #[cold]
    fn read_again(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        line: &[u8],
        cx: &mut HubCx<'_>,
    ) -> bool {
        let mut reader = UnusableLine {
            events: self,
            router,
            agent,
            child,
            cx,
        };
        line_repair::read_again(&sanitize(line), &mut reader)
    }

    /// Returns `true` if the line is the message that the line before it quoted.
    #[cold]
    fn is_quoted(&mut self, agent: AgentRef, child: Child, line: &[u8]) -> bool {
        let of_process =
            |quoted: &mut QuotedMessage| quoted.agent == agent && quoted.child == child;
        let quoted = self.quoted.take_if(of_process);
        let is_same = quoted.is_some_and(|quoted| quoted.text.as_bytes() == line.trim_ascii());
        if is_same {
            debug!("skipped a message of the agent that a log line before it has quoted");
        }
        is_same
    }

    /// Handles the run of updates with which the lines of a process begin.
    fn take_run(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        child: Child,
        lines: &[u8],
        cx: &mut HubCx<'_>,
    ) -> RunOutcome {
        let mut outcome = RunOutcome::NoRun;
        let goes_on = self.catch_in_output(router, agent, child, cx, |_, router, cx| {
            let connection = router.agents().get(agent).connection();
            let Some(run) = connection.and_then(|c| c.read_run(child, lines)) else {
                return;
            };
            let bytes = run.lines.len();
            // A run whose handling panics is not read again.
            outcome = RunOutcome::Taken { bytes };
            let session = router.routed(agent, run.session());
            if !session.is_some_and(|session| session.take_run(&run, cx.now, cx.clients)) {
                outcome = RunOutcome::Refused { bytes };
                return;
            }
            if let Some(connection) = router.agents_mut().get_mut(agent).connection_mut() {
                connection.note(child, Noted::Run(&run));
            }
            router.shared_mut().counters.updates += run.texts.len() as u64;
        });
        if goes_on {
            outcome
        } else {
            RunOutcome::ProcessFailed
        }
    }
}
