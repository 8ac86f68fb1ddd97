//! Watch on the client's process, if the client sent its process id: acpipe shuts down when that process
//! exits, even if another process holds its pipes open.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// Polling interval on systems without process handles.
const LOOK: Duration = Duration::from_secs(2);

/// Watched process of the client; receives when it has exited.
pub struct ClientProcess(oneshot::Receiver<()>);

impl ClientProcess {
    /// Watches a process. Returns `None` if it cannot be watched, for example because the client runs in
    /// another container.
    pub fn watch(id: u32) -> Option<Self> {
        match look(id) {
            Ok(watched) => Some(watched),
            Err(error) => {
                warn!(id, %error, "cannot watch the client's process");
                None
            }
        }
    }

    /// Waits until the process has exited. Cancel safe.
    pub async fn ended(&mut self) {
        if (&mut self.0).await.is_err() {
            // The watching thread ended without a result: the state of the process is unknown.
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
            // Fails only if the loop has ended.
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

/// Waits until a process has exited, which makes its handle readable.
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

/// Waits until the watched process has exited; never returns without one.
pub async fn ended(process: Option<&mut ClientProcess>) {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
