//! What the client set in a session, to be set again when it is brought back.

use super::{Setting, State};
use crate::proto::wire::SettingValue;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the client set in a session, as it stands: restored when the session is brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wanted(Vec<Setting>);

impl Wanted {
    /// Notes what was set.
    pub fn set(&mut self, setting: Setting) {
        self.0.retain(|old| !old.is_same_thing(&setting));
        self.0.push(setting);
    }

    /// What was set in the place of this does not hold any more.
    pub fn forget(&mut self, setting: &Setting) {
        self.0.retain(|old| !old.is_same_thing(setting));
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

    /// All of it in the order in which it is restored.
    #[must_use]
    pub fn in_order(&self, state: &State) -> VecDeque<Setting> {
        let mut all = self.0.clone();
        all.sort_by_key(|setting| setting.rank(state));
        all.into()
    }
}
