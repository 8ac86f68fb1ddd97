//! Routing of the agent's updates: to the running turn, to the background turn, or to the restore.

use super::{SessionMachine, Stage};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::event::{Original, Update};
use crate::core::idle_timer::update_name;
use crate::core::turn::Renamed;
use crate::core::update_run::UpdateRun;
use std::time::Instant;

impl SessionMachine {
    /// Replaces the agent's ids of tool calls in an update by the ids of the calls.
    pub fn identify_calls(&mut self, subagent: Option<&str>, update: &mut Update<'_>) -> Renamed {
        if let Stage::Opening(restore) = &mut self.stage
            && !restore.is_setting()
        {
            return restore.history_mut().identify_calls(subagent, update);
        }
        let log = self.output.log();
        self.turns.identify_calls(subagent, update, log)
    }

    /// Returns `true` if the agent may start tool call `call`.
    #[must_use]
    pub fn may_act(&self, call: &str) -> bool {
        self.agent_session().is_some() && self.abandoned.is_none() && self.turns.may_act(call)
    }

    /// Applies an update to the running turn; this is the hot path. Returns whether a tool may have run
    /// without a permission request; `None` if the update does not belong to the running turn.
    pub fn turn_update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
        client: &mut dyn ClientSinks,
    ) -> Option<bool> {
        self.note_activity(now, update_name(update), client);
        if !self.turns.is_prompted()
            || matches!(update, Update::Session(_) | Update::Subagent { .. })
            || self.turns.is_late(update)
        {
            return None;
        }
        self.turns
            .with_turn(&mut self.output, client, |turn, sink| {
                turn.update(update, original, sink)
            });
        Some(match update {
            Update::Tool(tool) => {
                self.turns.note_tool(&tool.id, now);
                self.turns.has_unapproved_runs()
            }
            Update::Chunk { .. } => self.turns.has_unapproved_runs(),
            Update::FromSubagent { .. } => true,
            _ => false,
        })
    }

    /// Applies a run of updates to the running turn. Returns `false` if the updates must be applied one by one, as
    /// outside of a turn.
    pub fn take_run(
        &mut self,
        run: &UpdateRun<'_>,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if !matches!(self.stage, Stage::Live { .. }) {
            return false;
        }
        if self.output.has_acp_client() {
            return self.take_acp_run(run, now, clients);
        }
        let applied = self.turn_update(&run.update_of_texts(), run.original, now, clients);
        applied.is_some()
    }

    /// Applies any other update, of the session or of a subagent. Returns `true` if a tool may have run
    /// without a permission request.
    pub fn other_update(
        &mut self,
        subagent: Option<&str>,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut Cx<'_>,
    ) -> bool {
        if self.repeated(update, original, cx) {
            return false;
        }
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.note_subagent(&self.id, update);
        }
        if subagent.is_some() {
            self.note_activity(cx.now, "subagent", cx.clients);
        }
        match (subagent, update) {
            (None, Update::Session(news)) => {
                self.set_state(news, cx.clients);
                self.store_settings(cx);
                self.recheck_asking(cx);
            }
            _ if !self.turns.is_prompted() || self.turns.is_late(update) => {
                self.background_update(subagent, update, original, cx);
            }
            (None, _) => {
                self.turns
                    .with_turn(&mut self.output, cx.clients, |turn, sink| {
                        turn.update(update, original, sink)
                    });
            }
            (Some(id), _) => self
                .turns
                .with_turn(&mut self.output, cx.clients, |turn, sink| {
                    turn.subagent(id, update, original, sink);
                }),
        }
        update.names_call()
    }
}
