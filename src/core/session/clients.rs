//! Clients of a session: joining and leaving.

use super::SessionMachine;
use crate::core::client::ClientId;
use crate::core::cx::Cx;
use crate::proto::wire::{OnDisconnect, Role};

impl SessionMachine {
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
            self.cancel_prompts_of(client, cx);
        }
        self.remove_subscriber(client, cx);
    }

    /// Cancels the running turn and the queued prompts of a client.
    fn cancel_prompts_of(&mut self, client: ClientId, cx: &mut Cx<'_>) {
        while self.talk.queue.take_from_client(client) {
            self.talk.notify_queue(cx.clients);
        }
        let running = self.talk.turns.prompted();
        let own = running.filter(|r| r.token.client == client && r.ended.is_none());
        if let Some(turn_id) = own.map(|running| running.turn_id.clone()) {
            self.cancel(Some(&turn_id), cx);
        }
    }
}
