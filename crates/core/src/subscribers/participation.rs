//! Part that a client takes in a session.

use acpipe_protocol::wire::{OnDisconnect, Role};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Participation {
    pub role: Role,
    pub on_disconnect: OnDisconnect,
}

impl Participation {
    /// Returns `true` if the client's work goes on after its departure.
    #[must_use]
    pub fn continues(self) -> bool {
        self.role == Role::Controller && self.on_disconnect == OnDisconnect::Continue
    }
}
