//! Isolation of panics: a bug in acpipe ends the turn in which it panics, and nothing else.
//!
//! A session that was being written to during the panic is marked (see `SessionSink`): its turn ends with an
//! error, and its prompt is cancelled. If no session is marked, and
//!
//! - output of an agent was being read: the process is ended as failed;
//! - another process event was being handled, such as an exit: the agent has failed;
//! - a call was being handled: it is answered with an error, once;
//! - a session with a running turn was handling any other event (`Router::with` marks it): its turn ends in the
//!   same way.
//!
//! Every other panic continues to unwind and ends acpipe. This includes a panic in `commit`, since everything
//! that a client received must be in the log.

use super::Router;
use crate::client::Token;
use crate::client_sink::ClientSinks;
use crate::clients::Clients;
use crate::hub::cx::HubCx;
use crate::session::SessionMachine;
use crate::sessions::Sessions;
use acpipe_model::error::{Error, ErrorKind};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const _: () = assert!(
    cfg!(panic = "unwind"),
    "a panic that aborts cannot be caught"
);

/// A caught panic.
pub struct Panic {
    payload: Box<dyn Any + Send>,
    /// `true` if the session in which it happened is known and repaired.
    pub mended: bool,
    /// Calls that were answered by the end of these turns.
    answered: Vec<Token>,
    /// Sessions with running turns that were handling the event.
    handling: Vec<String>,
    /// Error for the client. The location of the panic is in acpipe's log.
    pub error: Error,
}

/// Owner of the router, or the router itself.
pub trait Routes {
    fn router(&mut self) -> &mut Router;
}

impl Routes for Router {
    fn router(&mut self) -> &mut Router {
        self
    }
}

/// Calls `act`. If it panics, repairs the sessions that it was writing to.
///
/// The state is sound afterwards: the turn of such a session is dropped and its log is cut to complete
/// lines, no line for an agent stays incomplete, and all other state changes in steps that each leave it
/// valid.
pub fn catch_panic<R: Routes, T>(
    holder: &mut R,
    cx: &mut HubCx<'_>,
    act: impl FnOnce(&mut R, &mut HubCx<'_>) -> T,
) -> Result<T, Box<Panic>> {
    let done = catch_unwind(AssertUnwindSafe(|| act(holder, cx)));
    done.map_err(|payload| {
        let router = holder.router();
        let message = "acpipe failed internally (a panic, see its log); other sessions continue; please report it";
        let error = Error::new(ErrorKind::Internal, message);
        let broken = sessions_with(&router.sessions, |session| session.talk.output.is_broken());
        let handling = sessions_with(&router.sessions, |s| s.was_handling && s.turns.is_prompted());
        for session in router.sessions.values_mut() {
            session.was_handling = false;
        }
        Box::new(Panic {
            payload,
            mended: !broken.is_empty(),
            answered: mend(router, &broken, &error, cx),
            handling,
            error,
        })
    })
}

/// Handles a call. If it fails or panics, it is answered with the error.
pub fn catch_in_call<R: Routes>(
    holder: &mut R,
    token: Token,
    cx: &mut HubCx<'_>,
    act: impl FnOnce(&mut R, &mut HubCx<'_>) -> Result<(), Error>,
) {
    let error = match catch_panic(holder, cx, act) {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error,
        Err(panic) if panic.answered.contains(&token) => return,
        Err(panic) => {
            // The prompt may have been queued before the panic. It must not be sent after its call was
            // answered.
            for session in holder.router().sessions.values_mut() {
                session.queue.take_call(token);
            }
            panic.error
        }
    };
    cx.clients.reply(token, Err(error));
}

/// Like `catch_panic`, but repairs the session that was handling the event, and re-raises a panic that belongs
/// to no turn.
pub fn catch_and_repair<R: Routes>(
    holder: &mut R,
    cx: &mut HubCx<'_>,
    act: impl FnOnce(&mut R, &mut HubCx<'_>),
) {
    if let Err(panic) = catch_panic(holder, cx, act)
        && !panic.mended
    {
        if panic.handling.is_empty() {
            resume_unwind(panic.payload);
        }
        mend(holder.router(), &panic.handling, &panic.error, cx);
    }
}

fn sessions_with(sessions: &Sessions, mark: impl Fn(&SessionMachine) -> bool) -> Vec<String> {
    let marked = sessions.values().filter(|session| mark(session));
    marked.map(|session| session.id.clone()).collect()
}

/// Ends the turns of these sessions; returns the calls that were answered by that.
fn mend(router: &mut Router, ids: &[String], error: &Error, cx: &mut HubCx<'_>) -> Vec<Token> {
    for agent in router.agents.iter_mut() {
        if let Some(connection) = agent.connection_mut() {
            connection.mend();
        }
    }
    let mut answered = Vec::new();
    for id in ids {
        count_unsent(&router.sessions, &router.shared.clients, cx.clients);
        let mended = router.with(id, cx, |session, cx| session.mend(error, cx));
        answered.extend(mended.flatten());
        count_unsent(&router.sessions, &router.shared.clients, cx.clients);
    }
    answered
}

/// Recomputes the unsent bytes of each client, which may be wrong after a panic.
fn count_unsent(sessions: &Sessions, known: &Clients, clients: &mut dyn ClientSinks) {
    for client in known.ids() {
        let own = sessions.values();
        let own = own.filter(|session| session.talk.output.subscribers().leader() == Some(client));
        let coalesced = own.map(|s| s.output.unsent_bytes()).sum();
        if let Some(sink) = clients.sink(client) {
            sink.set_unsent(coalesced);
        }
    }
}
