//! Flow of a background turn: when it begins and ends, and which updates are its own.

use super::turns::{BackgroundEnd, is_passing};
use super::{SessionMachine, Stage};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::event::{Original, TurnEnd, Update};
use tracing::debug;

impl SessionMachine {
    /// Applies an update that is not part of a prompt's turn.
    pub(super) fn background_update(
        &mut self,
        subagent: Option<&str>,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut Cx<'_>,
    ) {
        if self.output.log().is_append_abandoned() {
            debug!(session = self.id, "cannot store an update outside of turns");
            return;
        }
        let is_open = self.turns.background().is_some();
        if let Update::Context { cost, figures } = update
            && subagent.is_none()
            && !is_open
        {
            let figures = figures.clone().unwrap_or_else(|| original.fields());
            self.set_context(&figures, *cost, cx.clients);
            return;
        }
        let output = &mut self.output;
        if self.turns.show_beside_turns(update, original, output, cx) {
            return;
        }
        // Figures and notices do not keep the background turn alive.
        if !is_open || !is_passing(update) {
            let begins_with = match update {
                Update::Message(piece) => piece.message_id.as_deref(),
                Update::Tool(tool) => Some(tool.id.as_ref()),
                _ => None,
            };
            self.begin_background(begins_with, cx);
        }
        let output = &mut self.output;
        self.turns
            .with_background(output, cx.clients, |turn, sink| match subagent {
                None => turn.update(update, original, sink),
                Some(id) => turn.subagent(id, update, original, sink),
            });
    }

    /// Begins a background turn if none is open. `begins_with` is the agent's id of its first message or tool call.
    pub(super) fn begin_background(&mut self, begins_with: Option<&str>, cx: &mut Cx<'_>) {
        self.used = Some(cx.now);
        let agent_session = match &self.stage {
            Stage::Live { agent_session } => Some(agent_session.as_str()),
            Stage::Opening(_) | Stage::Resting => None,
        };
        let output = &mut self.output;
        self.turns
            .begin_background(begins_with, agent_session, output, cx);
    }

    /// Ends the background turn and its client requests.
    pub fn end_background(&mut self, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self.turns.background().map(|turn| turn.turn_id.clone()) {
            self.cancel_requests_of(&turn_id, cx);
        }
        self.end_unprompted(None, cx);
    }

    /// Handles the agent's start of background work: a prompt that is on its way, or that is to be sent
    /// again, waits meanwhile.
    pub fn background_begins(&mut self, cx: &mut Cx<'_>) {
        // The answered turn receives no more updates.
        if self.turns.prompted().is_some_and(|r| r.ended.is_some()) {
            self.end_answered(cx);
        }
        if let Some(running) = self.turns.prompted_mut() {
            running.waits_for_background = true;
        }
    }

    /// Ends the background turn after its quiet time. If a tool runs or a client request is open, the turn
    /// waits for that.
    pub(super) fn end_quiet_turn(&mut self, cx: &mut Cx<'_>) {
        let Some(background) = self.turns.background_mut() else {
            return;
        };
        if background.turn.is_working() || !self.output.requests().is_empty() {
            background.quiet_at = None;
        } else {
            self.end_unprompted(None, cx);
        }
    }

    /// Ends the background turn, if there is one.
    pub fn end_unprompted(&mut self, error: Option<&Error>, cx: &mut Cx<'_>) {
        let end = error.map_or(BackgroundEnd::Unreported, BackgroundEnd::Failed);
        self.finish_background(end, cx);
    }

    fn finish_background(&mut self, end: BackgroundEnd<'_>, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self.turns.background().map(|turn| turn.turn_id.clone()) {
            self.report_open_calls(&turn_id, cx);
        }
        self.close_background(end, cx.clients);
    }

    /// Ends the background turn without judging its open calls.
    pub(super) fn close_background(
        &mut self,
        end: BackgroundEnd<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let context = self.turns.close_background(end, &mut self.output, clients);
        self.settings.note_context(context);
    }

    /// Handles the agent's start of the prompt that waited for the background turn.
    pub fn begin_prompt(&mut self, cx: &mut Cx<'_>) {
        self.end_unprompted(None, cx);
        if let Some(running) = self.turns.prompted_mut() {
            running.waits_for_background = false;
        }
    }

    /// Handles the agent's report that the background turn ended.
    pub fn finish_unprompted(&mut self, end: &TurnEnd, cx: &mut Cx<'_>) {
        self.finish_background(BackgroundEnd::Reported(end), cx);
        self.turns.note_cost(end.cost);
        self.begin_prompt(cx);
    }
}
