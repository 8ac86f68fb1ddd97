//! The processes of served terminals: a task each, with the keeper of its command and the pipe of what that says.

use super::files::Roots;
use crate::core::error::{Error, ErrorKind};
use crate::core::host::{HostEvent, TerminalExit, TerminalId, TerminalSpec};
use crate::shell::keeper::KILL_LIMIT;
use crate::shell::keeper::words::{News, Order};
use crate::shell::kept::Kept;
use crate::shell::terms::Terms;
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

/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// The most that a pipe holds: so much at most was said before the end of the command, and is not read.
const PIPE_SIZE: usize = 1024 * 1024;

/// How long the pipe of a terminal of which nothing is left may be held open by others.
const GRACE: Duration = Duration::from_millis(250);

/// How long a keeper may take beyond the time in which it kills.
const KEEPERS_GRACE: Duration = Duration::from_secs(1);

/// What the loop holds of a terminal.
pub struct Terminal {
    kill: mpsc::Sender<()>,
}

impl Terminal {
    /// Ends it and everything below it: SIGTERM, a grace, SIGKILL.
    pub fn kill(&self) {
        // A full queue means that it is to be killed already; a closed one that there is nothing to kill.
        let _ = self.kill.try_send(());
    }
}

/// Starts a terminal's command; whatever becomes of it comes through `events`.
pub fn start(
    id: TerminalId,
    spec: Box<TerminalSpec>,
    roots: Arc<Roots>,
    terms: Terms,
    events: mpsc::Sender<HostEvent>,
) -> Terminal {
    let (kill, killed) = mpsc::channel(1);
    tokio::spawn(async move {
        let grace = terms.grace;
        let started = match is_within(&spec, roots).await {
            Ok(()) => {
                let started = Kept::start_terminal(&spec, terms).await;
                started.map_err(|error| explain(&spec, &error))
            }
            Err(error) => Err(error),
        };
        match started {
            Ok((kept, pipe)) => {
                let process = Process {
                    id,
                    kept,
                    pipe: Some(pipe),
                    buffer: BytesMut::new(),
                    events,
                };
                process.live(&spec, grace, killed).await;
            }
            Err(error) => tell(&events, HostEvent::StartFailed(id, error)).await,
        }
    });
    Terminal { kill }
}

/// Whether its working directory is one of the session's. No wall: a command goes where it likes; but one that
/// begins elsewhere does not do what was meant.
async fn is_within(spec: &TerminalSpec, roots: Arc<Roots>) -> Result<(), Error> {
    let (tell, told) = oneshot::channel();
    let cwd = spec.cwd.clone();
    let check = move || {
        let place = roots.find(&cwd)?;
        let wrong = |why: &str| {
            let message = format!("cwd: {cwd} is no directory to run a command in: {why}");
            Error::new(ErrorKind::InvalidParams, message).with("field", "cwd")
        };
        let opened = place.root.open_dir(&place.path);
        let opened = opened.and_then(|dir| dir.dir_metadata());
        let held = opened.map_err(|error| wrong(&error.to_string()))?;
        let there = std::fs::metadata(&cwd).map_err(|error| wrong(&error.to_string()))?;
        if (held.dev(), held.ino()) != (there.dev(), there.ino()) {
            return Err(wrong(
                "something else has taken the place of the session's directory since the session was opened",
            ));
        }
        Ok(())
    };
    // A thread of its own, as for files: the disk may not answer.
    let thread = std::thread::Builder::new().name("served cwd".into());
    let spawned = thread.spawn(move || {
        // Nobody listens only when the loop is gone.
        let _ = tell.send(check());
    });
    match (spawned, told.await) {
        (Ok(_), Ok(checked)) => checked,
        (Err(error), _) => Err(explain(spec, &error)),
        (_, Err(_)) => Err(Error::new(
            ErrorKind::Internal,
            "cwd could not be looked at",
        )),
    }
}

/// Why a command could not be started, in words that help.
fn explain(spec: &TerminalSpec, error: &io::Error) -> Error {
    let command = &spec.command;
    let message = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => format!(
            "{command} was not found: give a program that is in PATH, or without arguments a line for the shell"
        ),
        Some(Errno::ACCESS) => format!("{command} may not be run: it is no executable file"),
        _ => format!("{command} could not be started: {error}"),
    };
    Error::new(ErrorKind::Resource, message).with("command", command.as_str())
}

