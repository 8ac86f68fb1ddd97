//! Timeouts of file and terminal requests that a client serves.
//!
//! A request must be answered within `--timeout client=…`. `terminal/waitForExit` has no timeout while the
//! command may run, since commands may take any time. It gets the same timeout once the client reports that
//! the command has ended, or that the terminal was killed or released.

use super::HostCalls;
use super::call::{Forwarded, HostCall};
use crate::client::ClientId;
use crate::client_request::ClientRequestId;
use acpipe_model::error::Error;
use acpipe_model::host::{ClientHostRequest, HostAnswer, Ticket};
use std::time::Instant;

/// Method whose response arrives when a command ends.
const WAIT_FOR_EXIT: &str = "terminal/waitForExit";

#[derive(Debug, Clone, Copy)]
pub struct Overdue {
    pub ticket: Ticket,
    pub id: ClientRequestId,
    pub client: ClientId,
    pub method: &'static str,
}

/// Returns `true` if a request has a timeout from its start.
pub(super) fn has_deadline(request: &ClientHostRequest) -> bool {
    request.method() != WAIT_FOR_EXIT
}

impl HostCalls {
    /// Iterates over the deadlines of the requests that clients serve.
    pub fn deadlines(&self) -> impl Iterator<Item = Instant> {
        let forwarded = self.calls.values().filter_map(HostCall::forwarded);
        forwarded.filter_map(|forwarded| forwarded.until)
    }

    pub fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Instant> {
        let forwarded = self.calls.values_mut().filter_map(HostCall::forwarded_mut);
        forwarded.filter_map(|forwarded| forwarded.until.as_mut())
    }

    pub fn overdue(&self, now: Instant) -> Vec<Overdue> {
        let of_client = |(ticket, call): (&Ticket, &HostCall)| {
            let forwarded = call.forwarded()?;
            let is_due = forwarded.until.is_some_and(|at| at <= now);
            is_due.then_some(Overdue {
                ticket: *ticket,
                id: forwarded.id,
                client: forwarded.client,
                method: forwarded.method,
            })
        };
        self.calls.iter().filter_map(of_client).collect()
    }

    /// Sets the deadline of open `terminal/waitForExit` requests once the client's response shows that the
    /// command has ended.
    pub(super) fn limit_waits_for_exit(
        &mut self,
        answered: Ticket,
        answer: &Result<HostAnswer, Error>,
        until: Option<Instant>,
    ) {
        let has_ended = match answer {
            Ok(HostAnswer::Output(output)) => output.exit.is_some(),
            Ok(HostAnswer::Done | HostAnswer::Exit(_)) => true,
            _ => false,
        };
        let call = self.calls.get(&answered).filter(|_| has_ended);
        let Some(forwarded) = call.and_then(HostCall::forwarded) else {
            return;
        };
        let terminal = forwarded.terminal.clone();
        let waits = |forwarded: &&mut Forwarded| {
            forwarded.method == WAIT_FOR_EXIT && forwarded.terminal == terminal
        };
        let forwarded = self.calls.values_mut().filter_map(HostCall::forwarded_mut);
        for waiting in forwarded.filter(waits) {
            waiting.until = waiting.until.or(until);
        }
    }
}
