//! Settings that are set again when a session is restored.

use super::pending::Restoring;
use super::{Known, SessionMachine, Stage};
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::setting::{self, Setting};
use crate::proto::json::Members;
use crate::proto::wire::{NotRestored, Recovery};
use serde_json::json;

impl SessionMachine {
    /// The session is there, but not yet as it was.
    pub fn begin_restoring(&mut self, agent_session: String, recovery: Recovery) {
        let left = self.wanted.in_order(&self.state);
        if let Stage::Opening { restore, .. } = &mut self.stage {
            restore.restoring = Some(Restoring {
                agent_session,
                recovery,
                left,
            });
        }
    }

    /// What is being restored, if anything is.
    pub fn restoring(&mut self) -> Option<&mut Restoring> {
        match &mut self.stage {
            Stage::Opening { restore, .. } => restore.restoring.as_mut(),
            Stage::Live { .. } | Stage::Resting => None,
        }
    }

    /// The agent's session was not live yet, and so is not stored: the next try is for the one that is.
    pub fn give_up_restoring(&mut self) {
        if self.restoring().is_some() {
            self.known = self.log.identity().map(Known::of).unwrap_or_default();
        }
    }

    /// The last call that the session was asked of the agent with, while it is not live.
    #[must_use]
    pub fn asked(&self) -> Option<CallId> {
        match &self.stage {
            Stage::Opening { restore, .. } => restore.asked,
            Stage::Live { .. } | Stage::Resting => None,
        }
    }

    /// Whether this call is the one that the session waits for to be live.
    #[must_use]
    pub fn is_asked(&self, asked: CallId) -> bool {
        matches!(self.stage, Stage::Opening { call, .. } if call == Some(asked))
    }

    /// The next that has to be set, by the agent's ids, with the agent's id of the session.
    ///
    /// # Errors
    /// The agent does not offer a setting without which the session is not to be opened.
    pub fn next_to_restore(&mut self) -> Result<Option<(String, Setting)>, Error> {
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return Ok(None);
        };
        let Some(restoring) = restore.restoring.as_mut() else {
            return Ok(None);
        };
        while let Some(wanted) = restoring.left.front() {
            match wanted.resolve_again(&self.state) {
                // Only what the agent said since it was asked for the session counts.
                Ok(setting) if setting.is_shown(&restore.told) => {
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

    /// The first that is left could not be set.
    ///
    /// # Errors
    /// The session is not to be opened without it.
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

    /// Checks that the agent is in the mode that its process was started with, as far as it reports its mode.
    ///
    /// # Errors
    /// It is in another one, and the session is not to be opened without that mode.
    pub fn check_mode(&mut self) -> Result<(), Error> {
        let Some(id) = self.options.mode.clone() else {
            return Ok(());
        };
        let Stage::Opening { restore, .. } = &mut self.stage else {
            return Ok(());
        };
        let wanted = Setting::Mode(id);
        let told = setting::mode(&restore.told);
        let Some(told) = told.filter(|_| !wanted.is_shown(&restore.told)) else {
            return Ok(());
        };
        let (mode, told) = (wanted.value(), json!(told));
        let why = format!(
            "the agent was started with mode {}, and reports {told}",
            json!(mode)
        );
        if restore.required.includes(&wanted) {
            let error = Error::new(ErrorKind::Session, why);
            return Err(wanted.required(error, &self.state));
        }
        // What was set after the start is set again.
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

    /// The session was not opened: its options and settings are those that are stored, or none where it never was open.
    pub fn reset_options(&mut self) {
        let stored = self.log.identity().cloned().unwrap_or_default();
        (self.options, self.wanted) = (stored.options, stored.wanted);
    }

    /// The agent has set again what it was asked for.
    pub fn was_restored(&mut self, setting: &Setting, news: &Members<'_>) {
        setting.take_over(news, &mut self.state);
        if let Stage::Opening { restore, .. } = &mut self.stage {
            setting.take_over(news, &mut restore.told);
            if let Some(restoring) = &mut restore.restoring {
                restoring.left.pop_front();
            }
        }
    }

    /// The agent has set what the client asked for.
    pub fn take_over(
        &mut self,
        setting: Setting,
        news: &Members<'_>,
        clients: &mut impl ClientSinks,
    ) {
        let before = self.state.clone();
        setting.take_over(news, &mut self.state);
        self.wanted.set(setting, &self.state);
        self.wanted.follow(&self.state);
        if self.state != before {
            self.tell_state(clients);
        }
    }
}
