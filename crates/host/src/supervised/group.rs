//! A process without a supervisor: started in a process group of its own, which is killed at its end.
//!
//! This program's own task does what a supervisor does, as far as that is possible: processes that left the
//! group are found by their mark. If this program is killed, nothing ends the agent; a later launch with the
//! same state directory does.

use super::Spawn;
use crate::launches;
use crate::supervisor::codec::{SupervisorEvent, SupervisorOrder};
use crate::supervisor::orders::OrderReceiver;
use crate::supervisor::{LEFTOVERS_GRACE, tree};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// Interval at which the end of the rest of a group is checked.
const CHECK: Duration = Duration::from_millis(10);

/// Process that was started in a process group of its own.
pub struct ProcessGroup {
    events: mpsc::Receiver<SupervisorEvent>,
    task: AbortHandle,
}

/// Kills a process group when it is dropped, also when the runtime ends with the task that owns it.
struct GroupGuard {
    group: Pid,
    mark: String,
    /// `false` once the group has ended, since its id may then be reused.
    is_armed: bool,
}

impl ProcessGroup {
    /// Starts a process with these streams.
    ///
    /// # Errors
    /// The process could not be started.
    pub fn spawn(
        spawn: &Spawn,
        [stdin, stdout, stderr]: [BorrowedFd<'_>; 3],
        mark: &str,
        orders: OrderReceiver,
    ) -> io::Result<Self> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the user has no supervisor: documented in `Builder::supervisor`"
        )]
        let mut command = Command::new(&spawn.program);
        command
            .stdin(Stdio::from(stdin.try_clone_to_owned()?))
            .stdout(Stdio::from(stdout.try_clone_to_owned()?))
            .stderr(Stdio::from(stderr.try_clone_to_owned()?))
            .process_group(0);
        spawn.configure(&mut command, mark);
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let group = pid.and_then(Pid::from_raw).ok_or(io::ErrorKind::NotFound)?;
        let (sender, events) = mpsc::channel(2);
        let guard = GroupGuard {
            group,
            mark: mark.to_owned(),
            is_armed: true,
        };
        let task = tokio::spawn(watch(child, guard, orders, sender)).abort_handle();
        Ok(Self { events, task })
    }

    /// Receives the next event; `None` when the process and its group have ended. Cancel safe.
    pub async fn next_event(&mut self) -> Option<SupervisorEvent> {
        self.events.recv().await
    }

    /// Stops to wait for the process, and kills its group.
    pub fn give_up(&mut self) {
        self.task.abort();
    }
}

impl Drop for ProcessGroup {
    /// As with a supervisor, whose socket then closes.
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(
    mut child: Child,
    mut guard: GroupGuard,
    mut orders: OrderReceiver,
    events: mpsc::Sender<SupervisorEvent>,
) {
    let running = SupervisorEvent::Running(guard.group.as_raw_nonzero().get());
    // The receiver is gone only once this task is aborted.
    let _ = events.send(running).await;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            Some(order) = orders.recv() => match order {
                SupervisorOrder::Terminate => drop(kill_process_group(guard.group, Signal::TERM)),
                SupervisorOrder::Kill => guard.kill(),
            },
        }
    };
    if let Ok(status) = status {
        let _ = events.send(SupervisorEvent::Ended(status.into_raw())).await;
    }
    let _ = kill_process_group(guard.group, Signal::TERM);
    let until = Instant::now() + LEFTOVERS_GRACE;
    while test_kill_process_group(guard.group).is_ok() && Instant::now() < until {
        tokio::select! {
            () = sleep(CHECK) => {}
            Some(SupervisorOrder::Kill) = orders.recv() => break,
        }
    }
    let _ = kill_process_group(guard.group, Signal::KILL);
    guard.is_armed = false;
    let mark = guard.mark.clone();
    // Processes that left the group are found only by their mark, which takes a while.
    let _ = tokio::task::spawn_blocking(move || launches::kill_marked(&mark)).await;
}

impl GroupGuard {
    /// Kills the group and all descendants.
    fn kill(&self) {
        for member in tree::below(self.group) {
            member.signal(Signal::KILL);
        }
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if self.is_armed {
            self.kill();
        }
    }
}
