//! Processes of served terminals: one task each, which owns the supervisor of the command and the pipe with
//! its output.

use super::files::{Roots, system_text};
use crate::process_settings::ProcessSettings;
use crate::supervised::Supervised;
use crate::supervisor::KILL_LIMIT;
use crate::supervisor::codec::{SupervisorEvent, SupervisorOrder};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::host::{HostEvent, TerminalExit, TerminalId, TerminalSpec};
use bytes::BytesMut;
use cap_std::fs::MetadataExt as _;
use rustix::io::Errno;
use rustix::process::Signal;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{debug, info, warn};

/// Size of a read in bytes.
const READ_SIZE: usize = 64 * 1024;

/// Maximum capacity of a pipe in bytes, which limits the unread output that precedes the command's exit.
const PIPE_SIZE: usize = 1024 * 1024;

/// Maximum time for which other processes may hold the pipe open after all processes of a terminal have
/// ended.
const GRACE: Duration = Duration::from_millis(250);

/// Maximum time that a supervisor takes in addition to its own limit for killing.
const SUPERVISOR_EXIT_GRACE: Duration = Duration::from_secs(1);

/// The loop's handle of a terminal.
pub struct TerminalHandle {
    kill: mpsc::Sender<()>,
}

impl TerminalHandle {
    /// Ends the command and all its descendants: SIGTERM, a grace period, SIGKILL.
    pub fn kill(&self) {
        // A full queue already holds a kill; a closed one means that the terminal has ended.
        let _ = self.kill.try_send(());
    }
}

/// Starts a terminal's command. All its events arrive through `events`.
pub fn start(
    id: TerminalId,
    spec: Box<TerminalSpec>,
    roots: Arc<Roots>,
    terms: ProcessSettings,
    events: mpsc::Sender<HostEvent>,
) -> TerminalHandle {
    let (kill, killed) = mpsc::channel(1);
    tokio::spawn(async move {
        let grace = terms.grace;
        let started = match is_within(&spec, roots).await {
            Ok(()) => {
                let started = Supervised::start_terminal(&spec, terms).await;
                started.map_err(|error| explain(&spec, &error))
            }
            Err(error) => Err(error),
        };
        match started {
            Ok((supervised, pipe)) => {
                let process = TerminalProcess {
                    id,
                    supervised,
                    pipe: Some(pipe),
                    buffer: BytesMut::new(),
                    events,
                };
                process.live(&spec, grace, killed).await;
            }
            Err(error) => tell(&events, HostEvent::StartFailed(id, error)).await,
        }
    });
    TerminalHandle { kill }
}

/// Checks that the working directory is within the session's directories. This is not a sandbox, because a
/// command can go anywhere; it catches mistakes.
async fn is_within(spec: &TerminalSpec, roots: Arc<Roots>) -> Result<(), Error> {
    let (tell, told) = oneshot::channel();
    let cwd = spec.cwd.clone();
    let check = move || {
        let place = roots.find(&cwd)?;
        let wrong = |why: &str| {
            let message = format!("cwd: cannot run a command in {cwd}: {why}");
            Error::new(ErrorKind::InvalidParams, message).with("field", "cwd")
        };
        let opened = place.root.open_dir(&place.path);
        let opened = opened.and_then(|dir| dir.dir_metadata());
        let held = opened.map_err(|error| wrong(&system_text(&error)))?;
        let there = std::fs::metadata(&cwd).map_err(|error| wrong(&system_text(&error)))?;
        if (held.dev(), held.ino()) != (there.dev(), there.ino()) {
            return Err(wrong(
                "the session's directory was replaced after the session was opened",
            ));
        }
        Ok(())
    };
    // Runs on its own thread, as for files, because the disk may not answer.
    let thread = std::thread::Builder::new().name("served cwd".into());
    let spawned = thread.spawn(move || {
        // Fails only if the loop has ended.
        let _ = tell.send(check());
    });
    match (spawned, told.await) {
        (Ok(_), Ok(checked)) => checked,
        (Err(error), _) => Err(explain(spec, &error)),
        (_, Err(_)) => Err(Error::new(ErrorKind::Internal, "cannot check cwd")),
    }
}

/// Explains why a command could not be started.
fn explain(spec: &TerminalSpec, error: &io::Error) -> Error {
    let command = &spec.command;
    let message = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => format!(
            "cannot run {command}: {}; give a program in PATH, or a shell command line without args",
            system_text(error)
        ),
        Some(Errno::ACCESS) => format!(
            "cannot run {command}: {}; it is not an executable file",
            system_text(error)
        ),
        _ => format!("cannot run {command}: {}", system_text(error)),
    };
    Error::new(ErrorKind::Resource, message).with("command", command.as_str())
}

async fn tell(events: &mpsc::Sender<HostEvent>, event: HostEvent) {
    // Fails only if the loop has ended; the event is not needed then.
    let _ = events.send(event).await;
}

struct TerminalProcess {
    id: TerminalId,
    supervised: Supervised,
    /// Pipe with the command's output; `None` after its end.
    pipe: Option<Receiver>,
    buffer: BytesMut,
    events: mpsc::Sender<HostEvent>,
}

/// Progress of killing a terminal.
#[derive(Clone, Copy)]
enum KillPhase {
    /// SIGTERM was sent; SIGKILL follows at this time.
    Terminating(Instant),
    /// SIGKILL was ordered; the supervisor is given up at this time.
    SentKill(Instant),
}

