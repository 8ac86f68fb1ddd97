//! The process of the client, where it told its id: when that has ended, so does acpipe, whoever holds its pipes.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// How often it is looked for where the system has no handle for processes.
const LOOK: Duration = Duration::from_secs(2);

/// The end of a process.
pub struct ClientProcess(oneshot::Receiver<()>);

impl ClientProcess {
    /// Watches a process; none that does not exist here, since the client may be in another container.
    pub fn watch(id: u32) -> Option<Self> {
        match look(id) {
            Ok(watched) => Some(watched),
            Err(error) => {
                warn!(id, %error, "the client's process cannot be watched");
                None
            }
        }
    }

    /// Waits until it has ended; may be dropped and called again.
    pub async fn ended(&mut self) {
        if (&mut self.0).await.is_err() {
            // Whoever watched it is gone without a word: nothing is known.
            std::future::pending::<()>().await;
        }
    }
}

fn look(id: u32) -> io::Result<ClientProcess> {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let handle = match handle(pid) {
        Ok(handle) => Some(handle),
        Err(Errno::NOSYS) if lives(pid) => None,
        Err(Errno::NOSYS) => return Err(Errno::SRCH.into()),
        Err(error) => return Err(error.into()),
    };
    let (ended, watched) = oneshot::channel();
    std::thread::Builder::new()
        .name("client process".into())
        .spawn(move || {
            match handle {
                Some(handle) => wait_for(&handle),
                None => wait_for_number(pid),
            }
            // The loop is gone only when nobody cares any more.
            let _ = ended.send(());
        })?;
    Ok(ClientProcess(watched))
}

#[cfg(target_os = "linux")]
fn handle(pid: Pid) -> rustix::io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    pidfd_open(pid, PidfdFlags::empty())
}

#[cfg(not(target_os = "linux"))]
fn handle(_: Pid) -> rustix::io::Result<OwnedFd> {
    Err(Errno::NOSYS)
}

/// Sleeps until a process has ended: then its handle is readable.
fn wait_for(handle: &OwnedFd) {
    let mut fds = [PollFd::new(handle, PollFlags::IN)];
    while poll(&mut fds, None) == Err(Errno::INTR) {}
}

fn wait_for_number(pid: Pid) {
    while lives(pid) {
        std::thread::sleep(LOOK);
    }
}

fn lives(pid: Pid) -> bool {
    !matches!(test_kill_process(pid), Err(Errno::SRCH))
}

/// Waits until a watched process has ended; for ever where there is none.
pub async fn ended(process: Option<&mut ClientProcess>) {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
