//! Flow of a background turn: when it begins and ends, and which updates are its own.

use super::SessionMachine;
use super::turns::BackgroundEnd;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::event::TurnEnd;

impl SessionMachine {
    /// Ends the background turn and its client requests.
    pub fn end_background(&mut self, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self
            .talk
            .turns
            .background()
            .map(|turn| turn.turn_id.clone())
        {
            self.decisions
                .cancel_requests_of(&turn_id, &mut self.talk, cx);
        }
        self.end_unprompted(None, cx);
    }

    /// Handles the agent's start of background work: a prompt that is on its way, or that is to be sent
    /// again, waits meanwhile.
    pub fn background_begins(&mut self, cx: &mut Cx<'_>) {
        // The answered turn receives no more updates.
        if self
            .talk
            .turns
            .prompted()
            .is_some_and(|r| r.ended.is_some())
        {
            self.end_answered(cx);
        }
        if let Some(running) = self.talk.turns.prompted_mut() {
            running.waits_for_background = true;
        }
    }

    /// Ends the background turn after its quiet time. If a tool runs or a client request is open, the turn
    /// waits for that.
    pub(super) fn end_quiet_turn(&mut self, cx: &mut Cx<'_>) {
        let Some(background) = self.talk.turns.background_mut() else {
            return;
        };
        if background.turn.is_working() || !self.talk.output.requests().is_empty() {
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
        if let Some(turn_id) = self
            .talk
            .turns
            .background()
            .map(|turn| turn.turn_id.clone())
        {
            self.decisions
                .report_open_calls(&turn_id, &mut self.talk, cx);
        }
        self.talk.close_background(end, cx.clients);
    }

    /// Handles the agent's start of the prompt that waited for the background turn.
    pub fn begin_prompt(&mut self, cx: &mut Cx<'_>) {
        self.end_unprompted(None, cx);
        if let Some(running) = self.talk.turns.prompted_mut() {
            running.waits_for_background = false;
        }
    }

    /// Handles the agent's report that the background turn ended.
    pub fn finish_unprompted(&mut self, end: &TurnEnd, cx: &mut Cx<'_>) {
        self.finish_background(BackgroundEnd::Reported(end), cx);
        self.talk.turns.note_cost(end.cost);
        self.begin_prompt(cx);
    }
}
