//! Panics: a fault of acpipe costs the turn in which it happened, and nothing else.
//!
//! A session that was being written to when it happened is marked (see `Numbered`): its turn ends with an error, and its
//! prompt is cancelled. Where none is, and output of an agent was being read, that process is ended as one that failed. A
//! command is answered. A panic that belongs to no session, process or command unwinds on, and ends acpipe.

use super::Hub;
use crate::core::client::Outlet;
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
    pub(super) fn caught<T, O: Outlet>(
        &mut self,
        now: Instant,
        outlet: &mut O,
        act: impl FnOnce(&mut Self, &mut O) -> T,
    ) -> Result<T, Box<Panic>> {
        let done = catch_unwind(AssertUnwindSafe(|| act(self, outlet)));
        done.map_err(|payload| {
            let message = "acpipe itself failed (a panic: its log says where), and all else goes on: please report it";
            let error = Error::new(ErrorKind::Internal, message);
            Box::new(Panic {
                payload,
                mended: self.mend(&error, now, outlet),
                error,
            })
        })
    }

    /// Like `caught`, but unwinds on with a panic that belongs to no session.
    pub(super) fn mending<O: Outlet>(
        &mut self,
        now: Instant,
        outlet: &mut O,
        act: impl FnOnce(&mut Self, &mut O),
    ) {
        if let Err(panic) = self.caught(now, outlet, act)
            && !panic.mended
        {
            resume_unwind(panic.payload);
        }
    }

    /// Like `caught`, for output of a process. Where the session is not known the process has failed: false, nothing
    /// more of it is to be read.
    pub(super) fn reading<O: Outlet>(
        &mut self,
        agent: AgentRef,
        child: Child,
        now: Instant,
        outlet: &mut O,
        act: impl FnOnce(&mut Self, &mut O),
    ) -> bool {
        let Err(panic) = self.caught(now, outlet, act) else {
            return true;
        };
        if panic.mended {
            return true;
        }
        self.agents.get_mut(agent).ignore_output(child);
        let ended = self.caught(now, outlet, |hub, outlet| {
            hub.process_failed(agent, child, &panic.error, now, outlet);
        });
        if ended.is_err() {
            self.mending(now, outlet, |hub, outlet| {
                hub.agent_failed(agent, &panic.error, now, outlet);
            });
        }
        false
    }

    /// Ends the turns of the sessions that were being written to; true if there were any.
    fn mend(&mut self, error: &Error, now: Instant, outlet: &mut impl Outlet) -> bool {
        for agent in self.agents.iter_mut() {
            agent.mend();
        }
        let broken = self.sessions.values().filter(|session| session.broken);
        let broken: Vec<String> = broken.map(|session| session.id.clone()).collect();
        for id in &broken {
            self.count_unsent(outlet);
            self.with(id, now, outlet, |session, cx| session.mend(error, cx));
            self.count_unsent(outlet);
        }
        !broken.is_empty()
    }

    /// Counts the unsent bytes again: their sum may differ from its parts.
    fn count_unsent(&self, outlet: &mut impl Outlet) {
        let unsent = self.sessions.values().map(SessionMachine::unsent_bytes);
        outlet.set_unsent(unsent.sum());
    }
}
