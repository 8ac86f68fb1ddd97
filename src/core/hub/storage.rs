//! Storage: sessions' logs are written before the client sees what is in them, and the store's answers are awaited.

use super::Hub;
use crate::core::client::Reply;
use crate::core::client_sink::{ClientSink as _, ClientSinks};
use crate::core::shared::StoreWait;
use crate::core::store::StoreEvent;
use crate::proto::json::{to_raw, value};
use std::time::Instant;
use tracing::warn;

impl Hub {
    /// Writes what sessions have logged. What a client saw must be in the log: this comes before it gets anything.
    pub fn commit(&mut self, now: Instant, clients: &mut impl ClientSinks) {
        if self.has_unsent(clients) {
            self.mending(now, clients, |hub, clients| {
                hub.sessions
                    .for_each_awake(|session| session.number_unsent_if_read(clients));
            });
        }
        let mut failed = Vec::new();
        self.sessions.for_each_awake(|session| {
            if session.log.is_dirty()
                && let Err(error) = session.log.commit()
            {
                failed.push((session.id.clone(), error));
            }
        });
        for (id, error) in failed {
            self.with(&id, now, clients, |session, cx| {
                session.not_stored(error, cx);
            });
        }
    }

    /// Whether something waits for clients that are behind.
    fn has_unsent(&self, clients: &mut impl ClientSinks) -> bool {
        let mut all = self.shared.clients.ids();
        all.any(|client| clients.sink(client).is_some_and(|sink| sink.unsent() > 0))
    }

    /// Numbers what waits for clients that are behind: what comes next must come after it.
    pub(super) fn number_unsent(&mut self, clients: &mut impl ClientSinks) {
        if self.has_unsent(clients) {
            self.sessions
                .for_each_awake(|session| session.number_unsent(clients));
        }
    }

    /// Takes an answer of the store.
    pub fn stored(&mut self, event: StoreEvent, now: Instant, clients: &mut impl ClientSinks) {
        match event {
            StoreEvent::Synced { ticket, outcome } => {
                if let Err(error) = &outcome {
                    warn!(%error, "what was written may be lost if the machine crashes");
                }
                let wait = self.shared.store_waits.remove(&ticket);
                if let Some(StoreWait::Turn(session, token, summary)) = wait {
                    let answer = match outcome {
                        Ok(()) => Ok(Reply::Turn(summary)),
                        Err(error) => Err(error.with("summary", value(&to_raw(&summary)))),
                    };
                    match self.sessions.get_mut(&session) {
                        Some(session) => session.reply(token, answer, clients),
                        None => clients.reply(token, answer),
                    }
                }
            }
            StoreEvent::Listed { ticket, outcome } => {
                let wait = self.shared.store_waits.remove(&ticket);
                if let Some(StoreWait::List(token, params)) = wait {
                    match outcome {
                        Ok(cards) => self.list_with(token, params, cards, now, clients),
                        Err(error) => clients.reply(token, Err(error)),
                    }
                }
            }
        }
        self.finish_if_done(clients);
    }
}
