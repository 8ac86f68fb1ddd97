//! Panics: a fault of acpipe costs the turn in which it happened, and nothing else.
//!
//! A session that was being written to when it happened is marked (see `Numbered`): its turn ends with an error, and its
//! prompt is cancelled. Where none is, and output of an agent was being read, that process is ended as one that failed. A
//! command is answered. A panic that belongs to no session, process or command unwinds on, and ends acpipe.

use super::Hub;
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
            Box::new(Panic {
                payload,
                mended: self.mend(&error, now, clients),
                error,
            })
        })
    }

    /// Like `caught`, but unwinds on with a panic that belongs to no session.
    pub(super) fn mending<C: ClientSinks>(
        &mut self,
        now: Instant,
        clients: &mut C,
        act: impl FnOnce(&mut Self, &mut C),
    ) {
        if let Err(panic) = self.caught(now, clients, act)
            && !panic.mended
        {
            resume_unwind(panic.payload);
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

    /// Ends the turns of the sessions that were being written to; true if there were any.
    fn mend(&mut self, error: &Error, now: Instant, clients: &mut impl ClientSinks) -> bool {
        for agent in self.agents.iter_mut() {
            agent.mend();
        }
        let broken = self.sessions.values().filter(|session| session.broken);
        let broken: Vec<String> = broken.map(|session| session.id.clone()).collect();
        for id in &broken {
            self.count_unsent(clients);
            self.with(id, now, clients, |session, cx| session.mend(error, cx));
            self.count_unsent(clients);
        }
        !broken.is_empty()
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
