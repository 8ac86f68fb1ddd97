//! Position of a lagging client, and the messages that follow chunks which it has not received.

use crate::client::{ClientId, Notice, Reply, Token};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_sink::{ClientSink, ClientSinks};
use acpipe_model::error::Error;
use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::Arc;

/// Maximum number of users' messages that are deferred for a lagging client; the client reads earlier ones from
/// the history.
const MOST_DEFERRED_MESSAGES: usize = 8;

/// Position of a lagging client.
#[derive(Debug)]
pub(super) struct Lag {
    /// Number of the last chunk that the client received.
    pub sent: u64,
    /// Messages, each with the number of the chunk that they follow.
    pub deferred: VecDeque<(u64, Deferred)>,
}

/// Message that follows chunks the client has not received.
#[derive(Debug)]
pub(super) enum Deferred {
    Notice(Notice),
    Request(ClientRequestId, Arc<ClientRequest>),
    Reply(Token, Box<Result<Reply, Error>>),
}

impl Lag {
    /// Defers a message. A notification replaces an earlier one of its kind, which bounds their number.
    ///
    /// The messages of users do not replace each other; of them, the last ones are deferred.
    pub fn defer(&mut self, seq: u64, message: Deferred) {
        if let Deferred::Notice(notice) = &message {
            let kind = discriminant(notice);
            let most = match notice {
                Notice::UserMessage(_) => MOST_DEFERRED_MESSAGES - 1,
                _ => 0,
            };
            let is_same = |(_, earlier): &(u64, Deferred)| matches!(earlier, Deferred::Notice(earlier) if discriminant(earlier) == kind);
            let count = self.deferred.iter().filter(|d| is_same(d)).count();
            let mut surplus = count.saturating_sub(most);
            self.deferred.retain(|deferred| {
                let drops = surplus > 0 && is_same(deferred);
                surplus -= usize::from(drops);
                !drops
            });
        }
        self.deferred.push_back((seq, message));
    }

    /// Drops a deferred request. Returns `false` if it was already sent.
    pub fn drop_request(&mut self, ask: ClientRequestId) -> bool {
        let before = self.deferred.len();
        self.deferred
            .retain(|(_, message)| !matches!(message, Deferred::Request(id, _) if *id == ask));
        self.deferred.len() < before
    }
}

impl Deferred {
    pub fn send(self, client: ClientId, clients: &mut dyn ClientSinks) {
        let Some(sink) = clients.sink(client) else {
            return;
        };
        match self {
            Self::Notice(notice) => sink.notify(&notice),
            Self::Request(ask, request) => sink.ask(ask, &request),
            Self::Reply(token, answer) => ClientSink::reply(sink, token, *answer),
        }
    }
}
