//! Files served to agents: read and written within a session's roots, and nowhere else.
//!
//! Each access has a thread of its own, a few at once: a disk that does not answer holds up what is asked of it,
//! never the loop nor the end of acpipe. A path is never checked first and opened then: it is opened from the handle
//! of a root in a way that cannot lead out of it (cap-std: `openat2` with `RESOLVE_BENEATH` on Linux).

mod place;
mod read;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_escapes;
mod write;

use crate::core::error::{Error, ErrorKind};
use crate::core::host::{Access, HostAnswer, HostEvent, Ticket};
use cap_std::fs::{OpenOptions, OpenOptionsExt as _};
pub use place::find;
use rustix::fs::OFlags;
use std::collections::VecDeque;
use std::io;
use tokio::sync::mpsc::Sender;

/// How many are under way at once.
const AT_ONCE: usize = 8;

/// How many may wait, and how many bytes may wait to be written with them.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 64 * 1024 * 1024;

/// The reads and writes that are under way or wait.
pub struct Files {
    events: Sender<HostEvent>,
    running: usize,
    waiting: VecDeque<Job>,
    waiting_bytes: usize,
}

struct Job {
    ticket: Ticket,
    roots: Vec<String>,
    access: Access,
}

impl Files {
    pub fn new(events: Sender<HostEvent>) -> Self {
        Self {
            events,
            running: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// Begins an access, or puts it behind others; where it is refused, that is given back.
    #[must_use]
    pub fn perform(
        &mut self,
        ticket: Ticket,
        roots: Vec<String>,
        access: Access,
    ) -> Option<HostEvent> {
        let job = Job {
            ticket,
            roots,
            access,
        };
        if self.running < AT_ONCE {
            return self.start(job);
        }
        let bytes = self.waiting_bytes + job.weight();
        if self.waiting.len() >= WAITING || bytes > WAITING_BYTES {
            let message = "too many files are being read and written; wait for the answers first";
            let error = Error::new(ErrorKind::Overloaded, message);
            return Some(HostEvent::File(ticket, Err(error)));
        }
        self.waiting_bytes = bytes;
        self.waiting.push_back(job);
        None
    }

    /// One is done: the next may begin.
    #[must_use]
    pub fn finished(&mut self) -> Option<HostEvent> {
        self.running = self.running.saturating_sub(1);
        let job = self.waiting.pop_front()?;
        self.waiting_bytes -= job.weight();
        self.start(job)
    }

    fn start(&mut self, job: Job) -> Option<HostEvent> {
        let ticket = job.ticket;
        let events = self.events.clone();
        let thread = std::thread::Builder::new().name("served file".into());
        // Where there is no thread, its end is told too: `finished` takes it back.
        self.running += 1;
        let spawned = thread.spawn(move || {
            let answer = access(&job.roots, &job.access);
            // The loop is gone only when nobody cares any more.
            let _ = events.blocking_send(HostEvent::File(job.ticket, answer));
        });
        let error = spawned.err()?;
        let message = format!("no thread for a file: {error}; try again with less running");
        let error = Error::new(ErrorKind::Resource, message);
        Some(HostEvent::File(ticket, Err(error)))
    }
}

impl Job {
    fn weight(&self) -> usize {
        match &self.access {
            Access::Read { .. } => 0,
            Access::Write { content, .. } => content.len(),
        }
    }
}

/// Reads or writes a file.
fn access(roots: &[String], access: &Access) -> Result<HostAnswer, Error> {
    match access {
        Access::Read { path, window } => read::read(path, roots, *window).map(HostAnswer::Content),
        Access::Write { path, content } => {
            write::write(path, roots, content)?;
            Ok(HostAnswer::Written)
        }
    }
}

/// How files are opened: neither a pipe without a writer nor a terminal may hold us up.
fn careful() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    options.custom_flags(flags.bits().cast_signed());
    options
}

/// What went wrong with a path, in words that help.
fn explain(path: &str, roots: &[String], what: &str, error: &io::Error) -> Error {
    let (kind, message) = match error.kind() {
        // How cap-std says it: no system call said no.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => (
            ErrorKind::InvalidParams,
            format!(
                "{path} leads out of the session's directories ({}) by .. or by a link \
                 (absolute links count as such); only what lies within is served",
                roots.join(", ")
            ),
        ),
        io::ErrorKind::NotFound => (
            ErrorKind::ResourceNotFound,
            format!("{path} could not be {what}: there is no such file"),
        ),
        io::ErrorKind::PermissionDenied => (
            ErrorKind::Resource,
            format!("{path} could not be {what}: {error}; check who may do that"),
        ),
        _ => (
            ErrorKind::Resource,
            format!("{path} could not be {what}: {error}"),
        ),
    };
    Error::new(kind, message).with("path", path)
}

/// It is there, but no plain file.
fn no_file(path: &str) -> Error {
    let message = format!("{path} is no plain file: directories, pipes and devices are not served");
    Error::new(ErrorKind::InvalidParams, message).with("path", path)
}
