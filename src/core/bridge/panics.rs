//! Panics: a mistake of acpipe's own costs the turn in whose hands it happened, and nobody else.
//!
//! A session that was being written to when it happened is marked (see `Numbered`): its turn ends with an error, and
//! its prompt is cancelled. Where none is, and the words of an agent were being read, that process is ended as one
//! that broke. A command is answered. What belongs to nobody unwinds on, and ends acpipe as it always did.

use super::Bridge;
use crate::core::client::Outlet;
use crate::core::dialect::Child;
use crate::core::error::{Error, ErrorKind};
use crate::core::session::Session;
use crate::core::summary::Ending;
use crate::core::turn::ChunkSink as _;
use crate::proto::chunk::Chunk;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

const _: () = assert!(cfg!(panic = "unwind"), "what aborts cannot be caught");

/// A panic that was caught.
pub(super) struct Panic {
    payload: Box<dyn Any + Send>,
    /// Whether it is known which session it cost.
    mended: bool,
    /// What the client is told; the log has where it was.
    pub error: Error,
}

impl Bridge {
    /// Does `act`; if it panics, the sessions that it was writing to are mended.
    ///
    /// What is used afterwards is sound: of such a session the translator is dropped and its log cut to whole lines,
    /// of lines for agents none is left half written, and all else here changes step by step, each of which holds.
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

    /// The same where nobody else can be blamed.
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

    /// The same with what a process says. Where its session is not known it has failed as a whole: false, nothing more
    /// of it is to be read.
    pub(super) fn reading<O: Outlet>(
        &mut self,
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
        if let Some(agent) = &mut self.agent {
            agent.read_no_more(child);
        }
        let ended = self.caught(now, outlet, |bridge, outlet| {
            bridge.process_broken(child, &panic.error, now, outlet);
        });
        if ended.is_err() {
            self.mending(now, outlet, |bridge, outlet| {
                bridge.agent_broken(&panic.error, now, outlet);
            });
        }
        false
    }

    /// Ends the turns of the sessions that were being written to; true if there were any.
    fn mend(&mut self, error: &Error, now: Instant, outlet: &mut impl Outlet) -> bool {
        if let Some(agent) = &mut self.agent {
            agent.out.mend();
        }
        let broken = self.sessions.values().filter(|session| session.broken);
        let broken: Vec<String> = broken.map(|session| session.id.clone()).collect();
        for id in &broken {
            self.mend_session(id, error, now, outlet);
        }
        !broken.is_empty()
    }

    fn mend_session(&mut self, id: &str, error: &Error, now: Instant, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let running = session.running.as_ref();
        let (token, call) = running.map(|r| (r.token, r.call)).unzip();
        let agent_session = session.agent_session().map(str::to_owned);
        session.mend(outlet);
        self.count_unsent(outlet);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        // First as any turn that fails; if that panics again, the last word alone.
        let _ = catch_unwind(AssertUnwindSafe(|| session.fail_all(error, outlet)));
        session.mend(outlet);
        session.unprompted = None;
        for turn in session.log.open_turns() {
            let error_text = &error.message;
            let mut sink = session.sink(Some(&turn), outlet);
            sink.chunk(&Chunk::Error { error_text });
        }
        self.count_unsent(outlet);
        let Some((token, call)) = token.zip(call) else {
            return;
        };
        self.break_off(id, call, agent_session, now);
        let ending = Ending::Failed(error.clone());
        let closed = catch_unwind(AssertUnwindSafe(|| {
            self.close_turn(id, &ending, now, outlet);
        }));
        if closed.is_err() {
            if let Some(session) = self.sessions.get_mut(id) {
                session.mend(outlet);
                session.running = None;
            }
            outlet.reply(token, Err(error.clone()));
            self.freed.push(id.to_owned());
        }
    }

    /// Its sum may be another than its parts.
    fn count_unsent(&self, outlet: &mut impl Outlet) {
        outlet.set_unsent(self.sessions.values().map(Session::unsent_bytes).sum());
    }
}

impl Session {
    /// Nothing half written is left of what was taken down.
    fn mend(&mut self, outlet: &mut impl Outlet) {
        self.broken = false;
        self.log.mend();
        outlet.retract(&self.id, self.log.seq());
    }

    fn fail_all(&mut self, error: &Error, outlet: &mut impl Outlet) {
        self.number_unsent(outlet);
        self.end_unprompted(Some(error), outlet);
        self.with_turn(outlet, |turn, sink| turn.fail(error, sink));
    }
}
