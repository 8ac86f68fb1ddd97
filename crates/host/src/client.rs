//! Interface between the loop and a client's connection.

use super::output::{OutputWait, Pressure};
use super::signals::Interrupt;
use acpipe_core::client::{ClientId, Command, Token};
use acpipe_core::client_request::{ClientAnswer, ClientRequestId};
use acpipe_core::client_sink::ClientSinks;
use acpipe_core::hub::Settings;
use acpipe_core::metrics::HubMetrics;
use acpipe_model::error::Error;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::warn;

/// Connection of one client or of several: accepts their messages and formats their output.
pub trait ClientConnection: ClientSinks + Send {
    /// Message of a client.
    type Input: Send;

    /// Handles a message of a client.
    fn input(&mut self, input: Self::Input);
    /// Handles the end of the input.
    fn input_ended(&mut self);
    /// Handles a signal that requests the end; `first` if it is the first one.
    fn interrupted(&mut self, first: bool, signal: Interrupt);
    /// Handles the end of the output, from which the loop ends: the reader closed it, or it cannot be written. The loop
    /// reports a failure to its caller.
    fn left(&mut self) {}
    /// Returns the maximum time that the shutdown waits for a client which does not read; `None` for no
    /// limit.
    fn max_read_delay(&self) -> Option<Duration>;
    /// Returns when output that is still not written is dropped; `None` if acpipe waits for its reader.
    fn drops_output_at(&self, wait: OutputWait) -> Option<Instant> {
        let max_read_delay = self.max_read_delay().filter(|_| wait.is_ending)?;
        Some(wait.last_progress + max_read_delay)
    }
    /// Handles that output was dropped, and that nothing more is written.
    fn output_dropped(&mut self) {
        warn!("the client does not read its output; unread output is dropped");
    }
    /// Takes the next action that the client requests.
    fn next_action(&mut self) -> Option<ClientAction>;
    /// Sets the backpressure of the output.
    fn set_backpressure(&mut self, _pressure: Pressure) {}
    /// Sets the number of bytes that may wait for a client that is behind before agents wait, too.
    fn set_window(&mut self, _bytes: usize) {}
    /// Waits until the clients may have room again; `agents_wait` is `true` while an agent waits for that.
    /// Without an own definition of room, the output of the program decides. Cancel safe.
    fn room(&mut self, agents_wait: bool) -> impl Future<Output = ()> + Send {
        async move {
            if !agents_wait {
                std::future::pending::<()>().await;
            }
        }
    }
    /// Disconnects a client: its settings cannot be used, or its hub is gone.
    fn refuse(&mut self, _client: ClientId, _why: Error) {}
    /// Called when an event is handled completely; `written` if stdout has all output.
    fn on_settled(&mut self, _written: bool) {}
    /// Hands over pending output, all of which is in the logs now: to the buffer for stdout, or to the clients
    /// themselves.
    fn take_output(&mut self, buffer: &mut Vec<u8>);
}

/// Action that a client requests of the loop.
#[derive(Debug)]
pub enum ClientAction {
    /// Command for the hub.
    Command(Token, Command),
    /// Response of a client to a request of acpipe.
    Answer(ClientId, ClientRequestId, ClientAnswer),
    /// The client has settings of its own.
    Join(ClientId, Box<Settings>),
    /// Someone outside of the loop wants the metrics of the hub.
    Metrics(oneshot::Sender<HubMetrics>),
    /// The client has left. The others remain.
    Leave(ClientId),
    /// Orderly shutdown.
    End,
    /// Shutdown without delay.
    Hurry,
}

impl ClientAction {
    /// Returns the shutdown that a signal requests: an orderly one by the first signal, one without delay after it.
    #[must_use]
    pub fn of_signal(first: bool) -> Self {
        if first { Self::End } else { Self::Hurry }
    }
}
