//! Messages that are sent while a turn runs. The CLI takes such a message when the model has called a tool; if the
//! turn ends before, the message begins a turn of its own.

use super::{Pending, Session, write};
use serde_json::{Value, json};

/// Message that the CLI has not taken.
#[derive(Debug)]
pub(super) struct Steering {
    uuid: String,
    /// `true` after its withdrawal was requested.
    withdrawn: bool,
}

impl Session {
    /// Sends a message into the running turn.
    pub fn steer(&mut self, uuid: String, content: Vec<Value>, out: &mut Vec<u8>) {
        self.send_user(&uuid, content, out);
        self.steering.push(Steering {
            uuid,
            withdrawn: false,
        });
    }

    /// Writes a message of the user.
    pub(super) fn send_user(&self, uuid: &str, content: Vec<Value>, out: &mut Vec<u8>) {
        let mut frame = json!({
            "type": "user",
            "message": { "role": "user" },
            "parent_tool_use_id": null,
            "session_id": self.id,
            "uuid": uuid,
        });
        // Moved, because it can be large.
        frame["message"]["content"] = content.into();
        write(&frame, out);
    }

    /// Records that the CLI has taken a message, or withdrawn it. A message that was to be withdrawn but begins
    /// a turn is interrupted.
    pub(super) fn steering_taken(&mut self, uuid: &str, begins: bool, out: &mut Vec<u8>) {
        let Some(at) = self.steering.iter().position(|own| own.uuid == uuid) else {
            return;
        };
        if self.steering.remove(at).withdrawn && begins {
            self.request(Pending::Interrupt, &json!({ "subtype": "interrupt" }), out);
        }
    }

    /// Records the end of a turn. `users` are the ids of the messages that the turn took, as JSON.
    pub(super) fn steering_over(&mut self, users: &str) {
        // Other versions do not report when they take a message.
        let reports = self.reports_prompt_starts;
        self.steering
            .retain(|own| reports && !users.contains(own.uuid.as_str()));
    }

    /// Withdraws the messages that an interrupted turn did not take. `queued` are the ids of the waiting
    /// messages, as JSON.
    pub(super) fn withdraw_steering(&mut self, queued: &str, out: &mut Vec<u8>) {
        let mut waiting = Vec::new();
        for own in &mut self.steering {
            if queued.contains(&own.uuid) {
                own.withdrawn = true;
                waiting.push(own.uuid.clone());
            }
        }
        for uuid in waiting {
            let request = json!({ "subtype": "cancel_async_message", "message_uuid": uuid });
            self.request(Pending::Withdraw, &request, out);
        }
    }
}
