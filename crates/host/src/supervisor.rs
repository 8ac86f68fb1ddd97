//! Supervisor: a small process between acpipe and an agent, which ensures that no process of the agent
//! outlives it.
//!
//! acpipe starts its own program as a supervisor, hands it the agent's pipes and communicates with the agent
//! through these pipes alone. The supervisor runs in a separate session, so that Ctrl-C does not reach it. It
//! is a child subreaper (`PR_SET_CHILD_SUBREAPER`): a descendant that loses its parent becomes its child, so
//! it has no child left exactly when no process of the agent is left. When acpipe ends for any reason, the
//! socket between them closes. When the agent exits, its tools may still run. In both cases all descendants
//! get SIGTERM, a grace period, and SIGKILL until none is left.

pub mod codec;
pub mod orders;
pub mod tree;

use super::descriptors;
use codec::{SupervisorEvent, SupervisorOrder, receive_pipes};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, setsid, wait};
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::Instant;

/// Name of a supervisor, by which acpipe detects that it was started as one: `supervise-agent GRACE_MS
/// DESCRIPTORS PROGRAM ARGS…`; DESCRIPTORS is 0 for no limit.
///
/// It must not contain the name `acpipe`: `killall`, `pkill` and `pidof` select processes by name, and a
/// supervisor has to survive the end of acpipe. It has 15 characters, the most that Linux keeps of a process
/// name.
pub const SUPERVISOR: &str = "supervise-agent";

/// Grace period of processes that an exited agent left behind.
pub const LEFTOVERS_GRACE: Duration = Duration::from_millis(500);

/// Maximum time for which SIGKILL is repeated. Processes of another user, or stuck in the kernel, may never
/// end.
pub const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Intervals between rounds of SIGKILL: the first one, doubled each round up to the last one.
const FIRST_ROUND: Duration = Duration::from_millis(2);
const LAST_ROUND: Duration = Duration::from_millis(100);

/// Exit code of a supervisor that failed.
const FAILURE: u8 = 1;

/// Gives the current thread the name of a supervisor. On the main thread, that is the name of the process.
///
/// # Errors
/// The system refuses.
pub fn name_supervisor() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::thread::set_name(c"supervise-agent")?;
    Ok(())
}

/// Version of this crate. A supervisor of another version may not understand the orders of this one.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns `true` if a program is an acpipe of this version, which can be a supervisor. Waits for the program.
#[must_use]
pub fn is_supervisor(program: &Path) -> bool {
    #[expect(clippy::disallowed_methods, reason = "the program is a supervisor")]
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    prints_this_version(&String::from_utf8_lossy(&output))
}

/// Returns `true` for the output of `acpipe --version` of this version. Packages print their commit after it.
fn prints_this_version(output: &str) -> bool {
    output.split_whitespace().take(2).eq(["acpipe", VERSION])
}

/// Runs a supervisor until no process of the agent is left; returns the exit code.
#[must_use]
pub fn keep(mut args: impl Iterator<Item = OsString>) -> u8 {
    // Must be first: until then the process has the name of acpipe's file.
    if name_supervisor().is_err() {
        return FAILURE;
    }
    let mut number = || args.next().and_then(|n| n.to_str()?.parse().ok());
    let (grace, files) = (number(), number());
    let (Some(grace), Some(files), Some(program)) = (grace, files, args.next()) else {
        return 2;
    };
    if descriptors::check().is_err() {
        return FAILURE;
    }
    if files > 0 {
        descriptors::restore(files);
    }
    match supervise(Duration::from_millis(grace), program, args) {
        Ok(()) => 0,
        Err(_) => FAILURE,
    }
}

fn supervise(
    grace: Duration,
    program: OsString,
    args: impl Iterator<Item = OsString>,
) -> io::Result<()> {
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        // Emulators such as qemu-user lack both. Orphans then get another parent, as on systems without subreapers.
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
        // A supervisor that was stopped (SIGSTOP) continues when acpipe ends, and ends the agent.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
    }
    let socket = StdUnixStream::from(rustix::stdio::stdin().try_clone_to_owned()?);
    let Some([stdin, stdout, stderr]) = receive_pipes(&socket)? else {
        return Ok(());
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        // Must precede the start of the agent, so that no SIGCHLD is missed.
        let signals = SupervisorSignals::new()?;
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;
        #[expect(clippy::disallowed_methods, reason = "this is who starts agents")]
        let mut command = Command::new(program);
        let spawned = command
            .args(args)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn();
        // Closes the supervisor's copies of the agent's pipes.
        drop(command);
        let agent = match spawned {
            Ok(child) => i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                return socket
                    .write_all(&SupervisorEvent::Failed(errno).bytes())
                    .await;
            }
        };
        let Some(agent) = agent else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        // If acpipe has ended, the loop below detects it.
        let running = SupervisorEvent::Running(agent.as_raw_nonzero().get());
        drop(socket.write_all(&running.bytes()).await);
        let supervisor = Supervisor {
            agent,
            lives: true,
            socket: Some(socket),
            grace,
            ending: None,
        };
        supervisor.watch(signals).await;
        Ok(())
    })
}

/// Signals that a supervisor handles.
struct SupervisorSignals {
    child: Signals,
    ends: [Signals; 3],
}

impl SupervisorSignals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            child: signal(SignalKind::child())?,
            ends: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
        })
    }
}

