//! Opening of the session at its agent: what the steps of a restore mean to the turns, the queue and the clients.

use super::restoring::agent_ids::close_or_leave_open;
use super::restoring::dead_session::{DeadSetting, dead_at_setting, replace_dead};
use super::restoring::setting_calls::{call_set, was_restored, was_set};
use super::restoring::{RestoreEvent, RestoreStep};
use super::terms::WatchedSession;
use super::{RequiredSettings, SessionAgents, SessionMachine, SessionRequest, Stage};
use crate::client::{Reply, Token};
use crate::cx::Cx;
use crate::log::Record;
use acpipe_json::Members;
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use acpipe_model::limits::Timeout;
use acpipe_model::setting::{SetCall, Setting};
use acpipe_protocol::wire::{Memory, Rung, Strategy};

fn forget_call(call: Option<CallId>, cx: &mut Cx<'_>) {
    if let (Some(connection), Some(call)) = (&mut cx.agent.connection, call) {
        connection.tell(AgentCall::Forget(call));
    }
}

impl SessionMachine {
    pub fn open(&mut self, strategy: Strategy, cx: &mut Cx<'_>) {
        self.talk.begin_opening(strategy, Vec::new());
        if self.prompting.is_one_shot() {
            // No client sees the receipt before the prompt is sent.
            self.talk.require(RequiredSettings::ALL);
        }
        self.advance(RestoreStep::Next, cx);
    }

    pub fn restore(&mut self, event: RestoreEvent<'_>, cx: &mut Cx<'_>) {
        let step = self.restoring.handle(event, &mut self.talk, cx);
        self.advance(step, cx);
    }

    /// Carries out a step of the restore, and those that follow from it.
    pub(super) fn advance(&mut self, mut step: RestoreStep, cx: &mut Cx<'_>) {
        loop {
            step = match step {
                RestoreStep::Waits => return,
                RestoreStep::Next => self.restoring.call_next(&mut self.talk, cx),
                RestoreStep::Claimed(agent_session, adoption) => {
                    self.restoring
                        .claimed(agent_session, adoption, &mut self.talk, cx)
                }
                RestoreStep::Take(taken) => {
                    self.prompting.restored_by = taken.restored_by();
                    if taken.is_new() {
                        // The background turn belongs to the session that this one replaces.
                        self.prompting.end_unprompted(
                            None,
                            &mut self.decisions,
                            &mut self.talk,
                            cx,
                        );
                    }
                    self.restoring.take(*taken, &mut self.talk, cx)
                }
                RestoreStep::Restored => return self.live(cx),
                RestoreStep::Refused(error) => return self.opening_refused(&error, cx),
                RestoreStep::Failed(error) => return self.opening_failed(&error, cx),
            }
        }
    }

