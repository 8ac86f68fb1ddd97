//! Clients that attach to the session and detach from it, and what the clients learn of each other.

use super::SessionMachine;
use crate::core::client::{ClientId, Notice};
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::decision::DecisionSource;
use crate::core::error::{Error, invalid, out_of_order};
use crate::core::presence::session_clients;
use crate::core::subscribers::Participation;
use crate::proto::wire::{AttachParams, AttachResult, Role, SessionActivity, UserMessageParams};
use serde_json::Value;
use std::sync::Arc;

impl SessionMachine {
    /// Subscribes a client, or changes its subscription. The chunks after `afterSeq` follow from the log.
    ///
    /// # Errors
    /// `invalidParams` if the session has no chunk `afterSeq`.
    pub fn attach(
        &mut self,
        client: ClientId,
        p: &AttachParams,
        cx: &mut Cx<'_>,
    ) -> Result<AttachResult, Error> {
        let last_seq = self.output.log().seq();
        if p.after_seq.is_some_and(|after| after > last_seq) {
            let why = format!(
                "is beyond the last chunk of session {:?}, which is {last_seq}",
                self.id
            );
            return Err(invalid("afterSeq", &why).with("lastSeq", last_seq));
        }
        let Some(declaration) = cx.shared.clients.get(client) else {
            return Err(out_of_order("not initialized; call initialize first"));
        };
        let before = self.output.subscribers().participation(client);
        let usual = before.unwrap_or(declaration.participation());
        let participation = Participation {
            role: p.role.unwrap_or(usual.role),
            on_disconnect: p.on_disconnect.unwrap_or(usual.on_disconnect),
        };
        let subscription = declaration.subscription;
        self.output
            .subscribe(client, subscription, participation, p.after_seq, cx.clients);
        self.follow_acp_clients(cx.agent.protocol_name());
        match participation.role {
            Role::Controller => self.send_open_requests(client, cx),
            Role::Observer => self.release_requests_to(client, cx),
        }
        if before != Some(participation) {
            self.notify_presence(Some(client), cx);
        }
        self.used = Some(cx.now);
        Ok(AttachResult {
            session_id: self.id.clone(),
            client_id: client.to_string(),
            role: participation.role,
            last_seq,
            running: self.turns.described(),
            clients: session_clients(self.output.subscribers(), &cx.shared.clients, client),
        })
    }

    /// Ends the subscription of a client. Its turns run on, since the client is still connected and gets their
    /// results.
    pub fn detach(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        if !self.output.subscribers().has(client) {
            return;
        }
        self.output.number_unsent(cx.clients);
        self.output
            .withdraw_all_of(client, &DecisionSource::End, cx.clients);
        self.output.send_deferred(client, cx.clients);
        self.remove_subscriber(client, cx);
    }

    /// Removes a client that has left or detached.
    pub(super) fn remove_subscriber(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        let was_there = self.output.unsubscribe(client);
        self.follow_acp_clients(cx.agent.protocol_name());
        self.drop_requests_to(client, cx);
        self.end_host_calls_to(client, cx);
        if was_there {
            self.notify_presence(None, cx);
        }
    }

    /// Takes the open requests from a client that may no longer answer them.
    fn release_requests_to(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        self.output
            .withdraw_all_of(client, &DecisionSource::End, cx.clients);
        self.drop_requests_to(client, cx);
    }

    /// Notifies the clients but `except` who is there.
    pub(super) fn notify_presence(&mut self, except: Option<ClientId>, cx: &mut Cx<'_>) {
        self.output
            .notify_presence(except, &cx.shared.clients, cx.clients);
    }

    /// Sends the message of a client's prompt to the other clients.
    pub(super) fn show_user_message(
        &mut self,
        client: ClientId,
        turn_id: &str,
        message: &Value,
        clients: &mut dyn ClientSinks,
    ) {
        if self
            .output
            .subscribers()
            .clients()
            .all(|other| other == client)
        {
            return;
        }
        let params = Arc::new(UserMessageParams {
            session_id: self.id.clone(),
            turn_id: turn_id.to_owned(),
            client_id: client.to_string(),
            message: message.clone(),
        });
        let notice = |_| Notice::UserMessage(Arc::clone(&params));
        self.output.notify_each(Some(client), notice, clients);
    }

    /// Returns the work of the session in the form that clients receive.
    pub(super) fn work(&self) -> SessionActivity {
        if !self.output.requests().is_empty() {
            SessionActivity::Waiting
        } else if self.turns.id().is_some() || !self.queue.is_empty() {
            SessionActivity::Running
        } else {
            SessionActivity::Idle
        }
    }
}