struct Supervisor {
    agent: Pid,
    /// `true` until the agent process itself has been reaped.
    lives: bool,
    /// Open while acpipe runs.
    socket: Option<UnixStream>,
    grace: Duration,
    ending: Option<EndPhase>,
}

/// Progress of ending all descendants.
#[derive(Debug, Clone, Copy)]
enum EndPhase {
    /// All got SIGTERM.
    Terminating { until: Instant },
    /// All get SIGKILL in rounds.
    Killing {
        next: Instant,
        round: Duration,
        until: Instant,
    },
}

impl EndPhase {
    fn due(self) -> Instant {
        match self {
            Self::Terminating { until } => until,
            Self::Killing { next, .. } => next,
        }
    }
}

impl Supervisor {
    async fn watch(mut self, mut signals: SupervisorSignals) {
        loop {
            let (ended, somebody_left) = self.reap();
            if let Some(status) = ended {
                self.send_event(SupervisorEvent::Ended(status)).await;
            }
            if !somebody_left {
                if !cfg!(target_os = "linux") {
                    // Without a subreaper, orphans get another parent; those in the agent's group can still
                    // be signalled.
                    let _ = kill_process_group(self.agent, Signal::KILL);
                }
                return;
            }
            if ended.is_some() {
                self.terminate_all(LEFTOVERS_GRACE);
            }
            let due = self.ending.map(EndPhase::due);
            let [int, term, hup] = &mut signals.ends;
            tokio::select! {
                _ = signals.child.recv() => {}
                order = next_order(&mut self.socket) => match order {
                    Some(SupervisorOrder::Terminate) => self.terminate(),
                    Some(SupervisorOrder::Kill) => self.kill_all(),
                    None => self.terminate_all(self.grace),
                },
                _ = int.recv() => self.terminate_all(self.grace),
                _ = term.recv() => self.terminate_all(self.grace),
                _ = hup.recv() => self.terminate_all(self.grace),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if !self.kill_round() {
                        return;
                    }
                }
            }
        }
    }

    /// Reaps all exited children. Returns the agent's status if the agent is among them, and whether any
    /// child is left.
    fn reap(&mut self) -> (Option<i32>, bool) {
        let mut status = None;
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, how))) if pid == self.agent && self.lives => {
                    self.lives = false;
                    status = Some(how.as_raw());
                }
                Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
                Ok(None) => return (status, true),
                Err(_) => return (status, false),
            }
        }
    }

    async fn send_event(&mut self, news: SupervisorEvent) {
        if let Some(socket) = &mut self.socket
            && socket.write_all(&news.bytes()).await.is_err()
        {
            self.socket = None;
        }
    }

    /// Sends SIGTERM to the agent's group; the agent may end its tools itself.
    fn terminate(&mut self) {
        if self.lives {
            // Harmless if the agent is already a zombie.
            let _ = kill_process_group(self.agent, Signal::TERM);
        } else {
            self.signal_all(Signal::TERM);
        }
    }

    /// Sends SIGTERM to all descendants, and SIGKILL after the grace period unless that is scheduled earlier.
    fn terminate_all(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match self.ending {
            Some(EndPhase::Terminating { until: sooner }) if sooner <= until => return,
            Some(EndPhase::Killing { .. }) => return,
            _ => {}
        }
        self.signal_all(Signal::TERM);
        self.ending = Some(EndPhase::Terminating { until });
    }

    /// Sends SIGKILL to all descendants now.
    fn kill_all(&mut self) {
        let now = Instant::now();
        self.ending = Some(EndPhase::Killing {
            next: now,
            round: FIRST_ROUND,
            until: now + KILL_LIMIT,
        });
        self.kill_round();
    }

    /// Sends SIGKILL to all remaining and new descendants. Returns `false` once [`KILL_LIMIT`] has passed.
    fn kill_round(&mut self) -> bool {
        let Some(EndPhase::Killing { round, until, .. }) = self.ending else {
            self.kill_all();
            return true;
        };
        self.signal_all(Signal::KILL);
        let now = Instant::now();
        self.ending = Some(EndPhase::Killing {
            next: now + round,
            round: (2 * round).min(LAST_ROUND),
            until,
        });
        now < until
    }

    fn signal_all(&self, signal: Signal) {
        for member in tree::below(getpid()) {
            member.signal(signal);
        }
        if self.lives {
            // The only option on systems where descendants cannot be listed.
            let _ = kill_process_group(self.agent, signal);
        }
    }
}

/// Receives acpipe's next order; `None`, once, when acpipe has ended.
async fn next_order(socket: &mut Option<UnixStream>) -> Option<SupervisorOrder> {
    loop {
        let Some(open) = socket else {
            return std::future::pending().await;
        };
        let mut byte = [0];
        match open.read(&mut byte).await {
            Ok(n) if n > 0 => {
                if let Some(order) = SupervisorOrder::of(byte[0]) {
                    return Some(order);
                }
            }
            Ok(_) | Err(_) => {
                *socket = None;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supervisor_is_an_acpipe_of_the_same_version_with_any_commit() {
        let prints = |line: String| prints_this_version(&line);
        assert!(prints(format!("acpipe {VERSION}\n")));
        assert!(prints(format!("acpipe {VERSION} (1a2b3c4d5 2026-11-27)\n")));
        assert!(!prints("acpipe 0.0.1 (1a2b3c4d5 2026-11-27)\n".to_owned()));
        assert!(!prints(format!("other {VERSION}\n")));
        assert!(!prints(String::new()));
    }
}
