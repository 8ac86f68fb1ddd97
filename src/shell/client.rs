//! What the loop needs of a client's connection.

use super::input::ClientInput;
use super::output::Pressure;
use super::signals::Interrupt;
use crate::core::ask::{AskId, ClientAnswer};
use crate::core::client::{Command, Token};
use crate::core::client_sink::ClientSink;
use std::time::Duration;

/// The connection of a client: takes its messages, and formats what it receives.
pub trait ClientConnection: ClientSink {
    /// Takes what came on stdin.
    fn input(&mut self, input: ClientInput);
    /// A signal asked for the end; `first` unless there was one before.
    fn interrupted(&mut self, first: bool, signal: Interrupt);
    /// Nothing can be written any more; `failure` unless the reader left by itself.
    fn left(&mut self, failure: Option<std::io::Error>);
    /// How long acpipe, when it is ending, waits for a client that does not read; `None` for ever.
    fn patience(&self) -> Option<Duration>;
    /// The next action that the client requests.
    fn next_action(&mut self) -> Option<ClientAction>;
    /// So much waits to be written, and does not get away.
    fn press(&mut self, _pressure: Pressure) {}
    /// All that followed from what happened is done; `written` if stdout has all of it.
    fn settled(&mut self, _written: bool) {}
    /// Appends what is to be written to stdout.
    fn take_output(&mut self, buffer: &mut Vec<u8>);
}

/// An action that a client requests of the loop.
#[derive(Debug)]
pub enum ClientAction {
    /// A command for the hub.
    Command(Token, Command),
    /// An answer to a request of acpipe.
    Answer(AskId, ClientAnswer),
    /// An orderly shutdown.
    End,
    /// A shutdown without delay.
    Hurry,
}
