//! Notices of acpipe to the user, as updates of a session.

use super::client::AcpConnection;
use acpipe_core::acp_history::updates_of;
use acpipe_core::client::Notice;
use acpipe_json::frame::write_framed;
use acpipe_json::rpc;
use acpipe_protocol::wire::Party;
use serde_json::{Value, json};

impl AcpConnection {
    /// Sends a notification.
    pub(super) fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Acp(message) => {
                write_framed(&mut self.out, self.framing, |out| {
                    rpc::write_notification(out, &message.method, &message.params);
                });
            }
            Notice::Restored(session, recovery) => {
                let update = json!({
                    "sessionUpdate": "session_info_update",
                    "_meta": { "acpipe": { "recovery": recovery } },
                });
                self.own_update(session, &update);
                self.show_receipt(session, recovery);
            }
            Notice::PolicyWarning(session, text) => {
                self.note(session, text, &json!({ "policyWarning": text }));
            }
            Notice::Activity(activity) => {
                let waiting = activity.waiting_for.as_ref();
                // The client does not know the id of a session before the response that has it.
                let waiting = waiting.filter(|_| self.sessions.has(&activity.session_id));
                if let Some(waiting) = waiting.filter(|waiting| waiting.party != Party::Client) {
                    self.note(
                        &activity.session_id,
                        &waiting.note,
                        &json!({ "waitingFor": waiting }),
                    );
                }
            }
            // Otherwise the user sees answers to prompts of other clients without the prompts.
            Notice::UserMessage(prompt) if self.sessions.has(&prompt.session_id) => {
                updates_of(&prompt.message, &mut |update| {
                    self.raw_update(&prompt.session_id, update);
                });
            }
            // The client gets the agent's own updates of the state. ACP has no list of clients.
            Notice::SessionState(_)
            | Notice::AgentState(_)
            | Notice::Presence(_)
            | Notice::UserMessage(_) => {}
        }
    }

    /// Shows a sentence of acpipe to the user.
    pub(super) fn note(&mut self, session: &str, text: &str, about: &Value) {
        let update = self.shown.sentence(text, about);
        self.own_update(session, &update);
    }
}
