//! Settings that a restore sets again.

use super::pending::SettingsRestore;
use super::{SessionAgents, SessionMachine, Stage};
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::setting::{self, Setting};
use crate::core::shared_value::SharedValue;
use crate::proto::json::Members;
use crate::proto::wire::{NotRestored, Recovery};
use serde_json::json;

impl SessionMachine {
    /// Starts to restore the settings of a session that the agent has.
    pub fn begin_restoring(&mut self, agent_session: String, recovery: Recovery) {
        let left = self.wanted.in_order(&self.state);
        if let Stage::Opening { restore, .. } = &mut self.stage {
            restore.restoring = Some(SettingsRestore {
                agent_session,
                recovery,
                left,
            });
        }
    }

    /// Returns the session whose settings are being restored.
    pub fn restoring(&mut self) -> Option<&mut SettingsRestore> {
        match &mut self.stage {
            Stage::Opening { restore, .. } => restore.restoring.as_mut(),
            Stage::Live { .. } | Stage::Resting => None,
        }
    }

    /// Drops a session whose settings were being restored. It was not live and is not stored, so the next
    /// attempt is for the stored one.
    pub fn give_up_restoring(&mut self) {
        if self.restoring().is_some() {
            self.known = self
                .output
                .log()
                .identity()
                .map(SessionAgents::of)
                .unwrap_or_default();
        }
    }

    /// Returns the last call to the agent for the session, while the session is being opened.
    #[must_use]
    pub fn asked(&self) -> Option<CallId> {
        match &self.stage {
            Stage::Opening { restore, .. } => restore.asked,
            Stage::Live { .. } | Stage::Resting => None,
        }
    }

    /// Returns `true` if the opening of the session waits for this call.
    #[must_use]
    pub fn is_asked(&self, asked: CallId) -> bool {
        matches!(self.stage, Stage::Opening { call, .. } if call == Some(asked))
    }

    /// Returns the next setting to set, by the agent's ids, with the agent session id. `None` if all are
    /// done.
    ///
    /// # Errors
    /// The agent does not offer a required setting.
    pub fn next_to_restore(&mut self) -> Result<Option<(String, Setting)>, Error> {
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return Ok(None);
        };
        let Some(restoring) = restore.restoring.as_mut() else {
            return Ok(None);
        };
        while let Some(wanted) = restoring.left.front() {
            match wanted.resolve_restored(&self.state) {
                // Only state that the agent reported since the last call counts.
                Ok(setting) if setting.is_shown(&restore.reported) => {
                    restoring.left.pop_front();
                }
                Ok(setting) => return Ok(Some((restoring.agent_session.clone(), setting))),
                Err(error) if restore.required.includes(wanted) => {
                    return Err(wanted.required(error, &self.state));
                }
                Err(error) => restoring.give_up(error),
            }
        }
        Ok(None)
    }

    /// Records that the first remaining setting could not be set.
    ///
    /// # Errors
    /// The setting is required.
    pub fn not_restored(&mut self, error: Error) -> Result<(), Error> {
        if let Stage::Opening { restore, .. } = &mut self.stage
            && let Some(restoring) = &mut restore.restoring
        {
            match restoring.left.front() {
                Some(wanted) if restore.required.includes(wanted) => {
                    return Err(wanted.required(error, &self.state));
                }
                _ => restoring.give_up(error),
            }
        }
        Ok(())
    }

    /// Checks that the agent is in the mode that its process was started with, if the agent reports its mode.
    ///
    /// # Errors
    /// The agent is in another mode, and the mode is required.
    pub fn check_mode(&mut self) -> Result<(), Error> {
        let Some(id) = self.options.mode.clone() else {
            return Ok(());
        };
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return Ok(());
        };
        let wanted = Setting::Mode(id);
        let reported = setting::mode(&restore.reported);
        let Some(reported) = reported.filter(|_| !wanted.is_shown(&restore.reported)) else {
            return Ok(());
        };
        let (mode, reported) = (wanted.value(), json!(reported));
        let why = format!(
            "the agent was started with mode {} but reports {reported}",
            json!(mode)
        );
        if restore.required.includes(&wanted) {
            let error = Error::new(ErrorKind::Session, why);
            return Err(wanted.required(error, &self.state));
        }
        // A mode that was set after the start is set again.
        if let Some(restoring) = &mut restore.restoring
            && !self.wanted.has(&wanted, &self.state)
        {
            restoring.recovery.not_restored.push(NotRestored {
                setting: wanted.name().to_owned(),
                value: mode,
                message: why,
            });
        }
        Ok(())
    }

    /// Resets options and settings to the stored ones after a failed opening; empty for a session that was
    /// never open.
    pub fn reset_options(&mut self) {
        let stored = self.output.log().identity().cloned().unwrap_or_default();
        (self.options, self.wanted) = (
            stored.options.unwrap_or_else(SharedValue::no_options),
            stored.wanted,
        );
    }

    /// Records that the agent has set a setting again.
    pub fn was_restored(&mut self, setting: &Setting, news: &Members<'_>) {
        setting.apply_accepted(news, &mut self.state);
        if let Stage::Opening { restore, .. } = &mut self.stage {
            setting.apply_accepted(news, &mut restore.reported);
            if let Some(restoring) = &mut restore.restoring {
                restoring.left.pop_front();
            }
        }
    }

    /// Records that the agent has set what a client requested, and notifies the clients of the state.
    pub fn apply_accepted(
        &mut self,
        setting: Setting,
        news: &Members<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let before = self.state.clone();
        setting.apply_accepted(news, &mut self.state);
        self.wanted.set(setting, &self.state);
        self.wanted.adopt_changes(&self.state);
        if self.state != before {
            self.notify_state(clients);
        }
    }
}
