//! Idle timer of a session, and the activity notifications to its clients.

use super::SessionMachine;
use crate::core::client::Notice;
use crate::core::client_sink::ClientSinks;
use crate::proto::wire::{Activity, ActivityParams, Waiting};
use std::time::Instant;

impl SessionMachine {
    /// Resets the idle timer on output of the agent. Clients that were notified of a wait are notified that
    /// it is over.
    pub fn note_activity(
        &mut self,
        now: Instant,
        what: &'static str,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(idle_timer) = &mut self.idle_timer
            && idle_timer.note_activity(now, what)
        {
            self.notify_activity(None, clients);
        }
    }

    /// Notifies the clients of the running tool and of what the session waits for.
    pub fn notify_activity(&mut self, waiting_for: Option<Waiting>, clients: &mut dyn ClientSinks) {
        let activity = self.activity.clone();
        let notice = Notice::Activity(ActivityParams {
            session_id: self.id.clone(),
            activity: activity
                .map(|activity| *activity)
                .map(|(tool_name, description)| Activity {
                    tool_name,
                    description,
                }),
            waiting_for,
        });
        self.output.notify(&notice, clients);
    }
}
