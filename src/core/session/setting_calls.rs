//! Setting calls to the agent for modes, models and options: those of clients, and those of a restore.

use super::dead_session::DeadSetting;
use super::terms::asking::mode_to_set;
use super::{SessionMachine, Stage};
use crate::core::agent::connection::Call;
use crate::core::client::{Reply, Token};
use crate::core::cx::Cx;
use crate::core::dialect::AgentCall;
use crate::core::dialects::traits;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Timeout;
use crate::core::setting::{SetCall, Setting};
use crate::proto::json::Members;
use crate::proto::wire::{SettingResult, Strategy};
use serde_json::Value;

impl SessionMachine {
    /// Sends a setting to the agent. If the session is not live, it is restored first.
    ///
    /// # Errors
    /// The agent does not offer the setting.
    pub fn set(&mut self, token: Token, setting: Setting, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.used = Some(cx.now);
        if let Some(agent_session) = self.talk.agent_session().map(str::to_owned) {
            let setting = setting.resolve(self.talk.settings.state())?;
            let call = self.call_set(&agent_session, &setting, cx);
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

    fn call_set(&self, agent_session: &str, setting: &Setting, cx: &mut Cx<'_>) -> CallId {
        let call = cx.next_call();
        if let Some(connection) = &mut cx.agent.connection {
            let set = SetCall {
                session: self.talk.id.clone(),
                agent_session: agent_session.to_owned(),
                setting: setting.clone(),
            };
            connection.calls.insert(call, Call::Set(set));
            connection.tell(AgentCall::Set {
                call,
                session: agent_session,
                setting,
            });
        }
        call
    }

    /// Sends the settings that were queued until the session was live.
    pub(super) fn set_queued(&mut self, cx: &mut Cx<'_>) {
        for (token, setting) in self.talk.settings.pending_mut().take_queued() {
            if let Err(error) = self.set(token, setting, cx) {
                cx.clients.reply(token, Err(error));
            }
        }
    }

    /// Handles the agent's response to a setting call.
    pub fn was_set(
        &mut self,
        call: CallId,
        set: SetCall,
        answer: Result<&Members<'_>, Error>,
        cx: &mut Cx<'_>,
    ) {
        if self.talk.is_asked(call) {
            match answer {
                Ok(news) => {
                    self.talk.settings.was_restored(&set.setting, news);
                    if let Stage::Opening(restore) = &mut self.talk.stage {
                        restore.was_set(&set.setting, news);
                    }
                    self.restore_next_setting(cx);
                }
                Err(error) => {
                    if let Err(error) = self.dead_at_restored_setting(error, cx) {
                        self.setting_not_restored(error, cx);
                    }
                }
            }
            return;
        }
        if let Err(error) = &answer
            && self.dead_at_setting(&set, error, cx) == DeadSetting::SentAgain
        {
            if let Some(token) = self.talk.settings.pending_mut().answered(call) {
                self.talk.settings.pending_mut().queue(token, set.setting);
            }
            return;
        }
        let answer = match answer {
            Ok(_) if self.talk.agent_session() != Some(&*set.agent_session) => {
                let id = &self.talk.id;
                let message =
                    format!("cancelled: session {id:?} was reopened before the agent answered");
                Err(Error::new(ErrorKind::Cancelled, message))
            }
            Ok(news) => {
                if self.talk.settings.was_set(set.setting, news) {
                    self.talk.notify_state(cx.clients);
                }
                self.talk.recheck_asking(cx);
                let result = SettingResult {
                    state: Value::Object(self.talk.settings.state().clone()),
                    policy_warning: self.talk.terms.policy_warning().map(str::to_owned),
                };
                let stored = self.talk.identify(cx);
                stored.map(|()| Reply::Setting(result))
            }
            Err(error) => Err(error),
        };
        if let Some(token) = self.talk.settings.pending_mut().answered(call) {
            cx.clients.reply(token, answer);
        }
    }

    /// Checks the mode that the agent was started in, then restores the settings.
    pub(super) fn begin_to_restore_settings(&mut self, cx: &mut Cx<'_>) {
        let starts_in_mode = traits(cx.agent.spec.protocol).starts_in_mode;
        let checked = match &mut self.talk.stage {
            Stage::Opening(restore) if starts_in_mode => restore.check_mode(&self.talk.settings),
            Stage::Opening(_) | Stage::Live { .. } | Stage::Resting => Ok(()),
        };
        match checked {
            Ok(()) => {
                let mode = mode_to_set(&self.talk.settings, cx);
                if let (Some(mode), Stage::Opening(restore)) = (mode, &mut self.talk.stage) {
                    restore.choose_mode(mode);
                }
                self.restore_next_setting(cx);
            }
            Err(error) => self.opening_refused(&error, cx),
        }
    }

    /// Sets the next of the client's settings that the session does not show. The session goes live after the
    /// last one.
    fn restore_next_setting(&mut self, cx: &mut Cx<'_>) {
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let (agent_session, setting) = match restore.next_setting(&self.talk.settings) {
            Ok(Some(next)) => next,
            Ok(None) => {
                self.live(cx);
                return;
            }
            Err(error) => {
                self.opening_refused(&error, cx);
                return;
            }
        };
        let call = self.call_set(&agent_session, &setting, cx);
        let limit = cx.limits().of(Timeout::Set);
        self.talk.opening(call, cx.now, limit);
    }

    /// Handles a setting that could not be restored: the receipt reports it, or if it is required the opening
    /// fails.
    fn setting_not_restored(&mut self, error: Error, cx: &mut Cx<'_>) {
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        match restore.not_set(error, &self.talk.settings) {
            Ok(()) => self.restore_next_setting(cx),
            Err(error) => self.opening_refused(&error, cx),
        }
    }

    /// Fails the opening because a required setting could not be set. The session is closed at the agent and
    /// gets no prompt.
    fn opening_refused(&mut self, error: &Error, cx: &mut Cx<'_>) {
        let agent_session = match &self.talk.stage {
            Stage::Opening(restore) => restore.set_session().map(str::to_owned),
            Stage::Live { .. } | Stage::Resting => None,
        };
        self.reset_options();
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

    /// Handles the timeout of a restored setting. The call is not forgotten: a late response still takes
    /// effect.
    pub(super) fn restore_setting_overdue(&mut self, cx: &mut Cx<'_>) {
        let error = self.set_timeout(cx);
        self.setting_not_restored(error, cx);
    }

    /// Fails the setting calls that the agent has not answered in time.
    pub(super) fn time_out_settings(&mut self, cx: &mut Cx<'_>) {
        for token in self.talk.settings.pending_mut().take_overdue(cx.now) {
            let error = self.set_timeout(cx);
            cx.clients.reply(token, Err(error));
        }
    }

    /// Resets options and settings to the stored ones after a failed opening; empty for a session that was
    /// never open.
    pub(super) fn reset_options(&mut self) {
        let stored = self
            .talk
            .output
            .log()
            .identity()
            .cloned()
            .unwrap_or_default();
        self.talk.settings.put_stored(stored.options, stored.wanted);
    }
}