async fn tell(events: &mpsc::Sender<HostEvent>, event: HostEvent) {
    // The loop is gone only when nobody cares any more.
    let _ = events.send(event).await;
}

struct Process {
    id: TerminalId,
    kept: Kept,
    /// What it says, until the end of that.
    pipe: Option<Receiver>,
    buffer: BytesMut,
    events: mpsc::Sender<HostEvent>,
}

/// How far the end of a terminal is that was killed.
#[derive(Clone, Copy)]
enum Killing {
    /// It got SIGTERM, and gets SIGKILL at this time.
    Asked(Instant),
    /// Its keeper is given up at this time.
    Forced(Instant),
}

impl Process {
    async fn live(mut self, spec: &TerminalSpec, grace: Duration, mut killed: mpsc::Receiver<()>) {
        let mut started = false;
        let mut ended = false;
        let mut gone: Option<Instant> = None;
        let mut killing: Option<Killing> = None;
        while gone.is_none() || self.pipe.is_some() {
            let due = killing
                .filter(|_| gone.is_none())
                .map(|killing| match killing {
                    Killing::Asked(at) | Killing::Forced(at) => at,
                });
            tokio::select! {
                closed = read(self.pipe.as_mut(), &mut self.buffer), if self.pipe.is_some() => {
                    self.said().await;
                    if closed {
                        self.pipe = None;
                    }
                }
                news = self.kept.news(), if gone.is_none() => match news {
                    Some(News::Running(pid)) => {
                        started = true;
                        info!(terminal = %self.id, pid, "a terminal's command runs");
                        tell(&self.events, HostEvent::Started(self.id)).await;
                    }
                    Some(News::Failed(errno)) => {
                        let error = explain(spec, &io::Error::from_raw_os_error(errno));
                        tell(&self.events, HostEvent::StartFailed(self.id, error)).await;
                        return;
                    }
                    Some(News::Ended(status)) => {
                        ended = true;
                        self.end(exit(ExitStatus::from_raw(status))).await;
                    }
                    None if !started => {
                        let message = "the keeper of the command ended before it had started that";
                        let error = Error::new(ErrorKind::Resource, message);
                        tell(&self.events, HostEvent::StartFailed(self.id, error)).await;
                        return;
                    }
                    None => {
                        if !ended {
                            warn!(terminal = %self.id, "the keeper of a terminal was killed: so is its command");
                            self.kept.bereft();
                            self.end(TerminalExit::default()).await;
                        }
                        gone = Some(Instant::now() + GRACE);
                    }
                },
                Some(()) = killed.recv() => {
                    self.kept.order(Order::Terminate);
                    killing.get_or_insert(Killing::Asked(Instant::now() + grace));
                }
                () = until(due), if due.is_some() => match killing {
                    Some(Killing::Asked(_)) => {
                        self.kept.order(Order::Kill);
                        let limit = KILL_LIMIT + KEEPERS_GRACE;
                        killing = Some(Killing::Forced(Instant::now() + limit));
                    }
                    Some(Killing::Forced(_)) | None => {
                        killing = None;
                        self.kept.give_up();
                    }
                },
                () = until(gone), if gone.is_some() => {
                    warn!(terminal = %self.id, "another process holds a terminal's pipe open: not waiting for it");
                    self.pipe = None;
                }
            }
        }
        tell(&self.events, HostEvent::Gone(self.id)).await;
    }

    /// Tells what was read.
    async fn said(&mut self) {
        if !self.buffer.is_empty() {
            let said = self.buffer.split().freeze();
            tell(&self.events, HostEvent::Output(self.id, said)).await;
        }
    }

    /// The command ended: tells all that it said before, then that.
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
            self.said().await;
        }
        debug!(terminal = %self.id, ?exit, "a terminal's command ended");
        tell(&self.events, HostEvent::Ended(self.id, exit)).await;
    }
}

/// Reads more; true at the end.
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

/// The name of a signal that ends processes.
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
