//! Clients of a session that speak ACP: they receive the agent's updates in ACP, which are recorded too.

use super::SessionOutput;
use crate::acp_updates::{AcpUpdates, ReportedState};
use crate::agent::directory::EarlyUpdates;
use crate::client::Notice;
use crate::client_sink::ClientSinks;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::event::{Original, Update};
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::Recovery;

#[derive(Debug, Clone, Copy)]
pub struct UpdateOrigin<'a> {
    /// The agent's id of the session in the update.
    pub session: &'a str,
    /// `true` for an update of a subagent with a session of its own.
    pub is_of_subagent: bool,
    /// `true` if the agent speaks ACP: its update is passed on as it is.
    pub is_acp: bool,
}

/// Turns that run while an update arrives.
#[derive(Debug, Clone, Copy, Default)]
pub struct UpdateTurn<'a> {
    pub prompted: Option<&'a str>,
    pub background: Option<&'a str>,
}

impl SessionOutput {
    pub fn has_acp_client(&self) -> bool {
        self.acp_updates.is_some()
    }

    /// Begins or ends to pass on the updates of an agent of this dialect, after clients have come or gone.
    pub fn follow_acp_clients(&mut self, dialect: &str, turn: UpdateTurn<'_>) {
        if !self.subscribers.speak_acp() {
            self.record_held_updates(turn);
            self.acp_updates = None;
        } else if self.acp_updates.is_none() {
            self.begin_acp_updates(dialect);
        }
    }

    /// Begins to pass on the ACP updates of an agent of this dialect, if a client speaks ACP.
    pub fn begin_acp_updates(&mut self, dialect: &str) {
        if self.subscribers.speak_acp() {
            self.acp_updates = Some(Box::new(AcpUpdates::new(dialect)));
        }
    }

    /// Passes an update on to the clients that speak ACP, and records it if it `is_stored`.
    pub fn acp_update(
        &mut self,
        (origin, turn): (UpdateOrigin<'_>, UpdateTurn<'_>),
        is_stored: bool,
        (update, original): (&Update<'_>, Original<'_>),
        clients: &mut dyn ClientSinks,
    ) {
        let state = ReportedState::of(update, origin.session, origin.is_acp);
        self.with_acp_updates((turn, is_stored), state, clients, |updates, put| {
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

    /// Passes a run of updates on to the clients that speak ACP.
    pub fn acp_run(
        &mut self,
        prompted: Option<&str>,
        run: &UpdateRun<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        self.log.update_run(prompted, run);
        let seq = self.log.seq();
        self.subscribers
            .update_run(&self.session, seq, run, clients);
    }

    /// Ends the updates of a turn. The tool calls that a failed turn has left open have failed.
    pub fn end_acp_updates(
        &mut self,
        turn: UpdateTurn<'_>,
        has_failed: bool,
        clients: &mut dyn ClientSinks,
    ) {
        self.record_held_updates(turn);
        self.with_acp_updates((turn, true), None, clients, |updates, put| {
            let put = &mut |json: &[u8]| put(AcpNotification::Update(json));
            if has_failed {
                updates.finish(put);
            } else {
                updates.completed(put);
            }
        });
    }

    /// Records the updates that were held back, since none replaces them.
    fn record_held_updates(&mut self, turn: UpdateTurn<'_>) {
        if let Some(updates) = &mut self.acp_updates {
            let log = &mut self.log;
            updates
                .recorded
                .flush(&mut |update| log.update(turn.prompted, update));
        }
    }

    fn with_acp_updates(
        &mut self,
        (turn, is_stored): (UpdateTurn<'_>, bool),
        state: Option<ReportedState>,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut AcpUpdates, &mut dyn FnMut(AcpNotification<'_>)),
    ) {
        let Some(mut updates) = self.acp_updates.take() else {
            return;
        };
        // Nothing ends a state that is reported outside of the turn of a prompt.
        let state = state.filter(|_| turn.prompted.is_some());
        let mut recorded = std::mem::take(&mut updates.recorded);
        let seq = self.number_of_update();
        act(&mut updates, &mut |update| {
            if is_stored {
                recorded.record(state.as_ref(), update, &mut |update| {
                    self.log.update(turn.prompted.or(turn.background), update);
                });
            }
            self.subscribers.update(&self.session, seq, update, clients);
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
    pub fn notify_restored(&self, recovery: &Recovery, clients: &mut dyn ClientSinks) {
        if self.has_acp_client() {
            let recovery = Box::new(recovery.clone());
            self.notify_acp_clients(
                &Notice::Restored(self.session.to_string(), recovery),
                clients,
            );
        }
    }

    pub fn notify_acp_clients(&self, notice: &Notice, clients: &mut dyn ClientSinks) {
        for client in self.subscribers.clients_of_acp() {
            if let Some(sink) = clients.sink(client) {
                sink.notify(notice);
            }
        }
    }
}

/// Passes on the updates that an ACP agent sent before it answered the call which opened the session. As for all
/// states outside of turns, the agent reports them again after the next start, so they are not recorded.
pub fn pass_early_updates(
    early: &EarlyUpdates,
    agent_session: &str,
    output: &mut SessionOutput,
    clients: &mut dyn ClientSinks,
) {
    output.with_acp_updates((UpdateTurn::default(), false), None, clients, |_, put| {
        early.each(agent_session, put);
    });
}
