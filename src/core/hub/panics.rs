//! Panics: a fault of acpipe costs the turn in which it happened, and nothing else.
//!
//! A session that was being written to when it happened is marked (see `Numbered`): its turn ends with an error, and its
//! prompt is cancelled. Where none is, and
//!
//! - output of an agent was being read: that process is ended as one that failed;
//! - another event of a process was being handled, as its end: its agent has failed;
//! - a call was being handled: the call is answered with an error, once;
//! - a session with a running turn was handling any other event (`Hub::with` marks it): its turn ends in the same way.
//!
//! Every other panic unwinds on, and ends acpipe: one in `commit` among them, since what a client saw must be in the log.

use super::Hub;
use crate::core::client::Token;
use crate::core::client_sink::{ClientSink as _, ClientSinks};
use crate::core::dialect::Child;
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

const _: () = assert!(
    cfg!(panic = "unwind"),
    "a panic that aborts cannot be caught"
);

/// A panic that was caught.
pub(super) struct Panic {
    payload: Box<dyn Any + Send>,
    /// Whether the session in which it happened is known, and mended.
    mended: bool,
    /// The calls that were answered with the ends of these turns.
    answered: Vec<Token>,
    /// The sessions with running turns that were handling the event.
    handling: Vec<String>,
    /// The error that the client gets; the log has the place of the panic.
    pub(super) error: Error,
}

impl Hub {
    /// Does `act`; if it panics, mends the sessions that it was writing to.
    ///
    /// What is used afterwards is sound: of such a session the turn is dropped and its log cut to whole lines, no line
    /// for an agent is left half written, and all other state changes in steps that each leave it valid.
    pub(super) fn caught<T, C: ClientSinks>(
        &mut self,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C) -> T,
    ) -> Result<T, Box<Panic>> {
        let done = catch_unwind(AssertUnwindSafe(|| act(self, clients)));
        done.map_err(|payload| {
            let message = "acpipe itself failed (a panic: its log says where), and all else goes on: please report it";
            let error = Error::new(ErrorKind::Internal, message);
            let broken = self.sessions_with(|session| session.broken);
            let handling = self.sessions_with(|s| s.was_handling && s.running.is_some());
            for session in self.sessions.values_mut() {
                session.was_handling = false;
            }
            Box::new(Panic {
                payload,
                mended: !broken.is_empty(),
                answered: self.mend(&broken, &error, now, clients),
                handling,
                error,
            })
        })
    }

    /// Handles a call, which is answered at once where it fails or panics.
    pub(super) fn answering<C: ClientSinks>(
        &mut self,
        token: Token,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C) -> Result<(), Error>,
    ) {
        let error = match self.caught(now, clients, act) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(panic) if panic.answered.contains(&token) => return,
            Err(panic) => {
                // It may have been queued before the panic, and must not be sent after its answer.
                for session in self.sessions.values_mut() {
                    session.queue.take_call(token);
                }
                panic.error
            }
        };
        clients.reply(token, Err(error));
    }

    /// Like `caught`, but mends the session that was handling the event; unwinds on with a panic that belongs to no turn.
    pub(super) fn mending<C: ClientSinks>(
        &mut self,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C),
    ) {
        if let Err(panic) = self.caught(now, clients, act)
            && !panic.mended
        {
            if panic.handling.is_empty() {
                resume_unwind(panic.payload);
            }
            self.mend(&panic.handling, &panic.error, now, clients);
        }
    }

    /// Like `caught`, for output of a process. Where the session is not known the process has failed: false, nothing
    /// more of it is to be read.
    pub(super) fn reading<C: ClientSinks>(
        &mut self,
        agent: AgentRef,
        child: Child,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C),
    ) -> bool {
        let Err(panic) = self.caught(now, clients, act) else {
            return true;
        };
        if panic.mended {
            return true;
        }
        self.agents.get_mut(agent).ignore_output(child);
        let ended = self.caught(now, clients, |hub, clients| {
            hub.process_failed(agent, child, &panic.error, now, clients);
        });
        if ended.is_err() {
            self.mending(now, clients, |hub, clients| {
                hub.agent_failed(agent, &panic.error, now, clients);
            });
        }
        false
    }

    /// Like `caught`, for another event of a process. The agent has failed where the session is not known, and where the
    /// process `ends`: other sessions may not have got to know that.
    pub(super) fn ending<C: ClientSinks>(
        &mut self,
        agent: AgentRef,
        ends: bool,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C),
    ) {
        if let Err(panic) = self.caught(now, clients, act)
            && (ends || !panic.mended)
        {
            self.mending(now, clients, |hub, clients| {
                hub.agent_failed(agent, &panic.error, now, clients);
            });
        }
    }

    fn sessions_with(&self, mark: impl Fn(&SessionMachine) -> bool) -> Vec<String> {
        let marked = self.sessions.values().filter(|session| mark(session));
        marked.map(|session| session.id.clone()).collect()
    }

    /// Ends the turns of these sessions, and returns the calls that were answered with that.
    fn mend(
        &mut self,
        ids: &[String],
        error: &Error,
        now: Instant,
        clients: &mut impl ClientSinks,
    ) -> Vec<Token> {
        for agent in self.agents.iter_mut() {
            agent.mend();
        }
        let mut answered = Vec::new();
        for id in ids {
            self.count_unsent(clients);
            let mended = self.with(id, now, clients, |session, cx| session.mend(error, cx));
            answered.extend(mended.flatten());
            self.count_unsent(clients);
        }
        answered
    }

    /// Counts the unsent bytes again: their sum may differ from its parts.
    fn count_unsent(&self, clients: &mut impl ClientSinks) {
        for client in self.shared.clients.ids() {
            let own = self.sessions.values();
            let own = own.filter(|session| session.subscribers.leader() == Some(client));
            let unsent = own.map(SessionMachine::unsent_bytes).sum();
            if let Some(sink) = clients.sink(client) {
                sink.set_unsent(unsent);
            }
        }
    }
}
