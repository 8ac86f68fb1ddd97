//! Clients of a session: those that attach, join, detach and leave, and what they learn of each other.

use super::SessionMachine;
use crate::client::ClientId;
use crate::cx::Cx;
use crate::presence::session_clients;
use crate::subscribers::Participation;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, invalid, out_of_order};
use acpipe_protocol::wire::{AttachParams, AttachResult, OnDisconnect, Role};

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
        let last_seq = self.talk.output.log().seq();
        if p.after_seq.is_some_and(|after| after > last_seq) {
            let why = format!(
                "is beyond the last chunk of session {:?}, which is {last_seq}",
                self.talk.id
            );
            return Err(invalid("afterSeq", &why).with("lastSeq", last_seq));
        }
        let Some(declaration) = cx.shared.clients.get(client) else {
            return Err(out_of_order("not initialized; call initialize first"));
        };
        let before = self.talk.output.subscribers().participation(client);
        let usual = before.unwrap_or(declaration.participation());
        let participation = Participation {
            role: p.role.unwrap_or(usual.role),
            on_disconnect: p.on_disconnect.unwrap_or(usual.on_disconnect),
        };
        let subscription = declaration.subscription;
        self.talk
            .output
            .subscribe(client, subscription, participation, p.after_seq, cx.clients);
        self.talk.follow_acp_clients(cx.agent.protocol_name());
        match participation.role {
            Role::Controller => self
                .decisions
                .send_open_requests(client, &mut self.talk, cx),
            // It may no longer answer them.
            Role::Observer => {
                self.talk
                    .output
                    .withdraw_all_of(client, &DecisionSource::End, cx.clients);
                self.decisions.drop_requests_to(client, &mut self.talk, cx);
            }
        }
        if before != Some(participation) {
            self.talk.notify_presence(Some(client), cx);
        }
        self.talk.used = Some(cx.now);
        Ok(AttachResult {
            session_id: self.talk.id.clone(),
            client_id: client.to_string(),
            role: participation.role,
            last_seq,
            running: self.talk.turns.described(),
            clients: session_clients(self.talk.output.subscribers(), &cx.shared.clients, client),
        })
    }

    /// Ends the subscription of a client. Its turns run on, since the client is still connected and gets their
    /// results.
    pub fn detach(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        if !self.talk.output.subscribers().has(client) {
            return;
        }
        self.talk.output.number_unsent(cx.clients);
        self.talk
            .output
            .withdraw_all_of(client, &DecisionSource::End, cx.clients);
        self.talk.output.send_deferred(client, cx.clients);
        self.remove_subscriber(client, cx);
    }

    /// Removes a client that has left or detached.
    pub(super) fn remove_subscriber(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        let was_there = self.talk.output.unsubscribe(client);
        self.talk.follow_acp_clients(cx.agent.protocol_name());
        self.decisions.drop_requests_to(client, &mut self.talk, cx);
        self.host_calls
            .end_host_calls_to(client, &mut self.decisions, &mut self.talk, cx);
        if was_there {
            self.talk.notify_presence(None, cx);
        }
    }

    /// Subscribes a client unless it is subscribed already. It receives chunks from now on, and the open
    /// requests.
    pub fn join(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        let Some(declaration) = cx.shared.clients.get(client) else {
            return;
        };
        if self.talk.output.subscribers().has(client) {
            return;
        }
        let participation = declaration.participation();
        let subscription = declaration.subscription;
        self.talk
            .output
            .subscribe(client, subscription, participation, None, cx.clients);
        self.talk.follow_acp_clients(cx.agent.protocol_name());
        if participation.role == Role::Controller {
            self.decisions
                .send_open_requests(client, &mut self.talk, cx);
        }
        self.talk.notify_presence(Some(client), cx);
    }

    /// Handles a client's departure: its prompts are cancelled, unless they are to go on, and its requests left
    /// to other clients. `usual` applies to a client that is not subscribed.
    pub fn client_left(&mut self, client: ClientId, usual: OnDisconnect, cx: &mut Cx<'_>) {
        self.talk.output.number_unsent(cx.clients);
        let own = self.talk.output.subscribers().participation(client);
        if own.map_or(usual, |own| own.on_disconnect) == OnDisconnect::Cancel {
            while self.talk.queue.take_from_client(client) {
                self.talk.notify_queue(cx.clients);
            }
            let running = self.talk.turns.prompted();
            let own = running.filter(|r| r.token.client == client && r.ended.is_none());
            if let Some(turn_id) = own.map(|running| running.turn_id.clone()) {
                self.cancel(Some(&turn_id), cx);
            }
        }
        self.remove_subscriber(client, cx);
    }
}
