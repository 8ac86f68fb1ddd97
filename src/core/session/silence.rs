//! What is heard of a session while something of it is waited for.

use super::SessionMachine;
use crate::core::client::{Notice, Outlet};
use crate::proto::wire::{Activity, ActivityParams, Waiting};
use std::time::Instant;

impl SessionMachine {
    /// The agent said something of it: where the client was told that it waits, it is told that it goes on.
    pub fn hear(&mut self, now: Instant, what: &'static str, outlet: &mut impl Outlet) {
        if let Some(silence) = &mut self.silence
            && silence.hear(now, what)
        {
            self.tell_activity(None, outlet);
        }
    }

    /// Tells the client which tool runs, and what the session waits for.
    pub fn tell_activity(&self, waiting_for: Option<Waiting>, outlet: &mut impl Outlet) {
        let activity = self.activity.clone();
        outlet.notify(Notice::Activity(ActivityParams {
            session_id: self.id.clone(),
            activity: activity.map(|(tool_name, description)| Activity {
                tool_name,
                description,
            }),
            waiting_for,
        }));
    }
}
