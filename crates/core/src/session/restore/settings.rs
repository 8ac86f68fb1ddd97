//! Last phase of a restore: the client's settings are set again.

use super::{Phase, Restore};
use crate::session::settings::SessionSettings;
use crate::session::{RequiredSettings, SettingsRestore};
use acpipe_json::Members;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::setting;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{NotRestored, Recovery};
use serde_json::json;

impl Restore {
    pub fn begin_settings(
        &mut self,
        agent_session: String,
        recovery: Recovery,
        settings: &SessionSettings,
    ) {
        self.phase = Phase::Settings(SettingsRestore {
            agent_session,
            recovery,
            left: settings.to_restore(),
        });
    }

    pub fn is_setting(&self) -> bool {
        matches!(self.phase, Phase::Settings(_))
    }

    /// Returns the agent session id and the receipt of the session whose settings were set again.
    pub fn take_settings(&mut self) -> Option<(String, Recovery)> {
        match std::mem::take(&mut self.phase) {
            Phase::Settings(restoring) => Some((restoring.agent_session, restoring.recovery)),
            other => {
                self.phase = other;
                None
            }
        }
    }

    /// Returns the agent session id of the session whose settings are set again.
    pub fn set_session(&self) -> Option<&str> {
        match &self.phase {
            Phase::Settings(restoring) => Some(&restoring.agent_session),
            _ => None,
        }
    }

    /// Sets the mode that acpipe chose and with which the agent starts.
    pub fn start_in(&mut self, mode: Option<String>) {
        self.chosen_mode = mode;
    }

    /// Adds a mode that acpipe chose to the settings to set. The session opens without it, since no client requested
    /// it, and its clients are warned.
    pub fn choose_mode(&mut self, mode: String) {
        if let Phase::Settings(restoring) = &mut self.phase {
            restoring.left.push_front(Setting::Mode(mode.clone()));
            self.chosen_mode = Some(mode);
            self.required.mode = false;
        }
    }

    pub fn take_chosen_mode(&mut self) -> Option<String> {
        self.chosen_mode.take()
    }

    /// Returns the next setting to set, by the agent's ids, with the agent session id. `None` if all are
    /// done.
    ///
    /// # Errors
    /// The agent does not offer a required setting.
    pub fn next_setting(
        &mut self,
        settings: &SessionSettings,
    ) -> Result<Option<(String, Setting)>, Error> {
        let Phase::Settings(restoring) = &mut self.phase else {
            return Ok(None);
        };
        while let Some(wanted) = restoring.left.front() {
            match wanted.resolve_restored(settings.state()) {
                // Only state that the agent reported since the last call counts.
                Ok(setting) if setting.is_shown(&self.reported) => {
                    restoring.left.pop_front();
                }
                Ok(setting) => return Ok(Some((restoring.agent_session.clone(), setting))),
                Err(error) => give_up(restoring, self.required, error, settings)?,
            }
        }
        Ok(None)
    }

    /// Records that the first remaining setting could not be set.
    ///
    /// # Errors
    /// The setting is required.
    pub fn not_set(&mut self, error: Error, settings: &SessionSettings) -> Result<(), Error> {
        match &mut self.phase {
            Phase::Settings(restoring) => give_up(restoring, self.required, error, settings),
            _ => Ok(()),
        }
    }

    pub fn was_set(&mut self, setting: &Setting, news: &Members<'_>) {
        setting.apply_accepted(news, &mut self.reported);
        if let Phase::Settings(restoring) = &mut self.phase {
            restoring.left.pop_front();
        }
    }

    /// Checks that the agent is in the mode that its process was started with, if the agent reports its mode.
    ///
    /// # Errors
    /// The agent is in another mode, and the mode is required.
    pub fn check_mode(&mut self, settings: &SessionSettings) -> Result<(), Error> {
        let Some(id) = settings.options().mode.clone() else {
            return Ok(());
        };
        let wanted = Setting::Mode(id);
        let reported = setting::mode(&self.reported);
        let Some(reported) = reported.filter(|_| !wanted.is_shown(&self.reported)) else {
            return Ok(());
        };
        let (mode, reported) = (wanted.value(), json!(reported));
        let why = format!(
            "the agent was started with mode {} but reports {reported}",
            json!(mode)
        );
        if self.required.includes(&wanted) {
            let error = Error::new(ErrorKind::Session, why);
            return Err(wanted.required(error, settings.state()));
        }
        // A mode that was set after the start is set again.
        if let Phase::Settings(restoring) = &mut self.phase
            && !settings.is_wanted(&wanted)
        {
            restoring.recovery.not_restored.push(NotRestored {
                setting: wanted.name().to_owned(),
                value: mode,
                message: why,
            });
        }
        Ok(())
    }
}

/// Gives up the first remaining setting.
///
/// # Errors
/// The setting is required.
fn give_up(
    restoring: &mut SettingsRestore,
    required: RequiredSettings,
    error: Error,
    settings: &SessionSettings,
) -> Result<(), Error> {
    match restoring.left.front() {
        Some(wanted) if required.includes(wanted) => Err(wanted.required(error, settings.state())),
        _ => {
            restoring.give_up(error);
            Ok(())
        }
    }
}
