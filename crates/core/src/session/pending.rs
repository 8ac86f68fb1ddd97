//! Pending settings of a session: those that a client waits for, and those that a restore sets again.

use crate::client::Token;
use acpipe_model::error::Error;
use acpipe_model::event::CallId;
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{NotRestored, Recovery, SessionOptions};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A setting call to the agent, with the client call that waits for it.
#[derive(Debug)]
struct PendingSetting {
    call: CallId,
    token: Token,
    deadline: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct PendingSettings {
    /// Settings to send once the session is live.
    queued: Vec<(Token, Setting)>,
    /// Settings that the agent has not answered yet.
    waiting: Vec<PendingSetting>,
}

impl PendingSettings {
    /// When the first of them times out.
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|w| w.deadline).min()
    }

    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.waiting.is_empty()
    }

    pub fn postpone(&mut self, by: Duration) {
        let deadlines = self.waiting.iter_mut();
        for deadline in deadlines.filter_map(|w| w.deadline.as_mut()) {
            *deadline += by;
        }
    }

    /// Returns the client call that waits for this response, if one still does.
    pub fn answered(&mut self, call: CallId) -> Option<Token> {
        let at = self.waiting.iter().position(|w| w.call == call)?;
        Some(self.waiting.remove(at).token)
    }

    /// Queues a setting until the session is live.
    pub fn queue(&mut self, token: Token, setting: Setting) {
        self.queued.push((token, setting));
    }

    /// Takes the queued settings, once the session is live.
    pub fn take_queued(&mut self) -> Vec<(Token, Setting)> {
        std::mem::take(&mut self.queued)
    }

    /// Records a setting that was sent to the agent.
    pub fn wait(&mut self, call: CallId, token: Token, deadline: Option<Instant>) {
        self.waiting.push(PendingSetting {
            call,
            token,
            deadline,
        });
    }

    /// Takes the client calls whose response will not arrive any more.
    pub fn take_waiting(&mut self) -> Vec<Token> {
        self.waiting.drain(..).map(|w| w.token).collect()
    }

    /// Takes the client calls that timed out. A late response of the agent still takes effect.
    pub fn take_overdue(&mut self, now: Instant) -> Vec<Token> {
        let is_due = |w: &mut PendingSetting| w.deadline.is_some_and(|at| at <= now);
        let due = self.waiting.extract_if(.., is_due);
        due.map(|w| w.token).collect()
    }
}

/// Settings without which a session must not be opened: those that the client requests when it opens the
/// session, and for a session that was never open all of its options. Other settings are restored as far as
/// the agent allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequiredSettings {
    pub mode: bool,
    pub model: bool,
}

impl RequiredSettings {
    /// Returns the settings that a session must have to be opened as requested; `is_new` is `true` for one that was
    /// never open.
    #[must_use]
    pub fn of(wish: &SessionOptions, strict: Option<bool>, is_new: bool) -> Self {
        let is_strict = strict != Some(false);
        Self {
            mode: is_strict && (is_new || wish.mode.is_some()),
            model: is_strict && (is_new || wish.model.is_some()),
        }
    }

    pub const ALL: Self = Self {
        mode: true,
        model: true,
    };

    #[must_use]
    pub fn includes(self, setting: &Setting) -> bool {
        match setting {
            Setting::Mode(_) => self.mode,
            Setting::Model(_) => self.model,
            Setting::Option { .. } => false,
        }
    }
}

/// A session that the agent has, but whose settings are not restored yet.
#[derive(Debug)]
pub struct SettingsRestore {
    pub agent_session: String,
    pub recovery: Recovery,
    /// Settings that may have to be set again. The first one is in progress.
    pub left: VecDeque<Setting>,
}

impl SettingsRestore {
    /// Drops the first of the remaining settings and reports it as not restored.
    pub fn give_up(&mut self, error: Error) {
        if let Some(setting) = self.left.pop_front() {
            self.recovery.not_restored.push(NotRestored {
                setting: setting.name().to_owned(),
                value: setting.value(),
                message: error.message,
            });
        }
    }
}
