//! Isolation of panics: a bug in acpipe ends the turn in which it panics, and nothing else.
//!
//! A session that was being written to during the panic is marked (see `SessionSink`): its turn ends with an
//! error, and its prompt is cancelled. If no session is marked, and
//!
//! - output of an agent was being read: the process is ended as failed;
//! - another process event was being handled, such as an exit: the agent has failed;
//! - a call was being handled: it is answered with an error, once;
//! - a session with a running turn was handling any other event (`Hub::with` marks it): its turn ends in the
//!   same way.
//!
//! Every other panic continues to unwind and ends acpipe. This includes a panic in `commit`, since everything
//! that a client received must be in the log.

use super::Hub;
use super::cx::HubCx;
use crate::core::client::Token;
use crate::core::client_sink::ClientSinks;
use crate::core::dialect::Child;
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const _: () = assert!(
    cfg!(panic = "unwind"),
    "a panic that aborts cannot be caught"
);

/// A caught panic.
pub(super) struct Panic {
    payload: Box<dyn Any + Send>,
    /// Whether the session in which it happened is known and repaired.
    mended: bool,
    /// Calls that were answered by the end of these turns.
    answered: Vec<Token>,
    /// Sessions with running turns that were handling the event.
    handling: Vec<String>,
    /// Error for the client. The location of the panic is in acpipe's log.
    pub(super) error: Error,
}

impl Hub {
    /// Calls `act`. If it panics, repairs the sessions that it was writing to.
    ///
    /// The state is sound afterwards: the turn of such a session is dropped and its log is cut to complete
    /// lines, no line for an agent stays incomplete, and all other state changes in steps that each leave it
    /// valid.
    pub(super) fn catch_panic<T>(
        &mut self,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>) -> T,
    ) -> Result<T, Box<Panic>> {
        let done = catch_unwind(AssertUnwindSafe(|| act(self, cx)));
        done.map_err(|payload| {
            let message = "acpipe failed internally (a panic, see its log); other sessions continue; please report it";
            let error = Error::new(ErrorKind::Internal, message);
            let broken = self.sessions_with(|session| session.talk.output.is_broken());
            let handling = self.sessions_with(|s| s.was_handling && s.turns.is_prompted());
            for session in self.sessions.values_mut() {
                session.was_handling = false;
            }
            Box::new(Panic {
                payload,
                mended: !broken.is_empty(),
                answered: self.mend(&broken, &error, cx),
                handling,
                error,
            })
        })
    }

    /// Handles a call. If it fails or panics, it is answered with the error.
    pub(super) fn catch_in_call(
        &mut self,
        token: Token,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>) -> Result<(), Error>,
    ) {
        let error = match self.catch_panic(cx, act) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(panic) if panic.answered.contains(&token) => return,
            Err(panic) => {
                // The prompt may have been queued before the panic. It must not be sent after its call was
                // answered.
                for session in self.sessions.values_mut() {
                    session.queue.take_call(token);
                }
                panic.error
            }
        };
        cx.clients.reply(token, Err(error));
    }

    /// Like `catch_panic`, but repairs the session that was handling the event, and re-raises a panic that belongs
    /// to no turn.
    pub(super) fn catch_and_repair(
        &mut self,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>),
    ) {
        if let Err(panic) = self.catch_panic(cx, act)
            && !panic.mended
        {
            if panic.handling.is_empty() {
                resume_unwind(panic.payload);
            }
            self.mend(&panic.handling, &panic.error, cx);
        }
    }

    /// Like `catch_panic`, for output of a process. If the session is not known, the process has failed: returns
    /// `false`, and no more of its output is to be read.
    pub(super) fn catch_in_output(
        &mut self,
        agent: AgentRef,
        child: Child,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>),
    ) -> bool {
        let Err(panic) = self.catch_panic(cx, act) else {
            return true;
        };
        if panic.mended {
            return true;
        }
        if let Some(connection) = self.agents.get_mut(agent).connection_mut() {
            connection.ignore_output(child);
        }
        let ended = self.catch_panic(cx, |hub, cx| {
            hub.process_failed(agent, child, &panic.error, cx);
        });
        if ended.is_err() {
            self.catch_and_repair(cx, |hub, cx| {
                hub.agent_failed(agent, &panic.error, cx);
            });
        }
        false
    }

    /// Like `catch_panic`, for another process event. The agent has failed if the session is not known, or if the
    /// process `ends`, since other sessions may have missed the event.
    pub(super) fn ending(
        &mut self,
        agent: AgentRef,
        ends: bool,
        cx: &mut HubCx<'_>,
        act: impl FnOnce(&mut Self, &mut HubCx<'_>),
    ) {
        if let Err(panic) = self.catch_panic(cx, act)
            && (ends || !panic.mended)
        {
            self.catch_and_repair(cx, |hub, cx| {
                hub.agent_failed(agent, &panic.error, cx);
            });
        }
    }

    fn sessions_with(&self, mark: impl Fn(&SessionMachine) -> bool) -> Vec<String> {
        let marked = self.sessions.values().filter(|session| mark(session));
        marked.map(|session| session.id.clone()).collect()
    }

    /// Ends the turns of these sessions; returns the calls that were answered by that.
    fn mend(&mut self, ids: &[String], error: &Error, cx: &mut HubCx<'_>) -> Vec<Token> {
        for agent in self.agents.iter_mut() {
            if let Some(connection) = agent.connection_mut() {
                connection.mend();
            }
        }
        let mut answered = Vec::new();
        for id in ids {
            self.count_unsent(cx.clients);
            let mended = self.with(id, cx, |session, cx| session.mend(error, cx));
            answered.extend(mended.flatten());
            self.count_unsent(cx.clients);
        }
        answered
    }

    /// Recomputes the unsent bytes of each client, which may be wrong after a panic.
    fn count_unsent(&self, clients: &mut dyn ClientSinks) {
        for client in self.shared.clients.ids() {
            let own = self.sessions.values();
            let own =
                own.filter(|session| session.talk.output.subscribers().leader() == Some(client));
            let coalesced = own.map(|s| s.output.unsent_bytes()).sum();
            if let Some(sink) = clients.sink(client) {
                sink.set_unsent(coalesced);
            }
        }
    }
}
