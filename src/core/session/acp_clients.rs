//! Clients of a session that speak ACP: they receive the agent's updates in ACP, which are recorded too.

use super::{SessionMachine, Stage};
use crate::core::acp_client::AcpRequest;
use crate::core::acp_notification::AcpNotification;
use crate::core::acp_updates::{AcpUpdates, ReportedState};
use crate::core::client::{ClientId, Notice};
use crate::core::client_request::{ClientAnswer, ClientRequest};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::decision::Decision;
use crate::core::event::{Original, Update};
use crate::core::update_run::UpdateRun;
use crate::proto::wire::{Recovery, Rung};
use serde_json::value::RawValue;
use std::time::Instant;

/// Origin of an update.
#[derive(Debug, Clone, Copy)]
pub struct UpdateOrigin<'a> {
    /// The agent's id of the session in the update.
    pub session: &'a str,
    /// Whether the update is of a subagent with a session of its own.
    pub is_of_subagent: bool,
    /// Whether the agent speaks ACP, so that its update is passed on as it is.
    pub is_acp: bool,
}

impl SessionMachine {
    /// Begins or ends to pass on ACP updates, after clients have come or gone.
    pub(super) fn follow_acp_clients(&mut self, dialect: &str) {
        if !self.subscribers.speak_acp() {
            self.record_held_updates();
            self.acp_updates = None;
        } else if self.acp_updates.is_none() {
            self.begin_acp_updates(dialect);
        }
    }

    /// Begins to pass on the ACP updates of an agent of this dialect, if a client speaks ACP.
    pub(super) fn begin_acp_updates(&mut self, dialect: &str) {
        if self.subscribers.speak_acp() {
            self.acp_updates = Some(Box::new(AcpUpdates::new(dialect)));
        }
    }

    /// Passes an update on to the clients that speak ACP.
    #[inline]
    pub fn pass_update(
        &mut self,
        origin: UpdateOrigin<'_>,
        update: &Update<'_>,
        original: Original<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        if self.acp_updates.is_some() {
            self.pass_acp_update(origin, update, original, clients);
        }
    }

    fn pass_acp_update(
        &mut self,
        origin: UpdateOrigin<'_>,
        update: &Update<'_>,
        original: Original<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let is_stored = match &self.stage {
            // As for the chunks of such an update.
            Stage::Live { .. } if self.log.is_append_abandoned() && self.running.is_none() => {
                return;
            }
            Stage::Live { .. } => true,
            // A client that loads a session which acpipe does not know gets the agent's replay.
            Stage::Opening { restore, .. }
                if self.log.is_empty() && restore.rung == Some(Rung::Load) =>
            {
                false
            }
            Stage::Opening { .. } | Stage::Resting => return,
        };
        let state = ReportedState::of(update, origin.session, origin.is_acp);
        self.with_acp_updates(is_stored, state, clients, |updates, put| {
            if !origin.is_acp {
                updates.update(update, original, &mut |json| {
                    put(AcpNotification::Update(json));
                });
                return;
            }
            updates.note(update);
            // The output of a terminal is part of the update of a tool call, which is reported next.
            if !matches!(update, Update::Terminal(_)) {
                put(AcpNotification::Line {
                    line: original.line,
                    session: (!origin.is_of_subagent).then_some(origin.session),
                });
            }
        });
    }

