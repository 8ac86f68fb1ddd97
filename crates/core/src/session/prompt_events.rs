//! Prompts and turns: sent to the agent at once or queued, since an agent never has two prompts of one session at a
//! time; and their events, each for the part that handles it.

use super::prompting::turn_flow::set_waiting;
use crate::client::Token;
use crate::cx::Cx;
use crate::session::restore::ListPage;
use crate::session::wait_notices::notify_waiting_prompts;
use crate::session::{CallerSettings, Queued, SessionMachine};
use crate::turn_ending::Ending;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{CallId, TurnEnd};
use acpipe_protocol::wire::{SteerParams, SteerResult, Strategy};

#[derive(Debug, Clone, Copy)]
pub enum BackgroundEvent<'a> {
    /// The agent began background work: a prompt that is on its way waits meanwhile.
    Began,
    /// The agent began the prompt that waited for the background turn.
    PromptBegan,
    Ended(&'a TurnEnd),
}

impl SessionMachine {
    /// Answers a call at the end of a running or queued turn whose own client has left. Returns the call of that
    /// client; `None` if there is no such turn, or its client is still connected.
    pub fn take_over(
        &mut self,
        turn_id: &str,
        token: Token,
        caller: Box<CallerSettings>,
        cx: &mut Cx<'_>,
    ) -> Option<Token> {
        let has_left = |owner: &Token| cx.shared.clients.get(owner.client).is_none();
        let running = self
            .talk
            .turns
            .prompted_mut()
            .filter(|r| r.turn_id == turn_id);
        let Some(running) = running else {
            let queued = self.talk.queue.prompt_of(turn_id)?;
            let former = has_left(&queued.token).then(|| queued.take_over(token, caller))?;
            self.join(token.client, cx);
            return Some(former);
        };
        let former =
            has_left(&running.token).then(|| std::mem::replace(&mut running.token, token))?;
        // The client gets the notices about its terms.
        self.join(token.client, cx);
        self.decisions.add_terms(&caller, &mut self.talk, cx);
        Some(former)
    }

    /// Queues a prompt. With `restores` it also starts the restore of the session.
    pub fn enqueue(&mut self, queued: Queued, restores: bool, cx: &mut Cx<'_>) {
        self.talk.queue.push(queued);
        self.talk.notify_queue(cx.clients);
        notify_waiting_prompts(&mut self.talk, cx);
        if restores {
            self.open(Strategy::Auto, cx);
        }
    }

    /// Sends a prompt, which begins its turn.
    ///
    /// # Errors
    /// The agent cannot take the prompt, or the log cannot be written.
    pub fn begin_turn(&mut self, queued: Queued, cx: &mut Cx<'_>) -> Result<(), Error> {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.prompting.begin_turn(queued, decisions, talk, cx)
    }

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

    pub fn background(&mut self, event: BackgroundEvent<'_>, cx: &mut Cx<'_>) {
        // The answered turn receives no more updates.
        let running = self.talk.turns.prompted();
        if matches!(event, BackgroundEvent::Began)
            && running.is_some_and(|running| running.ended.is_some())
        {
            self.end_answered(cx);
        }
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        match event {
            BackgroundEvent::Began => {
                set_waiting(talk, true, cx);
                decisions.judge_again(talk, cx);
            }
            BackgroundEvent::PromptBegan => self.prompting.begin_prompt(decisions, talk, cx),
            BackgroundEvent::Ended(end) => {
                self.prompting.finish_unprompted(end, decisions, talk, cx);
            }
        }
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
        caller: &CallerSettings,
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

    /// Handles a requested stop of the agent: cancels the running turn and fails the queued prompts.
    pub fn agent_stopping(&mut self, cx: &mut Cx<'_>) {
        let message = "the agent was disconnected before the prompt's turn began";
        self.prompting.fail_queue(
            &Error::new(ErrorKind::Cancelled, message),
            &mut self.talk,
            cx.clients,
        );
        self.cancel(None, cx);
    }
}
