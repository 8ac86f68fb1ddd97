//! Files served to agents, limited to a session's roots.
//!
//! Each access has its own thread, with a few at once: a disk that does not answer delays its own accesses,
//! but not the loop or the end of acpipe. A path is never checked first and opened afterwards: it is opened
//! from the handle of a root in a way that cannot lead out of it (cap-std: `openat2` with `RESOLVE_BENEATH`
//! on Linux).

mod place;
mod read;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_escapes;
mod write;

use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::host::{Access, HostAnswer, HostEvent, Ticket};
use cap_std::fs::{OpenOptions, OpenOptionsExt as _};
pub use place::Roots;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::Sender;

/// Maximum number of concurrent accesses.
const AT_ONCE: usize = 8;

/// Maximum number of queued accesses, and of bytes queued to be written.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// Running and queued accesses.
pub struct FileAccesses {
    events: Sender<HostEvent>,
    running: usize,
    waiting: VecDeque<AccessJob>,
    waiting_bytes: usize,
    /// Open directories by session.
    roots: HashMap<String, Arc<Roots>>,
    /// Stop flags of the running accesses.
    stops: HashMap<Ticket, Arc<AtomicBool>>,
}

struct AccessJob {
    ticket: Ticket,
    roots: Arc<Roots>,
    access: Access,
}

impl FileAccesses {
    pub fn new(events: Sender<HostEvent>) -> Self {
        Self {
            events,
            running: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            roots: HashMap::new(),
            stops: HashMap::new(),
        }
    }

    /// Opens the directories of a session, unless they are open.
    pub fn hold(&mut self, session: String, roots: Vec<String>) {
        let is_same = |held: &Arc<Roots>| held.given == roots;
        if !self.roots.get(&session).is_some_and(is_same) {
            self.roots.insert(session, Arc::new(Roots::open(roots)));
        }
    }

    /// Closes the directories of a session.
    pub fn release(&mut self, session: &str) {
        self.roots.remove(session);
    }

    /// Returns the directories of a session, opening them if necessary.
    #[must_use]
    pub fn roots(&mut self, session: &str, roots: Vec<String>) -> Arc<Roots> {
        self.hold(session.to_owned(), roots);
        let held = self.roots.get(session).map(Arc::clone);
        held.unwrap_or_else(|| Arc::new(Roots::open(Vec::new())))
    }

    /// Stops an access whose request was answered, or removes it from the queue.
    pub fn stop(&mut self, ticket: Ticket) {
        if let Some(stop) = self.stops.get(&ticket) {
            stop.store(true, Ordering::Relaxed);
        }
        let at = self.waiting.iter().position(|job| job.ticket == ticket);
        if let Some(job) = at.and_then(|at| self.waiting.remove(at)) {
            self.waiting_bytes -= job.weight();
        }
    }

