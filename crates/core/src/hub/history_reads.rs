//! Calls that read what is stored: messages, finished turns, sessions for clients that speak ACP, and the files in which
//! agents store sessions of their own.
//!
//! A turn can have a million chunks, and the loop must serve other clients meanwhile: a call is answered in pieces, as
//! fast as its client reads. Owns how far each call has read. It loads stored sessions through the catalog and reads
//! their logs; it may not change what a session has, and passes no event to a machine.

mod acp_echo;
mod acp_open_calls;
mod acp_replays;
pub(super) mod agent_files;
pub(super) mod messages;
mod turn_replays;

use super::catalog::Catalog;
use super::cx::HubCx;
use super::router::{Router, panics};
use crate::client::{ClientId, Token};
use crate::client_sink::ClientSinks;
use crate::sessions::Sessions;
use crate::shared::Shared;
use acp_replays::AcpReplays;
use acpipe_model::error::out_of_order;
use agent_files::AgentFiles;
use messages::{MessageRead, ReadStep, read_piece};
use std::collections::VecDeque;
use turn_replays::TurnReplays;

/// Maximum size of a piece of a log that is read in one step, in bytes.
pub const PIECE_BYTES: u64 = 512 << 10;

/// Calls that read what is stored.
#[derive(Debug, Default)]
pub(super) struct HistoryReads {
    messages: VecDeque<MessageRead>,
    turns: TurnReplays,
    acp: AcpReplays,
    files: AgentFiles,
}

impl HistoryReads {
    pub(super) fn turns(&mut self) -> &mut TurnReplays {
        &mut self.turns
    }

    pub(super) fn acp(&mut self) -> &mut AcpReplays {
        &mut self.acp
    }

    pub(super) fn files(&mut self) -> &mut AgentFiles {
        &mut self.files
    }

    /// Begins to read messages for a call. If that takes more than one piece, the call is answered later.
    pub(super) fn begin(
        &mut self,
        catalog: &Catalog,
        router: &mut Router,
        read: MessageRead,
        cx: &mut HubCx<'_>,
    ) {
        self.messages.push_back(read);
        if self.messages.len() == 1 {
            self.read_on(catalog, router, cx);
        }
    }

    /// Returns `true` while a call reads the history. A replay to a client that has no room waits for the client, so
    /// that it is not tried again without end.
    pub(super) fn is_reading(&self, sessions: &Sessions, clients: &mut dyn ClientSinks) -> bool {
        !self.messages.is_empty()
            || self.acp.can_continue(clients)
            || self.turns.can_continue(sessions, clients)
    }

    /// Reads a piece of the messages that clients requested.
    pub(super) fn read_on(&mut self, catalog: &Catalog, router: &mut Router, cx: &mut HubCx<'_>) {
        panics::catch_and_repair(router, cx, |router, cx| {
            self.acp
                .continue_all(catalog, router, PIECE_BYTES, cx.clients);
        });
        let mut budget = PIECE_BYTES;
        while budget > 0
            && let Some(read) = self.messages.pop_front()
        {
            let token = read.token();
            let piece = panics::catch_panic(router, cx, |router, _| {
                read_piece(catalog, router, read, &mut budget)
            });
            match piece.unwrap_or_else(|panic| Err(panic.error)) {
                Ok(ReadStep::Last(reply)) => cx.clients.reply(token, Ok(*reply)),
                Ok(ReadStep::More(read)) => {
                    // The call goes to the end of the queue, since it may have much left to read.
                    self.messages.push_back(*read);
                    return;
                }
                Err(error) => cx.clients.reply(token, Err(error)),
            }
        }
    }

    /// Continues the replays of turns as far as the clients have room.
    pub(super) fn replay_turns(
        &mut self,
        sessions: &Sessions,
        shared: &Shared,
        clients: &mut dyn ClientSinks,
    ) {
        self.turns.continue_all(sessions, shared, clients);
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.messages.retain(|read| read.token().client != client);
        self.turns.forget(client);
        self.acp.forget(client);
        self.files.forget(client);
    }

    /// Fails all calls that still read, since acpipe is shutting down.
    pub(super) fn stop(&mut self, cx: &mut HubCx<'_>) {
        let messages = std::mem::take(&mut self.messages).into_iter();
        let messages = messages.map(|read| read.token());
        let all: Vec<Token> = self
            .turns
            .take()
            .chain(messages)
            .chain(self.acp.take())
            .collect();
        for token in all {
            cx.clients
                .reply(token, Err(out_of_order("acpipe is shutting down")));
        }
        self.files.stop(cx);
    }
}
