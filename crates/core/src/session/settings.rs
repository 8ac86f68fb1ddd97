//! Settings of a session: its modes, models and options.
//!
//! Owns the options that the session is opened with, the state that the agent reports, the settings that a client has
//! made, and the setting calls that are not answered yet. It sends nothing and
//! notifies no client: `restoring.rs` and the machine make the calls. With which MCP servers the session is opened is
//! known to `restoring.rs`.

use super::pending::PendingSettings;
use crate::difference::added_value;
use crate::log::{Identity, Log};
use crate::output_budget::{FRAME, OutputBudget, SMALL, size};
use crate::shared_value::SharedValue;
use crate::terms::own_lists;
use acpipe_dialects::traits;
use acpipe_json::{Members, value};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::setting;
use acpipe_model::setting::{ChosenSettings, Setting, merge_state};
use acpipe_protocol::wire::{NotRestored, Protocol, SessionOptions, SettingValue};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

#[derive(Debug)]
pub struct SessionSettings {
    /// Options that the session is opened with.
    options: SharedValue<SessionOptions>,
    /// Options of the agent's definition with which the session was opened last.
    defined: SharedValue<SessionOptions>,
    /// Modes, models, options, commands, title and context, under the agent's own names.
    state: Map<String, Value>,
    /// Bytes of state received and shown, which limits how often the log repeats the state.
    shown: OutputBudget,
    /// Settings that the client has set.
    wanted: ChosenSettings,
    /// Setting calls that are not answered yet.
    pending: PendingSettings,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            options: SharedValue::no_options(),
            defined: SharedValue::no_options(),
            state: Map::new(),
            shown: OutputBudget::default(),
            wanted: ChosenSettings::default(),
            pending: PendingSettings::default(),
        }
    }
}

fn mode_of(options: &SessionOptions) -> Option<Setting> {
    options.mode.clone().map(Setting::Mode)
}

fn model_of(options: &SessionOptions) -> Option<Setting> {
    options.model.clone().map(Setting::Model)
}

impl SessionSettings {
    #[must_use]
    pub fn options(&self) -> &SharedValue<SessionOptions> {
        &self.options
    }

    #[must_use]
    pub fn state(&self) -> &Map<String, Value> {
        &self.state
    }

    #[must_use]
    pub fn pending(&self) -> &PendingSettings {
        &self.pending
    }

    pub fn pending_mut(&mut self) -> &mut PendingSettings {
        &mut self.pending
    }

    /// Returns the current mode, by the agent's id.
    #[must_use]
    pub fn mode(&self) -> Option<String> {
        setting::mode(&self.state)
    }

    /// Returns the current model, by the agent's id.
    #[must_use]
    pub fn model(&self) -> Option<String> {
        setting::model(&self.state)
    }

    /// Returns the client's settings that have to be set again, in the order in which the agent gets them.
    #[must_use]
    pub fn to_restore(&self) -> VecDeque<Setting> {
        self.wanted.in_order(&self.state)
    }

    #[must_use]
    pub fn is_wanted(&self, setting: &Setting) -> bool {
        self.wanted.has(setting, &self.state)
    }

    #[must_use]
    pub fn defined(&self) -> &SharedValue<SessionOptions> {
        &self.defined
    }

    pub fn set_defined(&mut self, defined: &SessionOptions) {
        if *self.defined != *defined {
            self.defined = defined.clone().into();
        }
    }

    /// Returns the options of the agent's definition that hold if the session is opened now: all of them, unless it was
    /// opened with them before. What was set in the session since then stays.
    #[must_use]
    pub fn newly_defined(&self, defined: &SessionOptions) -> SessionOptions {
        if *self.defined == *defined {
            return SessionOptions::default();
        }
        let mut new = defined.clone();
        let denied = &mut new.disallowed_tools;
        if !denied.is_empty() {
            let own = &self.options.disallowed_tools;
            let own: Vec<String> = own
                .iter()
                .filter(|tool| !denied.contains(tool))
                .cloned()
                .collect();
            denied.extend(own);
        }
        new
    }

    /// Resets options and settings to the stored ones after a failed opening; empty for a session that was
    /// never open.
    pub fn reset(&mut self, log: &Log) {
        let stored = log.identity().cloned().unwrap_or_default();
        self.put_stored(stored.options, stored.wanted);
    }

