//! What the client set in a session, to be set again when it is brought back.

use super::Setting;
use super::view::State;
use crate::proto::wire::SettingValue;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the client set in a session, as it stands: restored when the session is brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wanted(Vec<Setting>);

impl Wanted {
    /// Notes what was set. It replaces what was set of the same topic, as the session's state has it.
    pub fn set(&mut self, setting: Setting, state: &State) {
        self.forget(&setting, state);
        self.0.push(setting);
    }

    /// Removes what was set of the topic of this.
    pub fn forget(&mut self, setting: &Setting, state: &State) {
        self.0
            .retain(|old| old.topic(state) != setting.topic(state));
    }

    /// Whether something of this topic was set.
    #[must_use]
    pub fn has(&self, setting: &Setting, state: &State) -> bool {
        let mut topics = self.0.iter().map(|old| old.topic(state));
        topics.any(|topic| topic == setting.topic(state))
    }

    /// What was set last of the topic of this.
    #[must_use]
    pub fn value_of(&self, setting: &Setting, state: &State) -> Option<SettingValue> {
        let topic = setting.topic(state);
        let last = self.0.iter().rfind(|old| old.topic(state) == topic);
        last.map(Setting::value)
    }

    /// What the agent or its user changed meanwhile is not to be changed back.
    pub fn follow(&mut self, state: &State) {
        for setting in &mut self.0 {
            match (setting.shown(state), setting) {
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

    /// All of it in the order in which it is restored, the last of each topic as the state has it now.
    #[must_use]
    pub fn in_order(&self, state: &State) -> VecDeque<Setting> {
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