    /// Makes the session live once its settings are restored as far as possible, and answers all waiting
    /// calls.
    fn live(&mut self, cx: &mut Cx<'_>) {
        let at = cx.time();
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let Some((agent_session, mut recovery)) = restore.take_settings() else {
            return;
        };
        let reported = restore.has_reported();
        let chosen = restore.take_chosen_mode();
        let shown = WatchedSession {
            settings: &self.talk.settings,
            output: &mut self.talk.output,
            turn: self.talk.turns.id(),
        };
        self.talk
            .terms
            .note_asking(chosen, &mut recovery, shown, cx);
        // A turn that is running began before the restore.
        let tells = recovery.memory != Memory::None || self.talk.turns.is_prompted();
        if tells {
            self.talk.output.record(&Record::Recovery {
                at: &at,
                recovery: &recovery,
            });
        }
        if let Err(error) = self.talk.identify(cx) {
            // Otherwise the next attempt would mistake the agent's new session for the old one.
            self.talk.known = self
                .talk
                .output
                .log()
                .identity()
                .map(SessionAgents::of)
                .unwrap_or_default();
            cx.close_at_agent(&agent_session);
            self.opening_failed(&error, cx);
            return;
        }
        self.talk.report_opening(Ok(&recovery), cx);
        self.talk.used = Some(cx.now);
        self.talk.output.begin_acp_updates(cx.agent.protocol_name());
        self.restoring.note_live();
        let live = Stage::Live { agent_session };
        self.talk.idle_timer = None;
        let waiters = match std::mem::replace(&mut self.talk.stage, live) {
            Stage::Opening(restore) => restore.into_waiters(),
            Stage::Live { .. } | Stage::Resting => Vec::new(),
        };
        if tells {
            self.talk.receipt = Some(Box::new(recovery.clone()));
        }
        if tells && waiters.is_empty() {
            self.talk.output.notify_restored(&recovery, cx.clients);
        }
        if reported && waiters.is_empty() {
            // A prompt restored the session, so no response carries the state.
            self.talk.notify_state(cx.clients);
        }
        for waiter in waiters {
            let mut own = recovery.clone();
            let talk = &mut self.talk;
            let held = (&talk.settings, &talk.known);
            let shown = (&mut talk.terms, &talk.output);
            waiter.caller.fill(held, shown, &mut own, cx);
            let result = self.talk.result(own, cx.agent.spec.protocol);
            cx.clients
                .reply(waiter.token, Ok(Reply::Session(Box::new(result))));
        }
        let restored = SessionRequest::Restored(Ok(Box::new(recovery)));
        cx.requests.push(restored);
        for (token, setting) in self.talk.settings.pending_mut().take_queued() {
            if let Err(error) = self.set(token, setting, cx) {
                cx.clients.reply(token, Err(error));
            }
        }
        if !self
            .prompting
            .resume_stale_turn(&mut self.decisions, &mut self.talk, cx)
        {
            cx.requests.push(SessionRequest::NextPrompt);
        }
    }

    /// Gives up an opening that a new session must replace, such as a load that never ends. Returns its directory.
    pub fn replace_opening(&mut self, strategy: &Strategy, cx: &mut Cx<'_>) -> Option<String> {
        let Stage::Opening(restore) = &self.talk.stage else {
            return None;
        };
        let is_new = |strategy: &Strategy| *strategy == Strategy::Only(Rung::New);
        if !is_new(strategy) || is_new(restore.strategy()) || self.talk.turns.is_prompted() {
            return None;
        }
        let cwd = self.talk.cwd.clone();
        let message = "cancelled: session/ensure with strategy \"new\" replaced the session while it was being opened";
        self.opening_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        Some(cwd)
    }

