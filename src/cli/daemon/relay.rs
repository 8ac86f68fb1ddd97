//! A client of the daemon on stdin and stdout: passes the messages on, and continues with another daemon when the one it
//! is connected to ends.

mod face;
mod methods;
mod relayed_client;
mod stdio;

use super::command_line::ClientCommand;
use super::connect::{DaemonConnection, Refused, connect_client, connect_running};
use super::hello::SessionOrigin;
use crate::cli::print_note;
use acpipe_json::frame::{ClientFrame, ClientFrames};
use acpipe_model::error::{Error, ErrorKind};
use bytes::BytesMut;
pub use face::RelayFace;
use relayed_client::RelayedClient;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;
use stdio::{ClientPipes, ClientPipesEvent};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_util::codec::Decoder as _;

/// Size of the output in one direction from which nothing more is read in the other, in bytes.
const FULL: usize = 1 << 20;

/// Maximum length of a message in bytes. The daemon has a lower limit for its clients.
const LONGEST_MESSAGE: usize = 1 << 30;

/// Time in which a restart may start the next daemon, before the client starts one.
const START_AFTER: Duration = Duration::from_secs(2);

/// Time after which calls fail that wait for a daemon which cannot be reached.
const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// Pauses between two attempts to connect, soon after the end of the daemon and later.
const RETRY: Duration = Duration::from_millis(50);
const IDLE_RETRY: Duration = Duration::from_millis(500);

type LinkOpening = Pin<Box<dyn Future<Output = anyhow::Result<Option<DaemonConnection>>> + Send>>;

/// Connects stdin and stdout to the daemon, with this command line and its files. Returns the exit code after the end of stdin, or
/// after the client's `shutdown`.
///
/// # Errors
/// The daemon cannot be reached at first, refuses the client, or stdout cannot be written.
pub async fn relay(
    state_dir: &Path,
    command: ClientCommand,
    face: RelayFace,
) -> anyhow::Result<u8> {
    let connection = connect_client(state_dir, command.clone(), SessionOrigin::default()).await?;
    let mut relay = Relay {
        client: RelayedClient::new(face),
        pipes: ClientPipes::start(LONGEST_MESSAGE)?,
        link: Some(DaemonLink::new(connection.stream)),
        daemon: DaemonAddress {
            state_dir: state_dir.to_owned(),
            cwd: crate::cli::working_directory()?
                .to_string_lossy()
                .into_owned(),
            command,
        },
        outgoing: BytesMut::new(),
        output: Vec::new(),
        reconnection: None,
    };
    relay.run().await?;
    Ok(0)
}

/// Daemon to connect to, with what the client gives of itself.
struct DaemonAddress {
    state_dir: PathBuf,
    cwd: String,
    command: ClientCommand,
}

impl DaemonAddress {
    /// Begins to connect. `starts` the daemon if it does not run.
    fn open(&self, starts: bool) -> LinkOpening {
        let (state, cwd, command) = (
            self.state_dir.clone(),
            self.cwd.clone(),
            self.command.clone(),
        );
        Box::pin(async move {
            if starts {
                let connection = connect_client(&state, command, SessionOrigin::default()).await;
                return connection.map(Some);
            }
            connect_running(&state, &cwd, || Ok(command)).await
        })
    }
}

/// Attempts to connect again.
struct RelayReconnection {
    since: Instant,
    next: Instant,
    opening: Option<LinkOpening>,
    /// `true` after a note says why the daemon cannot be reached.
    is_noted: bool,
}

/// An open connection to the daemon.
struct DaemonLink {
    stream: UnixStream,
    frames: ClientFrames,
    incoming: BytesMut,
    is_input_ended: bool,
}

impl DaemonLink {
    fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            frames: ClientFrames::new(LONGEST_MESSAGE),
            incoming: BytesMut::new(),
            is_input_ended: false,
        }
    }
}