    pub fn put_stored(
        &mut self,
        options: Option<SharedValue<SessionOptions>>,
        wanted: ChosenSettings,
    ) {
        self.options = options.unwrap_or_else(SharedValue::no_options);
        self.defined = SharedValue::no_options();
        self.wanted = wanted;
    }

    /// Removes the allowed tools that are not in `own`; see [`own_lists`].
    pub fn keep_own_list(&mut self, own: &SessionOptions) {
        if !self.options.allowed_tools.is_empty() {
            self.options = own_lists(&self.options, own).into();
        }
    }

    /// Writes the settings into the identity of the session; anything the agent does not report stays.
    pub fn describe(&self, identity: &mut Identity) {
        if let Some(title) = self.state.get("title") {
            identity.title = title.as_str().map(str::to_owned);
        }
        identity.mode = self.mode().or(identity.mode.take());
        identity.model = self.model().or(identity.model.take());
        identity.options = (!self.options.is_empty()).then(|| self.options.clone());
        identity.wanted = self.wanted.clone();
    }

    /// Returns `true` if mode or model differ from those in the identity.
    #[must_use]
    pub fn differ_from(&self, stored: &Identity) -> bool {
        let differs =
            |now: Option<String>, stored: &Option<String>| now.is_some() && now != *stored;
        differs(self.mode(), &stored.mode) || differs(self.model(), &stored.model)
    }

    /// Removes the state, because a new session of the agent begins.
    pub fn clear_state(&mut self) {
        self.state.clear();
    }

    pub fn extend_state(&mut self, state: &Map<String, Value>) {
        self.state.extend(state.clone());
    }

    pub fn merge(&mut self, news: &Members<'_>) {
        merge_state(&mut self.state, news);
    }

    pub fn note_context(&mut self, figures: Option<Value>) {
        if let Some(figures) = figures {
            self.state.insert("context".to_owned(), figures);
        }
    }

    /// Merges what the agent reports. If the session is live, a setting that the agent changed replaces the client's.
    pub fn report(&mut self, news: &Members<'_>, is_live: bool) {
        // Of a large member, such as a list of commands, only the part counts that the member before did not have.
        let added = |(name, said): (&str, &RawValue)| match said.get().len() {
            size if size <= SMALL => size,
            _ => added_value(self.state.get(name).unwrap_or(&Value::Null), &value(said)),
        };
        let added = news.iter().map(added).sum::<usize>() + FRAME;
        self.shown.grow(size(news) + FRAME, added);
        self.merge(news);
        if is_live {
            self.wanted.adopt_changes(&self.state);
        }
    }

    /// Returns `true` if the log has room for a state of this size, in bytes, and counts it.
    pub fn may_log(&mut self, bytes: usize) -> bool {
        let allowed = self.shown.allows(bytes);
        if allowed {
            self.shown.show(bytes);
        }
        allowed
    }

    pub fn was_restored(&mut self, setting: &Setting, news: &Members<'_>) {
        setting.apply_accepted(news, &mut self.state);
    }

    /// Records that the agent has set what a client requested. Returns `true` if the state changed.
    pub fn was_set(&mut self, setting: Setting, news: &Members<'_>) -> bool {
        let before = self.state.clone();
        setting.apply_accepted(news, &mut self.state);
        self.wanted.set(setting, &self.state);
        self.wanted.adopt_changes(&self.state);
        self.state != before
    }

    /// Returns the requested options without a mode and a model that the live session has now.
    #[must_use]
    pub fn missing_of(&self, wish: &SessionOptions) -> SessionOptions {
        let mut missing = wish.clone();
        let has_now = |setting: Setting| self.has(&setting);
        missing
            .mode
            .take_if(|mode| has_now(Setting::Mode(mode.clone())));
        missing
            .model
            .take_if(|model| has_now(Setting::Model(model.clone())));
        missing
    }

    /// Checks that the options of an open session, or one that is being opened, agree with the requested
    /// ones.
    ///
    /// # Errors
    /// `invalidParams` if they differ.
    pub fn must_have(&self, session: &str, wish: &SessionOptions) -> Result<(), Error> {
        if wish.clone().or(&self.options) == *self.options {
            return Ok(());
        }
        let message =
            format!("session {session:?} is open with other options; call session/close first");
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", "options"))
    }