    /// Fails the opening of the session, with all calls that wait for it.
    pub fn opening_failed(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.talk.give_up_restoring();
        self.talk.report_opening(Err(error), cx);
        if !self.talk.is_opening() {
            return;
        }
        let Stage::Opening(restore) = std::mem::replace(&mut self.talk.stage, Stage::Resting)
        else {
            return;
        };
        let (call, last_call) = (restore.call(), restore.last_call());
        let waiters = restore.into_waiters().into_iter();
        let waiters = waiters.map(|waiter| waiter.token);
        // A late response must not be mistaken for that of a later attempt.
        if let (Some(call), Some(connection)) = (call, &mut cx.agent.connection) {
            connection.calls.remove(&call);
        }
        self.talk.idle_timer = None;
        if let Some((agent, options)) = self.restoring.take_previous_agent() {
            self.talk.set_agent(agent);
            self.talk.settings.put_options(options);
        }
        let settings = self.talk.settings.pending_mut().take_queued().into_iter();
        let settings: Vec<Token> = settings.map(|(token, _)| token).collect();
        for token in waiters.chain(settings) {
            cx.clients.reply(token, Err(error.clone()));
        }
        let is_retried = self
            .prompting
            .retries_opening(error, cx.now, &mut self.talk);
        forget_call(last_call, cx);
        if !is_retried {
            self.prompting
                .cannot_open(error, &mut self.decisions, &mut self.talk, cx);
        }
        if self.talk.output.log().is_empty() && !is_retried {
            // The log was created for this restore and is empty.
            let _ = self.talk.output.remove(false);
            self.talk.release_roots(cx);
            cx.requests.push(SessionRequest::Remove);
        }
        let failed = SessionRequest::Restored(Err(error.clone()));
        cx.requests.push(failed);
        self.talk.leave_directory(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
    }

    /// Fails the opening because a required setting could not be set. The session is closed at the agent and
    /// gets no prompt.
    fn opening_refused(&mut self, error: &Error, cx: &mut Cx<'_>) {
        let agent_session = match &self.talk.stage {
            Stage::Opening(restore) => restore.set_session().map(str::to_owned),
            Stage::Live { .. } | Stage::Resting => None,
        };
        self.talk.settings.reset(self.talk.output.log());
        // A background turn that began meanwhile ends, and is kept.
        self.prompting
            .end_unprompted(Some(error), &mut self.decisions, &mut self.talk, cx);
        if self.talk.output.log().identity().is_none() && self.talk.output.log().seq() == 0 {
            // The log was created for this restore, and the agent's replay belongs to no session now.
            let _ = self.talk.output.remove(false);
        }
        if let Some(agent_session) = agent_session {
            cx.close_at_agent(&agent_session);
        }
        self.opening_failed(error, cx);
    }

    /// Replaces the session at its agent, which does not have it.
    pub(super) fn replace_dead(&mut self, error: &Error, cx: &mut Cx<'_>) {
        let restored_by = self.prompting.restored_by.take();
        let step = replace_dead(error, restored_by, &mut self.talk, cx);
        self.advance(step, cx);
    }

    /// Sends a setting to the agent. If the session is not live, it is restored first.
    ///
    /// # Errors
    /// The agent does not offer the setting.
    pub fn set(&mut self, token: Token, setting: Setting, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.used = Some(cx.now);
        if let Some(agent_session) = self.talk.agent_session().map(str::to_owned) {
            let setting = setting.resolve(self.talk.settings.state())?;
            let call = call_set(&agent_session, &setting, &self.talk, cx);
            self.talk
                .settings
                .pending_mut()
                .wait(call, token, cx.until(Timeout::Set));
            return Ok(());
        }
        let is_resting = matches!(self.talk.stage, Stage::Resting);
        self.talk.settings.pending_mut().queue(token, setting);
        if is_resting {
            self.open(Strategy::Auto, cx);
        }
        Ok(())
    }

    pub fn was_set(
        &mut self,
        call: CallId,
        set: SetCall,
        answer: Result<&Members<'_>, Error>,
        cx: &mut Cx<'_>,
    ) {
        if self.talk.is_asked(call) {
            let step = was_restored(&set.setting, answer, &mut self.talk, cx);
            self.advance(step, cx);
            return;
        }
        let is_restored = self.prompting.restored_by.is_some();
        let dead = match &answer {
            Err(error) => dead_at_setting(&set, error, is_restored, &self.talk, cx),
            Ok(_) => DeadSetting::Failed,
        };
        if let (Err(error), DeadSetting::Replaces) = (&answer, dead) {
            self.replace_dead(error, cx);
        }
        if dead != DeadSetting::Failed {
            if let Some(token) = self.talk.settings.pending_mut().answered(call) {
                self.talk.settings.pending_mut().queue(token, set.setting);
            }
            return;
        }
        let answer = was_set(set, answer, &mut self.talk, cx);
        if let Some(token) = self.talk.settings.pending_mut().answered(call) {
            cx.clients.reply(token, answer);
        }
    }

    /// Releases the session at the agent: closes it, if the agent supports that.
    pub fn release_at_agent(&mut self, cx: &mut Cx<'_>) {
        let Some(agent_session) = self.talk.agent_session().map(str::to_owned) else {
            return;
        };
        self.talk.leave_directory(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
        close_or_leave_open(&agent_session, &self.talk, cx);
    }
}
