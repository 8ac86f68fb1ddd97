//! The loop of a client whose hub is in another process, at the other end of a socket.

use super::client::{ClientAction, ClientConnection};
use super::output::ClientStdout;
use super::signals::Signals;
use acpipe_core::client::ClientId;
use acpipe_core::client_sink::ClientSink;
use acpipe_json::frame::{ClientFrame, ClientFrames};
use acpipe_model::error::Error;
use bytes::{Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;

/// Maximum time in which the last messages to the hub are written when the client leaves.
const LAST_MESSAGES: Duration = Duration::from_secs(1);

/// Another connection to the hub that is being opened.
pub type Reconnection = Pin<Box<dyn Future<Output = Result<UnixStream, Error>> + Send>>;

/// Protocol between a client and its hub in another process.
pub trait RemoteHub {
    /// Appends the messages to the hub for an action of the client. A request that cannot be sent is answered at
    /// once.
    fn send(&mut self, action: ClientAction, out: &mut Vec<u8>, client: &mut dyn ClientSink);
    /// Handles a message of the hub.
    fn receive(&mut self, message: &[u8], client: &mut dyn ClientSink);
    /// Returns the error for a client whose connection has ended.
    fn lost(&self) -> Error;
    /// Answers all open calls with an error, and withdraws the open requests of the hub.
    fn fail(&mut self, why: &Error, client: &mut dyn ClientSink);
    /// Opens another connection, for a client that goes on after the end of one; `None` if it does not.
    fn reconnect(&mut self) -> Option<Reconnection>;
}

/// Runs a client over a connection until the client ends. The end of the client does not end the hub. After the end of the
/// connection, the next message of the client opens another one.
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
    let (mut link, mut opening) = (Some(HubLink::new(stream)), None);
    let mut outgoing = BytesMut::new();
    let (mut is_leaving, mut interrupts) = (false, 0);
    loop {
        is_leaving |= settle(hub, client, &mut output, &mut outgoing, is_leaving);
        if link.is_none() && opening.is_none() && !outgoing.is_empty() && !is_leaving {
            opening = hub.reconnect();
            if opening.is_none() {
                outgoing.clear();
                let why = hub.lost();
                hub.fail(&why, client);
                continue;
            }
        }
        if is_leaving && !output.is_pending() {
            break;
        }
        let wait = output.wait(is_leaving);
        let stalled = wait.and_then(|wait| client.drops_output_at(wait));
        let reads = !is_leaving && !output.is_full() && !client.is_full();
        tokio::select! {
            event = next_event(link.as_mut(), reads, &mut outgoing) => match event {
                HubLinkEvent::Received => {
                    for message in link.iter_mut().flat_map(HubLink::messages) {
                        hub.receive(&message, client);
                    }
                }
                HubLinkEvent::Written => {}
                HubLinkEvent::Ended => {
                    link = None;
                    outgoing.clear();
                    let why = hub.lost();
                    client.refuse(ClientId::FIRST, why.clone());
                    hub.fail(&why, client);
                }
            },
            opened = next_link(&mut opening) => {
                opening = None;
                match opened {
                    Ok(stream) => link = Some(HubLink::new(stream)),
                    Err(error) => {
                        outgoing.clear();
                        hub.fail(&error, client);
                    }
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
    if let Some(link) = &mut link {
        // A daemon that does not read must not keep its client.
        let last = link.write.write_all_buf(&mut outgoing);
        let _ = tokio::time::timeout(LAST_MESSAGES, last).await;
    }
    output.result()
}

/// An open connection to the hub.
struct HubLink {
    read: OwnedReadHalf,
    write: OwnedWriteHalf,
    frames: ClientFrames,
    incoming: BytesMut,
}

impl HubLink {
    fn new(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            read,
            write,
            frames: ClientFrames::new(usize::MAX),
            incoming: BytesMut::new(),
        }
    }

    /// Takes the complete messages out of what was received.
    fn messages(&mut self) -> Vec<Bytes> {
        let mut messages = Vec::new();
        // The decoder itself never fails.
        while let Ok(Some(frame)) = self.frames.decode(&mut self.incoming) {
            if let ClientFrame::Message(message) = frame {
                messages.push(message);
            }
        }
        messages
    }
}

enum HubLinkEvent {
    Received,
    Written,
    Ended,
}

/// Waits until the connection has read or written something. Cancel safe.
async fn next_event(
    link: Option<&mut HubLink>,
    reads: bool,
    outgoing: &mut BytesMut,
) -> HubLinkEvent {
    let Some(link) = link else {
        return std::future::pending().await;
    };
    tokio::select! {
        count = link.read.read_buf(&mut link.incoming), if reads => {
            if matches!(count, Ok(1..)) { HubLinkEvent::Received } else { HubLinkEvent::Ended }
        }
        written = link.write.write_buf(outgoing), if !outgoing.is_empty() => {
            if written.is_err() {
                // The end of the connection is reported by the other direction.
                outgoing.clear();
            }
            HubLinkEvent::Written
        }
        else => std::future::pending().await,
    }
}

async fn next_link(opening: &mut Option<Reconnection>) -> Result<UnixStream, Error> {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
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