/// The loop between the client and the daemon.
struct Relay {
    client: RelayedClient,
    pipes: ClientPipes,
    link: Option<DaemonLink>,
    daemon: DaemonAddress,
    /// Messages for the daemon.
    outgoing: BytesMut,
    /// Messages for the client.
    output: Vec<u8>,
    /// `None` while connected.
    reconnection: Option<RelayReconnection>,
}

enum RelayEvent {
    Client(ClientPipesEvent),
    Received(std::io::Result<usize>),
    Written(std::io::Result<usize>),
    Opened(anyhow::Result<Option<DaemonConnection>>),
    Due,
}

impl Relay {
    async fn run(&mut self) -> anyhow::Result<()> {
        loop {
            let client = &self.client;
            let is_over = self.pipes.is_ended() || client.is_leaving() || !client.can_continue();
            if self.link.is_none() && is_over {
                self.note_end();
                self.pipes.finish(std::mem::take(&mut self.output)).await?;
                return Ok(());
            }
            if let Some(link) = &mut self.link
                && self.pipes.is_ended()
                && self.outgoing.is_empty()
                && !link.is_input_ended
            {
                link.is_input_ended = true;
                // The end of the daemon is found by reading.
                let _ = link.stream.shutdown().await;
            }
            match self.next_event().await {
                RelayEvent::Client(event) => self.client_event(event)?,
                RelayEvent::Received(Ok(1..)) => self.received(),
                RelayEvent::Received(_) => self.lost(),
                RelayEvent::Written(written) => {
                    if written.is_err() {
                        self.outgoing.clear();
                    }
                }
                RelayEvent::Opened(opened) => self.opened(opened),
                RelayEvent::Due => self.try_again(),
            }
        }
    }

    async fn next_event(&mut self) -> RelayEvent {
        let reads_client = self.outgoing.len() < FULL && self.client.has_room();
        let reads_daemon = self.output.len() < FULL;
        let (link, outgoing) = (&mut self.link, &mut self.outgoing);
        let linked = async {
            let Some(link) = link else {
                return std::future::pending().await;
            };
            let (mut read, mut write) = link.stream.split();
            tokio::select! {
                read = read.read_buf(&mut link.incoming), if reads_daemon => RelayEvent::Received(read),
                written = write.write_buf(outgoing), if !outgoing.is_empty() => RelayEvent::Written(written),
                else => std::future::pending().await,
            }
        };
        let reconnection = &mut self.reconnection;
        let reconnected = async {
            let Some(reconnection) = reconnection else {
                return std::future::pending().await;
            };
            if let Some(opening) = &mut reconnection.opening {
                let opened = opening.await;
                reconnection.opening = None;
                return RelayEvent::Opened(opened);
            }
            tokio::time::sleep_until(reconnection.next).await;
            RelayEvent::Due
        };
        tokio::select! {
            event = self.pipes.next(reads_client, &mut self.output) => RelayEvent::Client(event),
            event = linked => event,
            event = reconnected => event,
        }
    }

    fn client_event(&mut self, event: ClientPipesEvent) -> anyhow::Result<()> {
        match event {
            ClientPipesEvent::Written | ClientPipesEvent::Ended => {}
            ClientPipesEvent::Closed(error) => return Err(error.into()),
            ClientPipesEvent::Frame(framing, frame) => {
                self.client.framing = framing;
                let mut messages = Vec::new();
                match frame {
                    ClientFrame::Message(message) => {
                        let is_connected = self.link.is_some();
                        self.client.sent(&message, is_connected, &mut messages);
                    }
                    ClientFrame::TooLong(_) | ClientFrame::BadHeader(_) => {
                        self.client.refuse_unreadable(&mut self.output);
                    }
                }
                self.outgoing.extend_from_slice(&messages);
                if self.link.is_none() {
                    self.hurry();
                }
            }
        }
        Ok(())
    }

