//! Storage: sessions' logs are written before the client sees what is in them, and the store's answers are awaited.

use super::Hub;
use crate::core::client::{Outlet, Reply};
use crate::core::shared::StoreWait;
use crate::core::store::StoreEvent;
use crate::proto::json::{to_raw, value};
use std::time::Instant;
use tracing::warn;

impl Hub {
    /// Writes what sessions have logged. What a client saw must be in the log: this comes before it gets anything.
    pub fn commit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        if !outlet.is_behind() || outlet.is_full() {
            self.mending(now, outlet, super::Hub::number_unsent);
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
            self.with(&id, now, outlet, |session, cx| {
                session.not_stored(error, cx);
            });
        }
    }

    /// Numbers what waits for a client that is behind: it has room, or what comes next must come after it.
    pub(super) fn number_unsent(&mut self, outlet: &mut impl Outlet) {
        if outlet.unsent() > 0 {
            self.sessions
                .for_each_awake(|session| session.number_unsent(outlet));
        }
    }

    /// Takes an answer of the store.
    pub fn stored(&mut self, event: StoreEvent, now: Instant, outlet: &mut impl Outlet) {
        match event {
            StoreEvent::Synced { ticket, outcome } => {
                if let Err(error) = &outcome {
                    warn!(%error, "what was written may be lost if the machine crashes");
                }
                let wait = self.shared.store_waits.remove(&ticket);
                if let Some(StoreWait::Turn(token, summary)) = wait {
                    let answer = match outcome {
                        Ok(()) => Ok(Reply::Turn(summary)),
                        Err(error) => Err(error.with("summary", value(&to_raw(&summary)))),
                    };
                    outlet.reply(token, answer);
                }
            }
            StoreEvent::Listed { ticket, outcome } => {
                let wait = self.shared.store_waits.remove(&ticket);
                if let Some(StoreWait::List(token, params)) = wait {
                    match outcome {
                        Ok(cards) => self.list_with(token, params, cards, now, outlet),
                        Err(error) => outlet.reply(token, Err(error)),
                    }
                }
            }
        }
        self.finish_if_done(outlet);
    }
}
