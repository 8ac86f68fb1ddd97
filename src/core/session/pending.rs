//! Settings of a session that are on their way: what the client waits for, and what is set again.

use crate::core::client::Token;
use crate::core::error::Error;
use crate::core::event::CallId;
use crate::core::setting::Setting;
use crate::proto::wire::{NotRestored, Recovery};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What the client waits for.
#[derive(Debug)]
struct Waiting {
    call: CallId,
    token: Token,
    deadline: Option<Instant>,
}

/// What the client asked to set in a session and is not answered yet.
#[derive(Debug, Default)]
pub struct PendingSettings {
    /// Until the session is live.
    queued: Vec<(Token, Setting)>,
    /// Until the agent answers.
    waiting: Vec<Waiting>,
}

impl PendingSettings {
    /// When the first wait is given up.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|w| w.deadline).min()
    }

    /// Whether nobody waits for anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.waiting.is_empty()
    }

    /// Puts off what is to be given up.
    pub fn postpone(&mut self, by: Duration) {
        let deadlines = self.waiting.iter_mut();
        for deadline in deadlines.filter_map(|w| w.deadline.as_mut()) {
            *deadline += by;
        }
    }

    /// Who waits for this answer, if somebody still does.
    pub fn answered(&mut self, call: CallId) -> Option<Token> {
        let at = self.waiting.iter().position(|w| w.call == call)?;
        Some(self.waiting.remove(at).token)
    }

    /// Keeps what is to be set until the session is live.
    pub fn queue(&mut self, token: Token, setting: Setting) {
        self.queued.push((token, setting));
    }

    /// What was to be set once the session is live.
    pub fn take_queued(&mut self) -> Vec<(Token, Setting)> {
        std::mem::take(&mut self.queued)
    }

    /// The agent was asked.
    pub fn wait(&mut self, call: CallId, token: Token, deadline: Option<Instant>) {
        self.waiting.push(Waiting {
            call,
            token,
            deadline,
        });
    }

    /// The agent will not answer any more.
    pub fn take_waiting(&mut self) -> Vec<Token> {
        self.waiting.drain(..).map(|w| w.token).collect()
    }

    /// Those who waited for long enough: an answer that comes after all still counts.
    pub fn take_overdue(&mut self, now: Instant) -> Vec<Token> {
        let is_due = |w: &mut Waiting| w.deadline.is_some_and(|at| at <= now);
        let due = self.waiting.extract_if(.., is_due);
        due.map(|w| w.token).collect()
    }
}

/// The settings without which a session is not opened: those that the client asks for as it opens the session, and all of
/// a session that was never open. Others are restored as far as the agent allows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Required {
    pub mode: bool,
    pub model: bool,
}

impl Required {
    /// Whether a setting is among them.
    #[must_use]
    pub fn includes(self, setting: &Setting) -> bool {
        match setting {
            Setting::Mode(_) => self.mode,
            Setting::Model(_) => self.model,
            Setting::Option { .. } => false,
        }
    }
}

/// A session that the agent has, but not yet as it was.
#[derive(Debug)]
pub struct Restoring {
    pub agent_session: String,
    pub recovery: Recovery,
    /// What may have to be set; the agent is asked for the first.
    pub left: VecDeque<Setting>,
}

impl Restoring {
    /// The first that is left is not to be had.
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