    fn received(&mut self) {
        let Some(link) = &mut self.link else { return };
        // The decoder itself never fails.
        while let Ok(Some(frame)) = link.frames.decode(&mut link.incoming) {
            if let ClientFrame::Message(message) = frame {
                let mut own = Vec::new();
                self.client.received(&message, &mut self.output, &mut own);
                self.outgoing.extend_from_slice(&own);
            }
        }
        if self.client.refusal().is_some() {
            self.lost();
        }
    }

    /// The connection has ended.
    fn lost(&mut self) {
        self.link = None;
        self.outgoing.clear();
        if self.pipes.is_ended() || self.client.is_leaving() {
            return;
        }
        self.client.lost(&mut self.output);
        let now = Instant::now();
        self.reconnection = Some(RelayReconnection {
            since: now,
            next: now,
            opening: None,
            is_noted: false,
        });
    }

    /// Fails the calls of a client that is not continued, and says why.
    fn note_end(&mut self) {
        if self.pipes.is_ended() || self.client.is_leaving() {
            return;
        }
        let why = match self.client.refusal() {
            Some(error) => format!(
                "the daemon ended, and the next one did not accept what this program set ({error}); start the program again"
            ),
            None => "the daemon ended, and the next one would not know the agent, options, MCP servers or variables that this \
                     program named, or what it set in a batch or without an id; start the program again"
                .to_owned(),
        };
        print_note(&why);
        let error = Error::new(ErrorKind::AgentExited, why);
        self.client.fail_all(&error, &mut self.output);
    }

    /// Connects at once after a message of the client, also if all attempts so far have failed.
    fn hurry(&mut self) {
        if let Some(reconnection) = &mut self.reconnection {
            let now = Instant::now();
            if now > reconnection.since + GIVE_UP_AFTER {
                // A daemon that was started meanwhile is used, otherwise one is started now.
                reconnection.since = now - START_AFTER;
            }
            reconnection.next = reconnection.next.min(now + RETRY);
        }
    }

    fn try_again(&mut self) {
        let is_needed = self.client.waits();
        if let Some(reconnection) = &mut self.reconnection {
            let starts = is_needed && reconnection.since.elapsed() >= START_AFTER;
            reconnection.opening = Some(self.daemon.open(starts));
        }
    }

    fn opened(&mut self, opened: anyhow::Result<Option<DaemonConnection>>) {
        let Some(reconnection) = &mut self.reconnection else {
            return;
        };
        let error = match opened {
            Ok(Some(connection)) => {
                self.link = Some(DaemonLink::new(connection.stream));
                self.reconnection = None;
                let mut messages = Vec::new();
                self.client.restore(&mut messages);
                self.outgoing.extend_from_slice(&messages);
                return;
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let elapsed = reconnection.since.elapsed();
        let is_late = elapsed >= GIVE_UP_AFTER;
        if let Some(error) = error.as_ref().filter(|error| !is_ending(error))
            && !std::mem::replace(&mut reconnection.is_noted, true)
        {
            print_note(&format!(
                "waiting for the daemon: {error:#}; trying again until it can be reached"
            ));
        }
        let is_slow = is_late || reconnection.is_noted;
        reconnection.next = Instant::now() + if is_slow { IDLE_RETRY } else { RETRY };
        // One that is about to end closes the connection: this is no refusal.
        if let Some(error) = error.filter(|error| is_late || error.is::<Refused>()) {
            let message = format!(
                "cannot connect to the daemon again: {error:#}; correct this, and send the call again"
            );
            let why = Error::new(ErrorKind::AgentExited, message);
            self.client.fail_all(&why, &mut self.output);
        }
    }
}

/// Returns `true` if the error is that of a daemon that is about to end, and closes the connection.
fn is_ending(error: &anyhow::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    let error = error.downcast_ref::<std::io::Error>();
    error.is_some_and(|e| matches!(e.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
}
