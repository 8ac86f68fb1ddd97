//! Interface between the loop and a client's connection.

use super::input::ClientInput;
use super::output::Pressure;
use super::signals::Interrupt;
use crate::core::client::{Command, Token};
use crate::core::client_request::{ClientAnswer, ClientRequestId};
use crate::core::client_sink::ClientSink;
use std::time::Duration;

/// Connection of a client: accepts its messages and formats its output.
pub trait ClientConnection: ClientSink {
    /// Handles input of the client.
    fn input(&mut self, input: ClientInput);
    /// Handles a signal that requests the end; `first` if it is the first one.
    fn interrupted(&mut self, first: bool, signal: Interrupt);
    /// Handles the end of the output; `failure` unless the reader closed it.
    fn left(&mut self, failure: Option<std::io::Error>);
    /// Returns the maximum time that the shutdown waits for a client which does not read; `None` for no
    /// limit.
    fn max_read_delay(&self) -> Option<Duration>;
    /// Takes the next action that the client requests.
    fn next_action(&mut self) -> Option<ClientAction>;
    /// Sets the backpressure of the output.
    fn set_backpressure(&mut self, _pressure: Pressure) {}
    /// Called when an event is handled completely; `written` if stdout has all output.
    fn on_settled(&mut self, _written: bool) {}
    /// Appends pending output to the buffer for stdout.
    fn take_output(&mut self, buffer: &mut Vec<u8>);
}

/// Action that a client requests of the loop.
#[derive(Debug)]
pub enum ClientAction {
    /// Command for the hub.
    Command(Token, Command),
    /// Response to a request of acpipe.
    Answer(ClientRequestId, ClientAnswer),
    /// Orderly shutdown.
    End,
    /// Shutdown without delay.
    Hurry,
}