    /// Starts or queues an access; returns the error if it is rejected.
    #[must_use]
    pub fn perform(
        &mut self,
        ticket: Ticket,
        roots: Arc<Roots>,
        access: Access,
    ) -> Option<HostEvent> {
        let job = AccessJob {
            ticket,
            roots,
            access,
        };
        if self.running < AT_ONCE {
            return self.start(job);
        }
        let bytes = self.waiting_bytes + job.weight();
        if self.waiting.len() >= WAITING || bytes > WAITING_BYTES {
            let message = "too many file requests are open; wait for some responses first";
            let error = Error::new(ErrorKind::Overloaded, message);
            return Some(HostEvent::File(ticket, Err(error)));
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back(job);
        None
    }

    /// Removes a finished access and starts the next one; returns the error if that fails.
    #[must_use]
    pub fn finished(&mut self, ticket: Ticket) -> Option<HostEvent> {
        self.stops.remove(&ticket);
        self.running = self.running.saturating_sub(1);
        let job = self.waiting.pop_front()?;
        self.waiting_bytes -= job.weight();
        self.start(job)
    }

    fn start(&mut self, job: AccessJob) -> Option<HostEvent> {
        let ticket = job.ticket;
        let events = self.events.clone();
        let thread = std::thread::Builder::new().name("served file".into());
        // Counted before the thread exists: if it cannot be started, that is reported as an event, too, and
        // `finished` subtracts it.
        self.running += 1;
        let stop = Arc::new(AtomicBool::new(false));
        self.stops.insert(ticket, Arc::clone(&stop));
        let spawned = thread.spawn(move || {
            let answer = access(&job.roots, &job.access, &stop);
            // Fails only if the loop has ended; the event is not needed then.
            let _ = events.blocking_send(HostEvent::File(job.ticket, answer));
        });
        let error = spawned.err()?;
        let message = format!(
            "cannot start a thread to access a file: {error}; stop other processes and try again"
        );
        let error = Error::new(ErrorKind::Resource, message);
        Some(HostEvent::File(ticket, Err(error)))
    }
}

impl AccessJob {
    fn weight(&self) -> usize {
        match &self.access {
            Access::Read { .. } => 0,
            Access::Write { content, .. } => content.len(),
        }
    }
}

/// Reads or writes a file.
fn access(roots: &Roots, access: &Access, stop: &AtomicBool) -> Result<HostAnswer, Error> {
    match access {
        Access::Read { path, window } => {
            read::read(path, roots, *window, stop).map(HostAnswer::Content)
        }
        Access::Write { path, content } => {
            write::write(path, roots, content)?;
            Ok(HostAnswer::Written)
        }
    }
}

/// Returns options with which opening a pipe without a writer or a terminal does not block.
fn nonblocking_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
    options
}

/// Converts an I/O error to an error with a remedy.
fn explain(path: &str, roots: &Roots, what: &str, error: &io::Error) -> Error {
    let (kind, message) = match error.kind() {
        // cap-std's error for a path that leaves the root: it has no errno.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => (
            ErrorKind::InvalidParams,
            format!(
                "cannot access {path}: .. or a symbolic link leads out of the session's directories ({}) (absolute \
                     links always do); use a path inside them",
                roots.list()
            ),
        ),
        io::ErrorKind::NotFound => (
            ErrorKind::ResourceNotFound,
            format!("cannot {what} {path}: {}", system_text(error)),
        ),
        io::ErrorKind::PermissionDenied => (
            ErrorKind::Resource,
            format!(
                "cannot {what} {path}: {}; check its permissions",
                system_text(error)
            ),
        ),
        _ => (
            ErrorKind::Resource,
            format!("cannot {what} {path}: {}", system_text(error)),
        ),
    };
    Error::new(kind, message).with("path", path)
}

/// Describes an error of the system with the name of its code: agents look for the text or for the name, as Node
/// and Python print them.
pub(super) fn system_text(error: &io::Error) -> String {
    let names = [
        (Errno::NOENT, "ENOENT"),
        (Errno::ACCESS, "EACCES"),
        (Errno::PERM, "EPERM"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::LOOP, "ELOOP"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::DQUOT, "EDQUOT"),
        (Errno::ROFS, "EROFS"),
        (Errno::TXTBSY, "ETXTBSY"),
        (Errno::IO, "EIO"),
    ];
    let code = Errno::from_io_error(error);
    let name = names.iter().find(|(known, _)| Some(*known) == code);
    match (name, error.kind()) {
        (Some((_, name)), _) => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            format!("{text} ({name})")
        }
        // cap-std reports some missing files without the system's code.
        (None, io::ErrorKind::NotFound) => "No such file or directory (ENOENT)".to_owned(),
        (None, _) => error.to_string(),
    }
}

/// Error: the path exists but is not a regular file.
fn not_a_file(path: &str, is_dir: bool) -> Error {
    let message = if is_dir {
        format!("cannot access {path}: Is a directory (EISDIR)")
    } else {
        format!("cannot access {path}: not a regular file (a pipe or device)")
    };
    Error::new(ErrorKind::InvalidParams, message).with("path", path)
}