    /// Applies a run of updates to the running turn, and passes it on to the clients that speak ACP. Returns `false`
    /// if the updates must be applied one by one, as for other clients that are subscribed, too.
    pub(super) fn take_acp_run(
        &mut self,
        run: &UpdateRun<'_>,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if !run.is_acp || run.texts.len() < 2 || !self.subscribers.only_speak_acp() {
            return false;
        }
        let applied = self.turn_update(&run.update(), run.original, now, clients);
        if applied.is_none() {
            return false;
        }
        let turn = self.running.as_ref().map(|running| &*running.turn_id);
        self.log.update_run(turn, run);
        let seq = self.log.seq();
        self.subscribers.update_run(&self.id, seq, run, clients);
        true
    }

    /// Ends the updates of a turn. The tool calls that a failed turn has left open have failed.
    pub(super) fn end_acp_updates(&mut self, has_failed: bool, clients: &mut dyn ClientSinks) {
        self.record_held_updates();
        self.with_acp_updates(true, None, clients, |updates, put| {
            let put = &mut |json: &[u8]| put(AcpNotification::Update(json));
            if has_failed {
                updates.finish(put);
            } else {
                updates.completed(put);
            }
        });
    }

    /// Records the updates that were held back, since none replaces them.
    fn record_held_updates(&mut self) {
        if let Some(updates) = &mut self.acp_updates {
            let turn = self.running.as_ref().map(|running| &*running.turn_id);
            let log = &mut self.log;
            updates
                .recorded
                .flush(&mut |update| log.update(turn, update));
        }
    }

    fn with_acp_updates(
        &mut self,
        is_stored: bool,
        state: Option<ReportedState>,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut AcpUpdates, &mut dyn FnMut(AcpNotification<'_>)),
    ) {
        let Some(mut updates) = self.acp_updates.take() else {
            return;
        };
        let turn = self.turn_id().map(str::to_owned);
        // Nothing ends a state that is reported outside of the turn of a prompt.
        let state = state.filter(|_| self.running.is_some());
        let mut recorded = std::mem::take(&mut updates.recorded);
        let seq = self.number_of_update();
        act(&mut updates, &mut |update| {
            if is_stored {
                recorded.record(state.as_ref(), update, &mut |update| {
                    self.log.update(turn.as_deref(), update);
                });
            }
            self.subscribers.update(&self.id, seq, update, clients);
        });
        updates.recorded = recorded;
        self.acp_updates = Some(updates);
    }

    /// Returns the number by which the next update is retracted: that of its last chunk. An update without a chunk of
    /// its own is stored with the next one, so it has the number of that.
    fn number_of_update(&mut self) -> u64 {
        let last = self.log.seq();
        let has_chunk = last > std::mem::replace(&mut self.acp_seq, last);
        last + u64::from(!has_chunk)
    }

    /// Notifies the clients that speak ACP that a prompt restored the session.
    pub(super) fn notify_restored(&self, recovery: &Recovery, clients: &mut dyn ClientSinks) {
        if self.acp_updates.is_some() {
            let notice = Notice::Restored(self.id.clone(), Box::new(recovery.clone()));
            self.notify_acp_clients(&notice, clients);
        }
    }

    /// Notifies the clients that speak ACP.
    pub(super) fn notify_acp_clients(&self, notice: &Notice, clients: &mut dyn ClientSinks) {
        for client in self.subscribers.clients_of_acp() {
            if let Some(sink) = clients.sink(client) {
                sink.notify(notice);
            }
        }
    }

    /// Returns `true` if a client that speaks ACP answers requests of the session's agent as the agent sent them.
    pub(super) fn has_acp_client(&self) -> bool {
        self.acp_updates.is_some()
    }

    /// Adds the agent's own request to a request for clients, if a client speaks ACP.
    pub(super) fn with_original(
        &self,
        request: ClientRequest,
        method: &str,
        params: Option<&RawValue>,
    ) -> ClientRequest {
        match params.and_then(|params| self.original(method, params)) {
            Some(original) => ClientRequest::Acp(Box::new(original), Some(Box::new(request))),
            None => request,
        }
    }

    /// Returns a request of the agent with the client's id of the session; `None` without a client that speaks
    /// ACP.
    pub(super) fn original(&self, method: &str, params: &RawValue) -> Option<AcpRequest> {
        self.acp_updates.as_ref()?;
        let own = self.agent_session().unwrap_or_default();
        Some(AcpRequest::of(method, Some(params)).in_session(own, &self.id))
    }
}

/// Returns the response of a client that the agent gets as it is, if the client speaks ACP and answers a request as the
/// agent sent it. An error cannot replace an approval.
pub(super) fn own_answer(
    client: ClientId,
    request: &ClientRequest,
    answer: &ClientAnswer,
    decision: &Result<Decision, Box<Decision>>,
    cx: &Cx<'_>,
) -> Option<ClientAnswer> {
    let is_original = matches!(request, ClientRequest::Acp(..));
    let is_usable = match decision {
        Ok(_) => true,
        Err(refusal) => answer.is_err() && !refusal.approved(),
    };
    let passes = is_original && is_usable && cx.shared.clients.speaks_acp(client);
    passes.then(|| answer.clone())
}