impl TerminalProcess {
    async fn live(mut self, spec: &TerminalSpec, grace: Duration, mut killed: mpsc::Receiver<()>) {
        let mut started = false;
        let mut ended = false;
        let mut gone: Option<Instant> = None;
        let mut killing: Option<KillPhase> = None;
        while gone.is_none() || self.pipe.is_some() {
            let due = killing
                .filter(|_| gone.is_none())
                .map(|killing| match killing {
                    KillPhase::Terminating(at) | KillPhase::SentKill(at) => at,
                });
            tokio::select! {
                closed = read(self.pipe.as_mut(), &mut self.buffer), if self.pipe.is_some() => {
                    self.send_output().await;
                    if closed {
                        self.pipe = None;
                    }
                }
                news = self.supervised.news(), if gone.is_none() => match news {
                    Some(SupervisorEvent::Running(pid)) => {
                        started = true;
                        info!(terminal = %self.id, pid, "terminal command started");
                        tell(&self.events, HostEvent::Started(self.id)).await;
                    }
                    Some(SupervisorEvent::Failed(errno)) => {
                        let error = explain(spec, &io::Error::from_raw_os_error(errno));
                        tell(&self.events, HostEvent::StartFailed(self.id, error)).await;
                        return;
                    }
                    Some(SupervisorEvent::Ended(status)) => {
                        ended = true;
                        self.end(exit(ExitStatus::from_raw(status))).await;
                    }
                    None if !started => {
                        let message = "the supervisor of the command exited before it started the command";
                        let error = Error::new(ErrorKind::Resource, message);
                        tell(&self.events, HostEvent::StartFailed(self.id, error)).await;
                        return;
                    }
                    None => {
                        if !ended {
                            warn!(terminal = %self.id, "the supervisor of a terminal was killed, and its command with \
                it");
                            self.supervised.kill_orphaned();
                            self.end(TerminalExit::default()).await;
                        }
                        gone = Some(Instant::now() + GRACE);
                    }
                },
                Some(()) = killed.recv() => {
                    self.supervised.order(SupervisorOrder::Terminate);
                    killing.get_or_insert(KillPhase::Terminating(Instant::now() + grace));
                }
                () = until(due), if due.is_some() => match killing {
                    Some(KillPhase::Terminating(_)) => {
                        self.supervised.order(SupervisorOrder::Kill);
                        let limit = KILL_LIMIT + SUPERVISOR_EXIT_GRACE;
                        killing = Some(KillPhase::SentKill(Instant::now() + limit));
                    }
                    Some(KillPhase::SentKill(_)) | None => {
                        killing = None;
                        self.supervised.give_up();
                    }
                },
                () = until(gone), if gone.is_some() => {
                    warn!(terminal = %self.id, "another process keeps a terminal's pipe open; no longer waiting for it");
                    self.pipe = None;
                }
            }
        }
        tell(&self.events, HostEvent::Gone(self.id)).await;
    }

    /// Reports the output that was read.
    async fn send_output(&mut self) {
        if !self.buffer.is_empty() {
            let output = self.buffer.split().freeze();
            tell(&self.events, HostEvent::Output(self.id, output)).await;
        }
    }

    /// Reports the command's exit, after all output that precedes it.
    async fn end(&mut self, exit: TerminalExit) {
        let mut read = 0;
        while let Some(pipe) = &self.pipe
            && read < PIPE_SIZE
        {
            self.buffer.reserve(READ_SIZE);
            match pipe.try_read_buf(&mut self.buffer) {
                Ok(n) if n > 0 => read += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(_) | Err(_) => self.pipe = None,
            }
            self.send_output().await;
        }
        debug!(terminal = %self.id, ?exit, "terminal command exited");
        tell(&self.events, HostEvent::Ended(self.id, exit)).await;
    }
}

/// Reads more output; returns `true` at its end.
async fn read(pipe: Option<&mut Receiver>, buffer: &mut BytesMut) -> bool {
    let Some(pipe) = pipe else {
        return true;
    };
    buffer.reserve(READ_SIZE);
    !matches!(pipe.read_buf(buffer).await, Ok(n) if n > 0)
}

async fn until(at: Option<Instant>) {
    if let Some(at) = at {
        tokio::time::sleep_until(at).await;
    }
}

fn exit(status: ExitStatus) -> TerminalExit {
    TerminalExit {
        code: status.code(),
        signal: status.signal().map(signal_name),
    }
}

/// Returns the name of a signal that ends processes.
fn signal_name(signal: i32) -> String {
    let name = match Signal::from_named_raw(signal) {
        Some(Signal::HUP) => "SIGHUP",
        Some(Signal::INT) => "SIGINT",
        Some(Signal::QUIT) => "SIGQUIT",
        Some(Signal::ILL) => "SIGILL",
        Some(Signal::TRAP) => "SIGTRAP",
        Some(Signal::ABORT) => "SIGABRT",
        Some(Signal::BUS) => "SIGBUS",
        Some(Signal::FPE) => "SIGFPE",
        Some(Signal::KILL) => "SIGKILL",
        Some(Signal::USR1) => "SIGUSR1",
        Some(Signal::SEGV) => "SIGSEGV",
        Some(Signal::USR2) => "SIGUSR2",
        Some(Signal::PIPE) => "SIGPIPE",
        Some(Signal::ALARM) => "SIGALRM",
        Some(Signal::TERM) => "SIGTERM",
        Some(Signal::XCPU) => "SIGXCPU",
        Some(Signal::XFSZ) => "SIGXFSZ",
        Some(Signal::SYS) => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}