    /// Returns the requested mode and model that differ from the live session because they were changed after
    /// it was opened. The session keeps its current settings.
    pub fn changed_since(&self, wish: &SessionOptions) -> Vec<NotRestored> {
        let mode = wish.mode.clone().map(Setting::Mode);
        let model = wish.model.clone().map(Setting::Model);
        let changed = |setting: Setting| {
            let now = self.value_now(&setting)?;
            (!self.stands_for(&setting, &now)).then(|| NotRestored {
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

    /// Returns the present value of a mode or model, as far as it is known.
    fn value_now(&self, setting: &Setting) -> Option<SettingValue> {
        let now = match setting {
            Setting::Mode(_) => self.mode().map(SettingValue::Id),
            _ => None,
        };
        now.or_else(|| self.wanted.value_of(setting, &self.state))
    }

    /// Returns `true` if a setting, as a client names it, has this value by the agent's ids.
    fn stands_for(&self, setting: &Setting, value: &SettingValue) -> bool {
        let resolved = setting.resolve_restored(&self.state);
        setting.value() == *value || resolved.is_ok_and(|resolved| resolved.value() == *value)
    }

    fn has(&self, setting: &Setting) -> bool {
        let opened_with = || {
            let own = match setting {
                Setting::Mode(_) => &self.options.mode,
                _ => &self.options.model,
            };
            own.clone().map(SettingValue::Id)
        };
        let now = self.value_now(setting).or_else(opened_with);
        now.is_some_and(|now| self.stands_for(setting, &now))
    }

    /// Returns the names of the options in which the session, as it is now, differs from `own`, which a client asks for.
    /// For an option that it does not ask for, the session differs if it still has that of `held`, the definition by which
    /// another client opened it.
    #[must_use]
    pub fn differing(&self, own: &SessionOptions, held: &SessionOptions) -> Vec<&'static str> {
        let differs = |own: Option<Setting>, held: Option<Setting>| match (own, held) {
            (Some(own), _) => !self.has(&own),
            (None, Some(held)) => self.has(&held),
            (None, None) => false,
        };
        let others = |of: &SessionOptions| SessionOptions {
            mode: None,
            model: None,
            ..of.clone()
        };
        let (mut asked, held_others, now) = (others(own), others(held), others(&self.options));
        let is_new = |tool: &String| !now.disallowed_tools.contains(tool);
        asked.disallowed_tools.retain(is_new);
        let lacks = asked.or(&now) != now;
        let asked = others(own);
        let adds = asked.clone().or(&held_others) != asked && held_others.or(&now) == now;
        let all = [
            ("mode", differs(mode_of(own), mode_of(held))),
            ("model", differs(model_of(own), model_of(held))),
            ("options", lacks || adds),
        ];
        let names = all.into_iter().filter(|(_, differs)| *differs);
        names.map(|(name, _)| name).collect()
    }

    /// Puts back the options that the session had, because it could not be opened with others.
    pub fn put_options(&mut self, options: SharedValue<SessionOptions>) {
        self.options = options;
    }

    /// Returns the names of the options in which the session, as it is now, differs from what it had at an earlier opening.
    /// Tool lists are terms of the client that gave them.
    #[must_use]
    pub fn changed_from(&self, earlier: &SessionOptions) -> Vec<&'static str> {
        let has_changed = |now: Option<Setting>, earlier: Option<Setting>| match (now, earlier) {
            (now, earlier) if now == earlier => false,
            (Some(now), _) => self.has(&now),
            (None, Some(earlier)) => !self.has(&earlier),
            (None, None) => false,
        };
        let others = |of: &SessionOptions| SessionOptions {
            mode: None,
            model: None,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            ..of.clone()
        };
        let now = &*self.options;
        let all = [
            ("mode", has_changed(mode_of(now), mode_of(earlier))),
            ("model", has_changed(model_of(now), model_of(earlier))),
            ("options", others(now) != others(earlier)),
        ];
        let names = all.into_iter().filter(|(_, changed)| *changed);
        names.map(|(name, _)| name).collect()
    }

    /// Sets the options for the opening. A requested mode or model takes precedence over one that was set
    /// before. Returns `true` if the options changed.
    pub fn set_options(
        &mut self,
        options: SessionOptions,
        wish: &SessionOptions,
        protocol: Protocol,
    ) -> bool {
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
        let differ = options != *self.options;
        if differ {
            self.options = options.into();
        }
        differ
    }
}
