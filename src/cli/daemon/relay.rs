//! A client of the daemon on stdin and stdout: copies bytes, and knows nothing of their protocol.

use super::command_line::ClientCommand;
use super::connect::{DaemonConnection, connect_client};
use super::hello::SessionOrigin;
use acpipe_host::StdoutWriter;
use acpipe_model::error::{Error, ErrorKind};
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind as IoErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Size of a read in bytes.
const READ_SIZE: usize = 64 * 1024;

/// Time in which a daemon that ends closes the connection after its output.
const END_LIMIT: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 200_000_000,
};

/// Connects stdin and stdout to the daemon, with this command line and its files. Returns the exit code after the end of stdin, or
/// after the reader of stdout has left.
///
/// # Errors
/// The daemon cannot be reached, refuses the client, or ends before the client.
pub async fn relay(state_dir: &Path, command: ClientCommand) -> anyhow::Result<u8> {
    let DaemonConnection { stream, .. } =
        connect_client(state_dir, command, SessionOrigin::default()).await?;
    let stream = stream.into_std()?;
    stream.set_nonblocking(false)?;
    let input = stream.try_clone()?;
    let input_ended = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&input_ended);
    std::thread::Builder::new()
        .name("stdin".into())
        .spawn(move || {
            // The end of the daemon is reported by the other direction.
            let _ = copy(io::stdin().lock(), &input);
            ended.store(true, Ordering::Release);
            let _ = input.shutdown(Shutdown::Write);
        })
        .context("cannot start a thread")?;
    let copied = tokio::task::spawn_blocking(move || {
        copy(&stream, StdoutWriter).map(|()| is_closed(&stream))
    });
    match copied.await? {
        Err(error) => Err(error.into()),
        Ok(false) => Ok(0),
        Ok(true) if input_ended.load(Ordering::Acquire) => Ok(0),
        Ok(true) => {
            let message = "the daemon closed the connection: it was stopped, restarted or killed; start this command \
                           again to continue its sessions";
            Err(Error::new(ErrorKind::AgentExited, message).into())
        }
    }
}

/// Returns `true` if the daemon has closed the connection. `false` if it only ended its output, which it does after a
/// client's `shutdown`.
fn is_closed(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, PollFlags::empty())];
    poll(&mut fds, Some(&END_LIMIT)).is_ok_and(|ready| ready > 0)
}

/// Copies until the end of `from`. Every piece is written as soon as it is read.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut piece = vec![0; READ_SIZE];
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == IoErrorKind::Interrupted => continue,
            // The daemon was killed.
            Err(error) if error.kind() == IoErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error),
        };
        to.write_all(&piece[..read])?;
        to.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_until_the_end() {
        let mut copied = Vec::new();
        copy(&b"one\ntwo"[..], &mut copied).unwrap();
        assert_eq!(copied, b"one\ntwo");
    }
}
