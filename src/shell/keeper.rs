//! Supervisor: a small process between acpipe and an agent, which ensures that no process of the agent
//! outlives it.
//!
//! acpipe starts its own program as a supervisor, hands it the agent's pipes and communicates with the agent
//! through these pipes alone. The supervisor runs in a separate session, so that Ctrl-C does not reach it. It
//! is a child subreaper (`PR_SET_CHILD_SUBREAPER`): a descendant that loses its parent becomes its child, so
//! it has no child left exactly when no process of the agent is left. When acpipe ends for any reason, the
//! socket between them closes. When the agent exits, its tools may still run. In both cases all descendants
//! get SIGTERM, a grace period, and SIGKILL until none is left.

pub mod orders;
pub mod tree;
pub mod words;

use super::descriptors;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, setsid, wait};
use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::Instant;
use words::{News, Order, receive_pipes};

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

/// Runs a supervisor until no process of the agent is left.
#[must_use]
pub fn keep(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    // Must be first: until then the process has the name of acpipe's file.
    #[cfg(target_os = "linux")]
    if rustix::thread::set_name(c"supervise-agent").is_err() {
        return ExitCode::FAILURE;
    }
    let mut number = || args.next().and_then(|n| n.to_str()?.parse().ok());
    let (grace, files) = (number(), number());
    let (Some(grace), Some(files), Some(program)) = (grace, files, args.next()) else {
        return ExitCode::from(2);
    };
    if descriptors::check().is_err() {
        return ExitCode::FAILURE;
    }
    if files > 0 {
        descriptors::restore(files);
    }
    match keep_until_the_end(Duration::from_millis(grace), program, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn keep_until_the_end(
    grace: Duration,
    program: OsString,
    args: impl Iterator<Item = OsString>,
) -> io::Result<()> {
    setsid()?;
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(getpid()))?;
        // A supervisor that was stopped (SIGSTOP) continues when acpipe ends, and ends the agent.
        rustix::process::set_parent_process_death_signal(Some(Signal::CONT))?;
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
        let signals = Heard::new()?;
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
                return socket.write_all(&News::Failed(errno).bytes()).await;
            }
        };
        let Some(agent) = agent else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        // If acpipe has ended, the loop below detects it.
        let running = News::Running(agent.as_raw_nonzero().get());
        drop(socket.write_all(&running.bytes()).await);
        let keeper = Keeper {
            agent,
            lives: true,
            socket: Some(socket),
            grace,
            ending: None,
        };
        keeper.watch(signals).await;
        Ok(())
    })
}

/// Signals that a supervisor handles.
struct Heard {
    child: Signals,
    ends: [Signals; 3],
}

impl Heard {
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

struct Keeper {
    agent: Pid,
    /// `true` until the agent process itself has been reaped.
    lives: bool,
    /// Open while acpipe runs.
    socket: Option<UnixStream>,
    grace: Duration,
    ending: Option<Ending>,
}

/// Progress of ending all descendants.
#[derive(Debug, Clone, Copy)]
enum Ending {
    /// All got SIGTERM.
    Asked { until: Instant },
    /// All get SIGKILL in rounds.
    Forced {
        next: Instant,
        round: Duration,
        until: Instant,
    },
}

impl Ending {
    fn due(self) -> Instant {
        match self {
            Self::Asked { until } => until,
            Self::Forced { next, .. } => next,
        }
    }
}

impl Keeper {
    async fn watch(mut self, mut signals: Heard) {
        loop {
            let (ended, somebody_left) = self.reap();
            if let Some(status) = ended {
                self.tell(News::Ended(status)).await;
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
                self.ask(LEFTOVERS_GRACE);
            }
            let due = self.ending.map(Ending::due);
            let [int, term, hup] = &mut signals.ends;
            tokio::select! {
                _ = signals.child.recv() => {}
                order = next_order(&mut self.socket) => match order {
                    Some(Order::Terminate) => self.terminate(),
                    Some(Order::Kill) => self.force(),
                    None => self.ask(self.grace),
                },
                _ = int.recv() => self.ask(self.grace),
                _ = term.recv() => self.ask(self.grace),
                _ = hup.recv() => self.ask(self.grace),
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if !self.force_again() {
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

    async fn tell(&mut self, news: News) {
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
    fn ask(&mut self, grace: Duration) {
        let until = Instant::now() + grace;
        match self.ending {
            Some(Ending::Asked { until: sooner }) if sooner <= until => return,
            Some(Ending::Forced { .. }) => return,
            _ => {}
        }
        self.signal_all(Signal::TERM);
        self.ending = Some(Ending::Asked { until });
    }

    /// Sends SIGKILL to all descendants now.
    fn force(&mut self) {
        let now = Instant::now();
        self.ending = Some(Ending::Forced {
            next: now,
            round: FIRST_ROUND,
            until: now + KILL_LIMIT,
        });
        self.force_again();
    }

    /// Sends SIGKILL to all remaining and new descendants. Returns `false` once [`KILL_LIMIT`] has passed.
    fn force_again(&mut self) -> bool {
        let Some(Ending::Forced { round, until, .. }) = self.ending else {
            self.force();
            return true;
        };
        self.signal_all(Signal::KILL);
        let now = Instant::now();
        self.ending = Some(Ending::Forced {
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
async fn next_order(socket: &mut Option<UnixStream>) -> Option<Order> {
    loop {
        let Some(open) = socket else {
            return std::future::pending().await;
        };
        let mut byte = [0];
        match open.read(&mut byte).await {
            Ok(n) if n > 0 => {
                if let Some(order) = Order::of(byte[0]) {
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
