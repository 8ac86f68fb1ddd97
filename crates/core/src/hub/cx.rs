//! Context of the hub while it handles one event.

use crate::client_sink::ClientSinks;
use std::time::Instant;

/// Context of one event.
pub struct HubCx<'a> {
    pub now: Instant,
    pub clients: &'a mut dyn ClientSinks,
}

impl<'a> HubCx<'a> {
    pub fn new(now: Instant, clients: &'a mut dyn ClientSinks) -> Self {
        Self { now, clients }
    }
}
