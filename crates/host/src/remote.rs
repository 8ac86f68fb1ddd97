//! The loop of a client whose hub is in another process, at the other end of a socket.

use super::client::{ClientAction, ClientConnection};
use super::output::ClientStdout;
use super::signals::Signals;
use acpipe_core::client::ClientId;
use acpipe_core::client_sink::ClientSink;
use acpipe_json::frame::{ClientFrame, ClientFrames};
use acpipe_model::error::Error;
use bytes::BytesMut;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;

/// Maximum time in which the last messages to the hub are written when the client leaves.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Protocol between a client and its hub in another process.
pub trait RemoteHub {
    /// Appends the messages to the hub for an action of the client. A request that cannot be sent is answered at
    /// once.
    fn send(&mut self, action: ClientAction, out: &mut Vec<u8>, client: &mut dyn ClientSink);
    /// Handles a message of the hub.
    fn receive(&mut self, message: &[u8], client: &mut dyn ClientSink);
    /// Handles the end of the connection: answers all open calls. Returns the error for the client.
    fn lost(&mut self, client: &mut dyn ClientSink) -> Error;
}

/// Runs a client over a connection until the client ends. The end of the client does not end the hub.
///
/// # Errors
/// Threads or signal handlers could not be set up.
pub async fn drive_remote<C>(
    stream: UnixStream,
    hub: &mut impl RemoteHub,
    client: &mut C,
    mut input: Option<mpsc::Receiver<C::Input>>,
) -> io::Result<()>
where
    C: ClientConnection + ClientSink,
{
    let mut signals = Signals::new()?;
    let mut output = ClientStdout::new()?;
    let (mut read, mut write) = stream.into_split();
    let (mut frames, mut incoming) = (ClientFrames::new(usize::MAX), BytesMut::new());
    let mut outgoing = BytesMut::new();
    let (mut is_open, mut is_leaving, mut interrupts) = (true, false, 0);
    loop {
        is_leaving |= settle(hub, client, &mut output, &mut outgoing, is_leaving);
        if is_leaving && !output.is_pending() {
            break;
        }
        let wait = output.wait(is_leaving);
        let stalled = wait.and_then(|wait| client.drops_output_at(wait));
        let reads = is_open && !is_leaving && !output.is_full() && !client.is_full();
        tokio::select! {
            count = read.read_buf(&mut incoming), if reads => {
                if matches!(count, Ok(1..)) {
                    // The decoder itself never fails.
                    while let Ok(Some(frame)) = frames.decode(&mut incoming) {
                        if let ClientFrame::Message(message) = frame {
                            hub.receive(&message, client);
                        }
                    }
                } else {
                    is_open = false;
                    let why = hub.lost(client);
                    client.refuse(ClientId::FIRST, why);
                }
            }
            written = write.write_buf(&mut outgoing), if is_open && !outgoing.is_empty() => {
                if written.is_err() {
                    // The end of the connection is reported by the other direction.
                    outgoing.clear();
                }
            }
            next = next_input(&mut input) => {
                if let Some(next) = next {
                    client.input(next);
                } else {
                    input = None;
                    client.input_ended();
                }
            }
            () = output.progress() => {}
            signal = signals.next() => {
                interrupts += 1;
                client.interrupted(interrupts == 1, signal);
            }
            () = until(stalled) => {
                output.give_up();
                client.output_dropped();
            }
        }
    }
    // A daemon that does not read must not keep its client.
    let _ = tokio::time::timeout(LAST_MESSAGES, write.write_all_buf(&mut outgoing)).await;
    output.result()
}

/// Performs everything that follows from an event, and writes the output. Returns `true` if the client ends.
fn settle<C>(
    hub: &mut impl RemoteHub,
    client: &mut C,
    output: &mut ClientStdout,
    outgoing: &mut BytesMut,
    mut is_leaving: bool,
) -> bool
where
    C: ClientConnection + ClientSink,
{
    loop {
        while let Some(action) = client.next_action() {
            if matches!(action, ClientAction::End | ClientAction::Hurry) {
                is_leaving = true;
            } else {
                let mut messages = Vec::new();
                hub.send(action, &mut messages, client);
                outgoing.extend_from_slice(&messages);
            }
        }
        client.take_output(&mut output.buffer);
        output.flush();
        if output.is_closed() && !is_leaving {
            client.left();
            is_leaving = true;
            continue;
        }
        client.on_settled(!output.is_pending());
        return is_leaving;
    }
}

async fn next_input<I>(input: &mut Option<mpsc::Receiver<I>>) -> Option<I> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
