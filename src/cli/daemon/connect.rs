//! Connections to the daemon, which is started if it does not run.

use super::command_line::ClientCommand;
use super::hello::{DaemonInfo, Hello, Purpose, SOCKET_VERSION, SessionOrigin, Welcome};
use super::start::{begin_start, start};
use super::start_options::StartVariables;
use crate::cli::print_note;
use acpipe_host::DaemonPlace;
use acpipe_json::read_bytes;
use acpipe_model::error::{Error, ErrorKind};
use anyhow::Context as _;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Open connection to the daemon. What follows the first lines has not been read.
#[derive(Debug)]
pub struct DaemonConnection {
    pub stream: UnixStream,
    pub info: DaemonInfo,
}

/// A refusal of the daemon.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    message: String,
    pub exit_code: u8,
}

/// Connects a client, and starts the daemon of this state directory if it does not run.
///
/// # Errors
/// The daemon cannot be started, or refuses the client.
pub async fn connect_client(
    state_dir: &Path,
    command: ClientCommand,
    session: SessionOrigin,
) -> anyhow::Result<DaemonConnection> {
    let place = DaemonPlace::of(state_dir);
    let cwd = crate::cli::working_directory()?;
    let hello = client_hello(cwd.to_string_lossy().into_owned(), command, session);
    if let Some(greeted) = greet_running(&place, &hello).await {
        return greeted;
    }
    let begun = begin_start(state_dir).await?;
    // Another process may have started it.
    if let Some(greeted) = greet_running(&place, &hello).await {
        return greeted;
    }
    let home = dirs::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    // The variables of the shell that happens to start the daemon must not hold for its later clients.
    start(&begun, state_dir, &home, &[], &StartVariables::default())?;
    let stream = connect_stream(&place).await?;
    let stream = stream.with_context(|| {
        let log = place.log().display().to_string();
        format!("the daemon exited after its start; its log is {log}")
    })?;
    greet(stream, &hello).await
}

/// Connects to a running daemon. Returns `None` if none runs, or if it ends before it answers.
async fn greet_running(
    place: &DaemonPlace,
    hello: &Hello,
) -> Option<anyhow::Result<DaemonConnection>> {
    let stream = match connect_stream(place).await {
        Ok(stream) => stream?,
        Err(error) => return Some(Err(error)),
    };
    match greet(stream, hello).await {
        Err(error) if error.is::<std::io::Error>() => None,
        greeted => Some(greeted),
    }
}

/// Connects a client with the settings of a directory. Returns `None` if no daemon runs.
///
/// # Errors
/// The daemon cannot be reached, the command line of the client is not valid, or the daemon refuses the client.
pub async fn connect_running(
    state_dir: &Path,
    cwd: &str,
    command: impl FnOnce() -> anyhow::Result<ClientCommand>,
) -> anyhow::Result<Option<DaemonConnection>> {
    let Some(stream) = connect_stream(&DaemonPlace::of(state_dir)).await? else {
        return Ok(None);
    };
    let hello = client_hello(cwd.to_owned(), command()?, SessionOrigin::default());
    greet(stream, &hello).await.map(Some)
}

fn client_hello(cwd: String, command: ClientCommand, session: SessionOrigin) -> Hello {
    Hello {
        socket_version: SOCKET_VERSION,
        acpipe: env!("CARGO_PKG_VERSION").to_owned(),
        purpose: Purpose::Client,
        cwd,
        args: command.words,
        files: Some(command.files),
        session,
    }
}

/// Connects a command that manages the daemon. Returns `None` if no daemon runs.
///
/// # Errors
/// The daemon cannot be reached, or refuses the connection.
pub async fn connect_control(state_dir: &Path) -> anyhow::Result<Option<DaemonConnection>> {
    let place = DaemonPlace::of(state_dir);
    let Some(stream) = connect_stream(&place).await? else {
        return Ok(None);
    };
    let hello = Hello {
        socket_version: SOCKET_VERSION,
        acpipe: env!("CARGO_PKG_VERSION").to_owned(),
        purpose: Purpose::Control,
        cwd: "/".to_owned(),
        args: Vec::new(),
        files: None,
        session: SessionOrigin::default(),
    };
    greet(stream, &hello).await.map(Some)
}

async fn connect_stream(place: &DaemonPlace) -> anyhow::Result<Option<UnixStream>> {
    let stream = place.connect().await;
    let socket = place.socket().display();
    let is_of_others =
        matches!(&stream, Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied);
    if is_of_others {
        // The error says what to do.
        return stream.with_context(|| format!("cannot connect to the daemon at {socket}"));
    }
    stream.with_context(|| {
        format!("cannot connect to the daemon at {socket}; stop it with `acpipe daemon stop`, or remove the socket")
    })
}

async fn greet(mut stream: UnixStream, hello: &Hello) -> anyhow::Result<DaemonConnection> {
    let mut line = serde_json::to_vec(hello)?;
    line.push(b'\n');
    let lost = "the daemon closed the connection; `acpipe daemon logs` shows why";
    stream.write_all(&line).await.context(lost)?;
    let line = read_line(&mut stream).await.context(lost)?;
    match read_bytes(&line) {
        Ok(Welcome::Accepted(info)) => {
            note_version(&info);
            Ok(DaemonConnection { stream, info })
        }
        Ok(Welcome::Refused {
            message, exit_code, ..
        }) => Err(Refused { message, exit_code }.into()),
        Err(_) => {
            let message = "the daemon is of another version of acpipe; run `acpipe daemon restart`";
            Err(Error::new(ErrorKind::Malformed, message).into())
        }
    }
}

/// Reads the first line of the daemon, and nothing of what follows it.
async fn read_line(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let byte = stream.read_u8().await?;
        if byte == b'\n' {
            return Ok(line);
        }
        line.push(byte);
    }
}

fn note_version(info: &DaemonInfo) {
    let own = env!("CARGO_PKG_VERSION");
    if info.acpipe != own {
        print_note(&format!(
            "the daemon is acpipe {}, this is acpipe {own}; `acpipe daemon restart` starts this version",
            info.acpipe
        ));
    }
}
