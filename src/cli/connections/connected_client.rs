//! One connected client.

use super::face::Face;
use super::setup::ClientAccess;
use acpipe_host::{ClientAction, ClientInput, Pressure};

/// One connected client: its face, and what the connection may do.
pub struct ConnectedClient {
    pub(super) face: Face,
    pressure: Pressure,
    /// Permissions of the client.
    pub(super) access: ClientAccess,
    /// `true` if the client is in the list of clients with output.
    pub(super) is_listed: bool,
    /// `true` if the connection is to be closed after its output.
    pub(super) is_leaving: bool,
}

impl ConnectedClient {
    pub(super) fn new(face: Face, access: ClientAccess) -> Self {
        Self {
            face,
            pressure: Pressure::None,
            access,
            is_listed: false,
            is_leaving: false,
        }
    }

    /// Handles a message of the client.
    pub(super) fn input(&mut self, input: ClientInput) {
        self.update_pressure();
        self.face.input(input);
    }

    /// Takes the next action that the client requests.
    pub(super) fn next_action(&mut self) -> Option<ClientAction> {
        self.face.next_action()
    }

    /// Adapts to what the client has read.
    pub(super) fn update_pressure(&mut self) {
        let pressure = self.face.pressure();
        if pressure != self.pressure {
            self.pressure = pressure;
            self.face.set_backpressure(pressure);
        }
    }

    /// Moves the output to the queue of the connection. Returns `false` if the client does not take it.
    pub(super) fn deliver(&mut self) -> bool {
        let is_open = self.face.deliver();
        self.update_pressure();
        is_open
    }
}
