//! Settings that the client made in a session, which are restored with it.

use super::Setting;
use super::view::StateMembers;
use acpipe_protocol::wire::SettingValue;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Settings made by the client, with their current values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChosenSettings(Vec<Setting>);

impl ChosenSettings {
    /// Adds a setting. It replaces settings of the same topic according to the session's state.
    pub fn set(&mut self, setting: Setting, state: &StateMembers) {
        self.forget(&setting, state);
        self.0.push(setting);
    }

    /// Removes the settings that have the topic of this one.
    pub fn forget(&mut self, setting: &Setting, state: &StateMembers) {
        self.0
            .retain(|old| old.topic(state) != setting.topic(state));
    }

    /// Returns `true` if a setting of this topic was made.
    pub fn has(&self, setting: &Setting, state: &StateMembers) -> bool {
        let mut topics = self.0.iter().map(|old| old.topic(state));
        topics.any(|topic| topic == setting.topic(state))
    }

    /// Returns the value of the last setting with the topic of this one.
    pub fn value_of(&self, setting: &Setting, state: &StateMembers) -> Option<SettingValue> {
        let topic = setting.topic(state);
        let last = self.0.iter().rfind(|old| old.topic(state) == topic);
        last.map(Setting::value)
    }

    /// Adopts values that the agent or its user changed since, so that a restore does not undo the change.
    pub fn adopt_changes(&mut self, state: &StateMembers) {
        for setting in &mut self.0 {
            match (setting.current_value(state), setting) {
                (
                    Some(SettingValue::Id(now)),
                    Setting::Mode(id)
                    | Setting::Model(id)
                    | Setting::Option {
                        value: SettingValue::Id(id),
                        ..
                    },
                ) => *id = now,
                (Some(now), Setting::Option { value, .. }) => *value = now,
                _ => {}
            }
        }
    }

    /// Returns the settings in the order of their restoration, the last one of each topic according to the
    /// session's current state.
    pub fn in_order(&self, state: &StateMembers) -> VecDeque<Setting> {
        let is_last = |n: usize| {
            let mut later = self.0[n + 1..].iter().map(|later| later.topic(state));
            later.all(|topic| topic != self.0[n].topic(state))
        };
        let last = (0..self.0.len()).filter(|n| is_last(*n));
        let mut all: Vec<Setting> = last.map(|n| self.0[n].clone()).collect();
        all.sort_by_key(|setting| setting.rank(state));
        all.into()
    }
}
