//! Events of prompts and background turns, for the part that handles them.

use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{CallId, TurnEnd};
use crate::core::session::restore::ListPage;
use crate::core::session::{Queued, SessionMachine};
use crate::core::terms::CallerTerms;
use crate::core::turn_ending::Ending;
use crate::proto::wire::{SteerParams, SteerResult};

impl SessionMachine {
    /// Sends a prompt, which begins its turn.
    ///
    /// # Errors
    /// The agent cannot take the prompt, or the log cannot be written.
    pub fn begin_turn(&mut self, queued: Queued, cx: &mut Cx<'_>) -> Result<(), Error> {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.begin_turn(queued, decisions, talk, cx)
    }

    /// Sends a prompt that was queued, which begins its turn.
    ///
    /// # Errors
    /// See [`Self::begin_turn`].
    pub fn begin_queued(&mut self, queued: Queued, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.notify_queue(cx.clients);
        self.begin_turn(queued, cx)
    }

    /// Handles the agent's answer to a prompt, or its error.
    pub fn prompt_answered(&mut self, call: CallId, ending: Ending, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting
            .prompt_answered(call, ending, decisions, talk, cx);
    }

    /// Ends an answered turn, or sends its prompt again.
    pub fn end_answered(&mut self, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.end_answered(decisions, talk, cx);
        self.replace_gone(cx);
    }

    /// Handles a page of the agent's session list, which was requested because the agent refused a prompt.
    pub fn looked_up(&mut self, page: ListPage<'_>, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.looked_up(page, decisions, talk, cx);
        self.replace_gone(cx);
    }

    /// Handles the agent's start of background work: a prompt that is on its way waits meanwhile.
    pub fn background_begins(&mut self, cx: &mut Cx<'_>) {
        // The answered turn receives no more updates.
        let running = self.talk.turns.prompted();
        if running.is_some_and(|running| running.ended.is_some()) {
            self.end_answered(cx);
        }
        if let Some(running) = self.talk.turns.prompted_mut() {
            running.waits_for_background = true;
        }
    }

    /// Handles the agent's start of the prompt that waited for the background turn.
    pub fn begin_prompt(&mut self, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.begin_prompt(decisions, talk, cx);
    }

    /// Handles the agent's report that the background turn ended.
    pub fn finish_unprompted(&mut self, end: &TurnEnd, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.finish_unprompted(end, decisions, talk, cx);
    }

    /// Ends the background turn and its client requests.
    pub fn end_background(&mut self, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.end_background(decisions, talk, cx);
    }

    /// Sends a message into the running turn.
    ///
    /// # Errors
    /// `outOfOrder` if no turn runs, another one runs, or the agent takes no messages during a turn;
    /// `invalidParams` if the agent does not accept a part.
    pub fn steer(
        &mut self,
        p: SteerParams,
        caller: Option<&CallerTerms>,
        cx: &mut Cx<'_>,
    ) -> Result<SteerResult, Error> {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.steer(p, caller, decisions, talk, cx)
    }

    /// Fails everything that needs the session at an agent, because it cannot be opened.
    pub fn cannot_open(&mut self, error: &Error, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.cannot_open(error, decisions, talk, cx);
    }

    /// Replaces the session if a prompt has shown that the agent does not have it.
    fn replace_gone(&mut self, cx: &mut Cx<'_>) {
        if let Some(error) = self.prompting.take_gone() {
            self.replace_dead(&error, cx);
        }
    }

    /// Cancels one turn: turn `turn_id`, or without an id the running one, otherwise the first queued one.
    /// Without an id and without a turn it cancels the opening of the session. Returns `true` if there was
    /// something to cancel.
    pub fn cancel(&mut self, turn_id: Option<&str>, cx: &mut Cx<'_>) -> bool {
        if self
            .prompting
            .cancel_pause(turn_id, &mut self.decisions, &mut self.talk, cx)
            || self
                .prompting
                .cancel_queued(turn_id, &mut self.talk, cx.clients)
        {
            return true;
        }
        if turn_id.is_none() && self.talk.is_opening() && !self.talk.turns.is_prompted() {
            let message = "session/cancel came before the session was open";
            self.opening_failed(&Error::new(ErrorKind::Cancelled, message), cx);
            return true;
        }
        self.prompting
            .cancel_running(turn_id, &mut self.decisions, &mut self.talk, cx)
    }
}
