//! Storage: writes session logs before clients receive their chunks, and handles the results of the store.

use super::Hub;
use super::cx::HubCx;
use crate::core::client::Reply;
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, ErrorKind};
use crate::core::log::disk_timeout;
use crate::core::shared::{PendingStoreReply, StoreCall};
use crate::core::store::StoreEvent;
use crate::proto::json::{to_raw, value};
use std::time::Instant;
use tracing::warn;

impl Hub {
    /// Writes the new records of all sessions. This must come before clients receive anything, since
    /// everything that a client received must be in the log.
    pub fn commit(&mut self, cx: &mut HubCx<'_>) {
        if self.has_unsent(cx.clients) {
            self.catch_and_repair(cx, |hub, cx| {
                hub.sessions.for_each_awake(|session| {
                    session.talk.output.number_unsent_if_read(cx.clients);
                });
            });
        }
        let mut failed = Vec::new();
        let (limits, counters) = (&self.shared.settings.limits, &mut self.shared.counters);
        self.sessions.for_each_awake(|session| {
            session.count_output(cx.now, counters);
            if session.talk.output.log().is_dirty()
                && let Err(error) = session.talk.output.commit((cx.now, limits), cx.clients)
            {
                failed.push((session.id.clone(), error));
            }
        });
        for (id, error) in failed {
            self.with(&id, cx, |session, cx| {
                session.not_stored(error, cx);
            });
        }
    }

    /// Returns `true` if chunks are held back for clients that are behind.
    fn has_unsent(&self, clients: &mut dyn ClientSinks) -> bool {
        let mut all = self.shared.clients.ids();
        all.any(|client| clients.sink(client).is_some_and(|sink| sink.unsent() > 0))
    }

    /// Numbers the chunks that are held back for clients that are behind, so that they precede whatever comes
    /// next.
    pub(super) fn number_unsent(&mut self, clients: &mut dyn ClientSinks) {
        if self.has_unsent(clients) {
            self.sessions
                .for_each_awake(|session| session.talk.output.number_unsent(clients));
        }
    }

    /// Handles a result of the store.
    pub fn stored(&mut self, event: StoreEvent, cx: &mut HubCx<'_>) {
        match event {
            StoreEvent::Synced { ticket, outcome } => {
                if let Err(error) = &outcome {
                    warn!(%error, "cannot flush to disk; recent messages may be lost if the machine crashes");
                }
                let wait = self.shared.pending_store_replies.remove(&ticket);
                if let Some(wait) = wait {
                    self.synced(wait, outcome, cx);
                }
            }
            StoreEvent::Appended => self.commit(cx),
            StoreEvent::Listed { ticket, outcome } => {
                let wait = self.shared.pending_store_replies.remove(&ticket);
                match (wait.map(|wait| wait.call), outcome) {
                    (Some(StoreCall::List(token, params, open)), Ok(cards)) => {
                        self.cards_listed((token, params, open), cards, cx);
                    }
                    (Some(StoreCall::List(token, ..)), Err(error)) => {
                        cx.clients.reply(token, Err(error));
                    }
                    (Some(StoreCall::Claim(id)), Ok(cards)) => {
                        self.claim_searched(&id, &cards, cx);
                    }
                    (Some(StoreCall::Claim(id)), Err(error)) => {
                        self.claim_not_searched(&id, &error, cx);
                    }
                    (Some(StoreCall::Turn(..)) | None, _) => {}
                }
            }
        }
        self.finish_if_done(cx.clients);
    }

    /// Answers a call that waited for the disk, or whose time limit is reached.
    fn synced(&mut self, wait: PendingStoreReply, outcome: Result<(), Error>, cx: &mut HubCx<'_>) {
        match (wait.call, outcome) {
            (StoreCall::Turn(id, token, summary), outcome) => {
                let answer = match outcome {
                    Ok(()) => Ok(Reply::Turn(summary)),
                    Err(error) if !self.needs_sync(&id, &error) => Ok(Reply::Turn(summary)),
                    Err(error) => Err(error.with("summary", value(&to_raw(&summary)))),
                };
                match self.sessions.get_mut(&id) {
                    Some(session) => session.talk.output.reply(token, answer, cx.clients),
                    None => cx.clients.reply(token, answer),
                }
            }
            (StoreCall::List(token, ..), _) => {
                let message = "cannot list the sessions: the disk does not respond";
                cx.clients
                    .reply(token, Err(Error::new(ErrorKind::Storage, message)));
            }
            (StoreCall::Claim(id), _) => {
                self.claim_not_searched(&id, &disk_timeout(), cx);
            }
        }
    }

    /// Returns `true` if a turn of the session fails whose sync has failed.
    fn needs_sync(&self, id: &str, error: &Error) -> bool {
        let session = self.sessions.get(id);
        session.is_none_or(|session| session.talk.output.log().needs_sync(error))
    }

    /// Returns the deadlines of the calls that wait for the store.
    pub(super) fn store_limits(&self) -> impl Iterator<Item = Instant> {
        let waits = self.shared.pending_store_replies.values();
        waits.filter_map(|wait| wait.until)
    }

    /// Answers the calls that have reached their time limit for the store.
    pub(super) fn time_out_store(&mut self, cx: &mut HubCx<'_>) {
        let is_due = |wait: &PendingStoreReply| wait.until.is_some_and(|at| at <= cx.now);
        let waits = self.shared.pending_store_replies.iter();
        let due = waits.filter(|(_, wait)| is_due(wait));
        let due: Vec<u64> = due.map(|(ticket, _)| *ticket).collect();
        for ticket in due {
            if let Some(wait) = self.shared.pending_store_replies.remove(&ticket) {
                self.synced(wait, Err(disk_timeout()), cx);
            }
        }
        self.finish_if_done(cx.clients);
    }
}
