//! Clients that connect over the daemon's socket.

use super::hello::{DaemonInfo, Hello, LONGEST_HELLO, Purpose, SOCKET_VERSION, Welcome};
use super::remote_settings::setup_of;
use crate::cli::connections::{ClientAccess, ClientFace, ConnectionSetup, NewConnection, Via};
use acpipe_host::{ClientChannel, ConnectionInput, ConnectionOutput, Connector, DaemonListener};
use acpipe_json::frame::ClientFrames;
use acpipe_json::read_bytes;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use anyhow::Context as _;
use bytes::BytesMut;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::codec::Decoder as _;
use tracing::{debug, warn};

/// Maximum time until a client has sent its first line.
const HELLO_LIMIT: Duration = Duration::from_secs(10);

/// Pause after a connection could not be accepted: usually the limit of open files is reached.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// State that the tasks of all socket clients share.
pub struct SocketClients {
    pub connector: Connector<NewConnection>,
    /// Secrets of the clients' command lines, which must not be logged.
    pub secrets: Secrets,
    /// Maximum length of a message in bytes.
    pub max_line: usize,
    pub info: DaemonInfo,
}

/// Accepts clients until the task is aborted.
pub async fn accept_clients(
    listener: DaemonListener,
    clients: Arc<SocketClients>,
    running: mpsc::Sender<Infallible>,
) {
    loop {
        match listener.accept().await {
            Ok(stream) => {
                let clients = Arc::clone(&clients);
                let running = running.clone();
                tokio::spawn(async move {
                    let _running = running;
                    if let Err(error) = serve_client(stream, &clients).await {
                        debug!(%error, "connection to a client failed");
                    }
                });
            }
            Err(error) => {
                warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one client until it or the daemon ends the connection.
async fn serve_client(mut stream: UnixStream, clients: &SocketClients) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    let hello = tokio::time::timeout(HELLO_LIMIT, read_hello(&mut stream, &mut buffer));
    let hello = hello.await.unwrap_or_else(|_| {
        let message = "the client sent no first line in time";
        Err(Error::new(ErrorKind::Timeout, message).into())
    });
    let opened = match hello {
        Ok(hello) => open(hello, clients).await,
        Err(error) => Err(error),
    };
    let ClientChannel { input, output } = match opened {
        Ok(connection) => connection,
        Err(error) => return refuse(&mut stream, &error, &clients.info).await,
    };
    let welcome = Welcome::Accepted(clients.info.clone());
    write_line(&mut stream, &welcome).await?;
    let (read, write) = stream.into_split();
    // Not awaited: the daemon's end waits for the output of its clients only.
    let reading = tokio::spawn(read_messages(read, buffer, input, clients.max_line));
    let end = write_output(write, output).await?;
    if end == OutputEnd::Abandoned {
        // Closes the socket: the client would otherwise keep a place and send without effect.
        reading.abort();
    }
    Ok(())
}

/// Reads the first line. What follows it stays in the buffer.
async fn read_hello(stream: &mut UnixStream, buffer: &mut BytesMut) -> anyhow::Result<Hello> {
    loop {
        if let Some(end) = memchr::memchr(b'\n', buffer) {
            let line = buffer.split_to(end + 1);
            return read_bytes(&line).map_err(|error| {
                let message = format!("the first line of the client is not valid: {error}");
                Error::new(ErrorKind::InvalidRequest, message).into()
            });
        }
        if buffer.len() > LONGEST_HELLO {
            let message = "the first line of the client is too long";
            return Err(Error::new(ErrorKind::InvalidRequest, message).into());
        }
        if stream.read_buf(buffer).await? == 0 {
            let message = "the client sent no first line";
            return Err(Error::new(ErrorKind::InvalidRequest, message).into());
        }
    }
}

/// Opens the connection of a client to the loop.
async fn open(
    hello: Hello,
    clients: &SocketClients,
) -> anyhow::Result<ClientChannel<NewConnection>> {
    if hello.socket_version != SOCKET_VERSION {
        let message = format!(
            "the daemon is acpipe {}, and this is acpipe {}: they cannot work together; run `acpipe daemon restart`",
            clients.info.acpipe, hello.acpipe
        );
        return Err(Error::new(ErrorKind::InvalidRequest, message).into());
    }
    let setup = match hello.purpose {
        Purpose::Control => ConnectionSetup {
            face: ClientFace::Neutral,
            access: ClientAccess::Control,
            via: Via::Socket,
            settings: None,
        },
        Purpose::Client => {
            let secrets = clients.secrets.clone();
            // It reads files.
            let setup = tokio::task::spawn_blocking(move || setup_of(&hello, &secrets));
            setup.await.context("cannot read the settings")??
        }
    };
    let opened = clients
        .connector
        .open(|output| NewConnection::Written(setup, output))
        .await;
    opened.map_err(|error| Error::new(ErrorKind::Overloaded, error.to_string()).into())
}

async fn refuse(
    stream: &mut UnixStream,
    error: &anyhow::Error,
    info: &DaemonInfo,
) -> io::Result<()> {
    debug!(error = format!("{error:#}"), "client refused");
    let refused = Welcome::Refused {
        message: format!("{error:#}"),
        exit_code: crate::cli::exit_code(error),
        acpipe: info.acpipe.clone(),
    };
    write_line(stream, &refused).await
}

async fn write_line(stream: &mut UnixStream, line: &Welcome) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    stream.write_all(&text).await
}

/// Passes the messages of a client to the loop, until the client closes the connection.
async fn read_messages(
    mut read: OwnedReadHalf,
    mut buffer: BytesMut,
    input: ConnectionInput<NewConnection>,
    max_line: usize,
) -> io::Result<()> {
    let mut frames = ClientFrames::new(max_line);
    loop {
        while let Some(frame) = frames.decode(&mut buffer)? {
            // After the end of the loop, or of this client's output, nothing is passed on.
            let _ = input.send(frames.framing(), frame).await;
        }
        let read = read.read_buf(&mut buffer).await;
        if !matches!(read, Ok(1..)) {
            while let Some(frame) = frames.decode_eof(&mut buffer)? {
                let _ = input.send(frames.framing(), frame).await;
            }
            input.close().await;
            return read.map(drop);
        }
    }
}

/// End of the output of a client.
#[derive(Debug, PartialEq, Eq)]
enum OutputEnd {
    /// Everything is sent.
    Complete,
    /// The client does not read.
    Abandoned,
}

/// Sends the output to a client, then ends the connection.
async fn write_output(
    mut write: OwnedWriteHalf,
    mut output: ConnectionOutput,
) -> io::Result<OutputEnd> {
    while let Some(bytes) = output.next().await {
        tokio::select! {
            written = write.write_all(&bytes) => written?,
            () = output.abandoned() => return Ok(OutputEnd::Abandoned),
        }
    }
    write.shutdown().await?;
    Ok(OutputEnd::Complete)
}
