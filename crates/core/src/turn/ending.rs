//! End of a turn and of its attempts.

use super::{SettleReason, Turn, TurnEvent, TurnView};
use acpipe_model::error::Error;
use acpipe_model::event::{StopReason, TurnEnd};

impl Turn {
    /// Ends the turn with the agent's answer; `cancelled` is `true` if the client requested a cancel.
    pub fn finish(&mut self, end: &TurnEnd, cancelled: bool, view: &mut impl TurnView) {
        let settle = match end.stop_reason {
            StopReason::Cancelled => SettleReason::Cancelled,
            _ if cancelled => SettleReason::Cancelled,
            _ if end.error.is_some() => SettleReason::Failed,
            _ => SettleReason::TurnEnded,
        };
        self.figures.account(end);
        if let Some(answer) = end.structured_output.as_deref()
            && self.structured_output.is_none()
        {
            self.structured_output(answer, view);
        }
        self.close(settle, view);
        view.event(&TurnEvent::Finished {
            end,
            cancelled,
            usage: self.figures.usage(),
            num_turns: self.figures.num_turns(),
        });
    }

    pub fn finish_unreported(&mut self, view: &mut impl TurnView) {
        self.close(SettleReason::TurnEnded, view);
        view.event(&TurnEvent::FinishedUnreported);
    }

    /// Ends the turn with an error, after everything that was received.
    pub fn fail(&mut self, error: &Error, view: &mut impl TurnView) {
        self.close(SettleReason::Failed, view);
        view.event(&TurnEvent::Failed(error));
    }

    /// Ends the turn with an error only: nothing that was open is shown.
    pub fn cut_off(&mut self, error: &Error, view: &mut impl TurnView) {
        struct Nowhere;
        impl TurnView for Nowhere {
            fn event(&mut self, _: &TurnEvent<'_>) {}
        }
        self.close(SettleReason::Failed, &mut Nowhere);
        view.event(&TurnEvent::CutOff(error));
    }

    pub(super) fn close(&mut self, settle: SettleReason, view: &mut impl TurnView) {
        self.messages.end_text();
        let terminals = self.terminals.all();
        view.event(&TurnEvent::Ending { terminals });
        for call in self.terminals.calls() {
            // Output that arrived after the call's result.
            if let Some(output) = self.terminals.output_of(call) {
                self.tools.set_terminal_output(call, output, view);
            }
        }
        self.subagents.close(settle, view);
        self.tools.settle(settle, view);
        self.passed.close(settle, view);
        view.event(&TurnEvent::Closed);
    }

    /// Closes what is open because the prompt is sent again; the turn continues.
    pub fn end_attempt(&mut self, view: &mut impl TurnView) {
        self.messages.end_text();
        let terminals = self.terminals.all();
        view.event(&TurnEvent::AttemptEnded { terminals });
        self.tools.settle(SettleReason::Failed, view);
        self.passed.close(SettleReason::Failed, view);
    }
}
