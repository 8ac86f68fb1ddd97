//! What is set in a session: what the client waits for, and what is restored.

use super::{Known, Session, Stage};
use crate::core::client::{Outlet, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::setting::{self, Setting};
use crate::proto::json::Members;
use crate::proto::wire::{NotRestored, Recovery};
use serde_json::json;
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
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let first = self.waiting.iter().filter_map(|w| w.deadline).min();
        first.map(|at| (at, "setting"))
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
    pub fn take_due(&mut self, now: Instant) -> Vec<Token> {
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
    fn includes(self, setting: &Setting) -> bool {
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

impl Session {
    /// The session is there, but not yet as it was.
    pub fn begin_restoring(&mut self, agent_session: String, recovery: Recovery) {
        let left = self.wanted.in_order(&self.state);
        if let Stage::Opening { climb, .. } = &mut self.stage {
            climb.restoring = Some(Restoring {
                agent_session,
                recovery,
                left,
            });
        }
    }

    /// What is being restored, if anything is.
    pub fn restoring(&mut self) -> Option<&mut Restoring> {
        match &mut self.stage {
            Stage::Opening { climb, .. } => climb.restoring.as_mut(),
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
            Stage::Opening { climb, .. } => climb.asked,
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
        let Stage::Opening { climb, .. } = &mut self.stage else {
            return Ok(None);
        };
        let Some(restoring) = climb.restoring.as_mut() else {
            return Ok(None);
        };
        while let Some(wanted) = restoring.left.front() {
            match wanted.resolve_again(&self.state) {
                // Only what the agent said since it was asked for the session counts.
                Ok(setting) if setting.is_shown(&climb.told) => {
                    restoring.left.pop_front();
                }
                Ok(setting) => return Ok(Some((restoring.agent_session.clone(), setting))),
                Err(error) if climb.required.includes(wanted) => {
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
        if let Stage::Opening { climb, .. } = &mut self.stage
            && let Some(restoring) = &mut climb.restoring
        {
            match restoring.left.front() {
                Some(wanted) if climb.required.includes(wanted) => {
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
        let Stage::Opening { climb, .. } = &mut self.stage else {
            return Ok(());
        };
        let wanted = Setting::Mode(id);
        let told = setting::mode(&climb.told);
        let Some(told) = told.filter(|_| !wanted.is_shown(&climb.told)) else {
            return Ok(());
        };
        let (mode, told) = (wanted.value(), json!(told));
        let why = format!(
            "the agent was started with mode {}, and reports {told}",
            json!(mode)
        );
        if climb.required.includes(&wanted) {
            let error = Error::new(ErrorKind::Session, why);
            return Err(wanted.required(error, &self.state));
        }
        // What was set after the start is set again.
        if let Some(restoring) = &mut climb.restoring
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
        if let Stage::Opening { climb, .. } = &mut self.stage {
            setting.take_over(news, &mut climb.told);
            if let Some(restoring) = &mut climb.restoring {
                restoring.left.pop_front();
            }
        }
    }

    /// The agent has set what the client asked for.
    pub fn take_over(&mut self, setting: Setting, news: &Members<'_>, outlet: &mut impl Outlet) {
        let before = self.state.clone();
        setting.take_over(news, &mut self.state);
        self.wanted.set(setting, &self.state);
        self.wanted.follow(&self.state);
        if self.state != before {
            self.tell_state(outlet);
        }
    }
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
