//! News for the loop that must not wait for a place in a queue: handles that were dropped, and chunks that
//! were read.

use acpipe_core::client::ClientId;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// A dropped handle.
#[derive(Debug)]
pub enum Departure {
    /// The last handle of a client.
    Client(ClientId),
    /// A turn that had not ended, by its id.
    Turn(String),
}

/// Wakes the loop. The number of departures is bounded by the number of handles.
#[derive(Debug, Default)]
pub struct Wake {
    departures: Mutex<Vec<Departure>>,
    notify: Notify,
}

impl Wake {
    /// Reports a dropped handle.
    pub fn note_departure(&self, departure: Departure) {
        let departures = self.departures.lock();
        departures
            .unwrap_or_else(PoisonError::into_inner)
            .push(departure);
        self.notify.notify_one();
    }

    /// Reports that a client has room again.
    pub fn note_room(&self) {
        self.notify.notify_one();
    }

    /// Waits for news. Cancel safe.
    pub async fn news(&self) {
        self.notify.notified().await;
    }

    /// Takes the departures since the last call.
    pub fn departures(&self) -> Vec<Departure> {
        let departures = self.departures.lock();
        std::mem::take(&mut departures.unwrap_or_else(PoisonError::into_inner))
    }
}
