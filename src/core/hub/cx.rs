//! Context of the hub while it handles one event.

use crate::core::client_sink::ClientSinks;
use std::time::Instant;

/// Context of one event.
pub struct HubCx<'a> {
    /// Running time of the event.
    pub now: Instant,
    /// Sinks of the clients, which receive replies and notifications.
    pub clients: &'a mut dyn ClientSinks,
}

impl<'a> HubCx<'a> {
    /// Creates the context of an event.
    pub fn new(now: Instant, clients: &'a mut dyn ClientSinks) -> Self {
        Self { now, clients }
    }
}
