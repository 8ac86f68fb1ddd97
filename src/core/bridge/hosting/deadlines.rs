//! Deadlines of the requests that a client serves: files and terminals.
//!
//! A request has `--timeout client=…` for its answer. `terminal/waitForExit` has no deadline while the command may run,
//! since commands take as long as they take; from when the client says that the command has ended, or that the terminal
//! was killed or released, the wait for its exit has the same deadline.

use super::{Bridge, Way};
use crate::core::client::Outlet;
use crate::core::error::{Error, ErrorKind};
use crate::core::host::{Forwarded, HostAnswer, Ticket};
use crate::core::limits::Wait;
use crate::core::permit::By;
use crate::core::silence::in_words;
use std::time::{Duration, Instant};
use tracing::warn;

/// The method whose answer comes when a command ends.
const WAIT_FOR_EXIT: &str = "terminal/waitForExit";

/// Whether a request has a deadline from its beginning.
pub(super) fn limits(request: &Forwarded) -> bool {
    request.method() != WAIT_FOR_EXIT
}

impl Bridge {
    /// When the first request is given up that the client did not answer.
    pub(in crate::core::bridge) fn client_due(&self) -> Option<(Instant, &'static str)> {
        let open = self.hosting.open.values();
        let until = open.filter_map(|open| match &open.way {
            Way::Client(asked) => asked.until,
            Way::Judged(_) | Way::Own | Way::File => None,
        });
        Some((until.min()?, "client"))
    }

    /// Puts off the deadlines of what the client was asked for.
    pub(in crate::core::bridge) fn postpone_client(&mut self, by: Duration) {
        for open in self.hosting.open.values_mut() {
            if let Way::Client(asked) = &mut open.way
                && let Some(until) = &mut asked.until
            {
                *until += by;
            }
        }
    }

    /// Gives up the requests that the client did not answer in time: the agent gets an error.
    pub(super) fn tick_client(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let overdue = self.hosting.open.iter().filter_map(|(ticket, open)| {
            let Way::Client(asked) = &open.way else {
                return None;
            };
            let is_due = asked.until.is_some_and(|at| at <= now);
            is_due.then_some((*ticket, asked.id, asked.method))
        });
        for (ticket, ask, method) in overdue.collect::<Vec<_>>() {
            let limit = self.settings.limits.of(Wait::Client).unwrap_or_default();
            let message = format!(
                "the client did not answer {method} within {}; --timeout client=… gives it more time",
                in_words(limit)
            );
            warn!(method, "{message}");
            outlet.withdraw(ask, &By::Timeout(None));
            let error = Error::new(ErrorKind::Resource, message);
            self.note_client_wait(ticket, now, outlet);
            self.answer_wanted(ticket, &Err(error), outlet);
        }
    }

    /// The agent had to wait for the client: that was not its silence.
    pub(super) fn note_client_wait(
        &mut self,
        ticket: Ticket,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        if let Some(open) = self.hosting.open.get(&ticket)
            && let Some(session) = self.sessions.get_mut(&open.session)
        {
            session.hear(now, "file or terminal", outlet);
        }
    }

    /// Sets the deadline of open waits for a command's exit, once the client's answer says that the command has ended.
    pub(super) fn limit_waits_for_exit(
        &mut self,
        answered: Ticket,
        answer: &Result<HostAnswer, Error>,
        now: Instant,
    ) {
        let has_ended = match answer {
            Ok(HostAnswer::Output(output)) => output.exit.is_some(),
            Ok(HostAnswer::Done | HostAnswer::Exit(_)) => true,
            _ => false,
        };
        let Some(open) = self.hosting.open.get(&answered).filter(|_| has_ended) else {
            return;
        };
        let Way::Client(asked) = &open.way else {
            return;
        };
        let (session, terminal) = (open.session.clone(), asked.terminal.clone());
        let until = self.settings.limits.until(Wait::Client, now);
        for open in self.hosting.open.values_mut() {
            if let Way::Client(asked) = &mut open.way
                && asked.method == WAIT_FOR_EXIT
                && open.session == session
                && asked.terminal == terminal
            {
                asked.until = asked.until.or(until);
            }
        }
    }
}
