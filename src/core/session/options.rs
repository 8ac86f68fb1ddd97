//! Options that a session is opened with.

use super::{RequiredSettings, SessionMachine};
use crate::core::dialects::traits;
use crate::core::error::{Error, ErrorKind};
use crate::core::setting::{self, Setting};
use crate::proto::wire::{NotRestored, Protocol, SessionOptions, SettingValue};
use serde_json::json;

impl SessionMachine {
    /// Checks that the options of an open session, or one that is being opened, agree with the requested
    /// ones.
    pub fn must_have(&self, wish: &SessionOptions) -> Result<(), Error> {
        if wish.clone().or(&self.options) == *self.options {
            return Ok(());
        }
        let message = format!(
            "session {:?} is open with other options; call session/close first",
            self.id
        );
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", "options"))
    }

    /// Returns the requested mode and model that differ from the live session because they were changed after
    /// it was opened. The session keeps its current settings.
    pub fn changed_since(&self, wish: &SessionOptions) -> Vec<NotRestored> {
        let mode = wish.mode.clone().map(Setting::Mode);
        let model = wish.model.clone().map(Setting::Model);
        let changed = |setting: Setting| {
            let now = match &setting {
                Setting::Mode(_) => setting::mode(&self.state).map(SettingValue::Id),
                _ => None,
            };
            let now = now.or_else(|| self.wanted.value_of(&setting, &self.state))?;
            let resolved = setting.resolve_restored(&self.state);
            let same = resolved.is_ok_and(|resolved| resolved.value() == now);
            (!same && setting.value() != now).then(|| NotRestored {
                setting: setting.name().to_owned(),
                value: setting.value(),
                message: format!(
                    "the session is live and was changed to {} after it was opened; use session/set{} to set it again",
                    json!(now),
                    if matches!(setting, Setting::Mode(_)) { "Mode" } else { "Model" },
                ),
            })
        };
        mode.into_iter().chain(model).filter_map(changed).collect()
    }

    /// Returns the settings that the session must have to be opened with these options.
    #[must_use]
    pub fn required(&self, wish: &SessionOptions, strict: Option<bool>) -> RequiredSettings {
        if strict == Some(false) {
            return RequiredSettings::default();
        }
        let fresh = self.output.log().identity().is_none();
        RequiredSettings {
            mode: fresh || wish.mode.is_some(),
            model: fresh || wish.model.is_some(),
        }
    }

    /// Sets the options for the opening. A requested mode or model takes precedence over one that was set
    /// before.
    pub fn set_options(
        &mut self,
        options: SessionOptions,
        wish: &SessionOptions,
        protocol: Protocol,
    ) {
        let changed = |now: &Option<String>, before: &Option<String>, wished: &Option<String>| {
            now.clone().filter(|_| now != before || wished.is_some())
        };
        let mode = changed(&options.mode, &self.options.mode, &wish.mode).map(Setting::Mode);
        let model = changed(&options.model, &self.options.model, &wish.model).map(Setting::Model);
        for setting in mode.into_iter().chain(model) {
            if traits(protocol).starts_in_mode {
                self.wanted.forget(&setting, &self.state);
            } else {
                self.wanted.set(setting, &self.state);
            }
        }
        if options != *self.options {
            self.forget_lists();
            self.options = options.into();
        }
    }
}
