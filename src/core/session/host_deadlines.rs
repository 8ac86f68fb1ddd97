//! Timeouts of file and terminal requests that a client serves.
//!
//! A request must be answered within `--timeout client=…`. `terminal/waitForExit` has no timeout while the
//! command may run, since commands may take any time. It gets the same timeout once the client reports that
//! the command has ended, or that the terminal was killed or released.

use super::SessionMachine;
use super::host_call::HostStage;
use crate::core::cx::Cx;
use crate::core::decision::DecisionSource;
use crate::core::error::{Error, ErrorKind};
use crate::core::host::{ClientHostRequest, HostAnswer, Ticket};
use crate::core::idle_timer::format_duration;
use crate::core::limits::Timeout;
use std::time::Instant;
use tracing::warn;

/// Method whose response arrives when a command ends.
const WAIT_FOR_EXIT: &str = "terminal/waitForExit";

/// Returns `true` if a request has a timeout from its start.
pub(super) fn has_deadline(request: &ClientHostRequest) -> bool {
    request.method() != WAIT_FOR_EXIT
}

impl SessionMachine {
    /// Iterates over the deadlines of open requests that a client serves.
    pub(super) fn client_request_limits(&self) -> impl Iterator<Item = Instant> {
        let calls = self.host_calls.values();
        calls.filter_map(|call| match &call.stage {
            HostStage::Client(forwarded) => forwarded.until,
            HostStage::Judged(_) | HostStage::Terminal | HostStage::File => None,
        })
    }

    /// Iterates over the deadlines of [`Self::client_request_limits`] for changes.
    pub(super) fn client_request_limits_mut(&mut self) -> impl Iterator<Item = &mut Instant> {
        let calls = self.host_calls.values_mut();
        calls.filter_map(|call| match &mut call.stage {
            HostStage::Client(forwarded) => forwarded.until.as_mut(),
            HostStage::Judged(_) | HostStage::Terminal | HostStage::File => None,
        })
    }

    /// Times out the requests that the client did not answer in time: the agent gets an error.
    pub(super) fn time_out_client_requests(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        let overdue = self.host_calls.iter().filter_map(|(ticket, call)| {
            let HostStage::Client(forwarded) = &call.stage else {
                return None;
            };
            let is_due = forwarded.until.is_some_and(|at| at <= now);
            is_due.then_some((*ticket, forwarded.id, forwarded.client, forwarded.method))
        });
        for (ticket, ask, client, method) in overdue.collect::<Vec<_>>() {
            let limit = cx.limits().of(Timeout::Client);
            let message = format!(
                "the client did not answer {method} within {}; to allow more time, use --timeout client=…",
                format_duration(limit.unwrap_or_default())
            );
            warn!(method, "{message}");
            let by = &DecisionSource::Timeout(None);
            self.subscribers.withdraw(client, ask, by, cx.clients);
            let error = Error::new(ErrorKind::Resource, message);
            // The agent was waiting for the client, so the idle timer restarts.
            self.note_activity(now, "file or terminal", cx.clients);
            self.answer_host_call(ticket, &Err(error), cx);
        }
    }

    /// Sets the deadline of open `terminal/waitForExit` requests once the client's response shows that the
    /// command has ended.
    pub(super) fn limit_waits_for_exit(
        &mut self,
        answered: Ticket,
        answer: &Result<HostAnswer, Error>,
        cx: &Cx<'_>,
    ) {
        let has_ended = match answer {
            Ok(HostAnswer::Output(output)) => output.exit.is_some(),
            Ok(HostAnswer::Done | HostAnswer::Exit(_)) => true,
            _ => false,
        };
        let call = self.host_calls.get(&answered).filter(|_| has_ended);
        let Some(HostStage::Client(forwarded)) = call.map(|call| &call.stage) else {
            return;
        };
        let terminal = forwarded.terminal.clone();
        let until = cx.until(Timeout::Client);
        for call in self.host_calls.values_mut() {
            if let HostStage::Client(forwarded) = &mut call.stage
                && forwarded.method == WAIT_FOR_EXIT
                && forwarded.terminal == terminal
            {
                forwarded.until = forwarded.until.or(until);
            }
        }
    }
}
