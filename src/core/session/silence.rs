//! What is heard of a session while something of it is waited for.

use super::SessionMachine;
use crate::core::client::Notice;
use crate::core::client_sink::ClientSinks;
use crate::proto::wire::{Activity, ActivityParams, Waiting};
use std::time::Instant;

impl SessionMachine {
    /// The agent said something of it: where the client was told that it waits, it is told that it goes on.
    pub fn hear(&mut self, now: Instant, what: &'static str, clients: &mut impl ClientSinks) {
        if let Some(silence) = &mut self.silence
            && silence.hear(now, what)
        {
            self.tell_activity(None, clients);
        }
    }

    /// Notifies the clients of the tool that runs, and of what the session waits for.
    pub fn tell_activity(&mut self, waiting_for: Option<Waiting>, clients: &mut impl ClientSinks) {
        let activity = self.activity.clone();
        let notice = Notice::Activity(ActivityParams {
            session_id: self.id.clone(),
            activity: activity.map(|(tool_name, description)| Activity {
                tool_name,
                description,
            }),
            waiting_for,
        });
        self.subscribers.notify(self.log.seq(), &notice, clients);
    }
}
