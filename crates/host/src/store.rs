//! Session store on disk: one log per session in one directory, each open in one process at a time.
//!
//! ```text
//! <state directory>/sessions/<id>.jsonl    the log, locked while a process has the session open
//!                            <id>.json     its card: the data shown in lists
//!                            <id>.index    index of a long log
//!                    cards.cache           copies of all cards, if there are many
//!                    archive/<id>.<time>.jsonl
//! ```

mod card;
mod cards;
mod claims;
mod file;
mod jobs;
mod leftovers;
mod locked;
mod memory;
mod names;
mod pool;
mod replaced;
mod speed;
mod tail;
mod unlinked;
mod worker;
mod writer;

use crate::{is_foreign, make_private, regular};
use acpipe_core::agent_session_record::AgentSessionRecord;
use acpipe_core::log::Log;
use acpipe_core::session_id::{IdHolder, lexical};
use acpipe_core::store::{Card, CardQuery, LogFile, Store};
use acpipe_json::read_bytes;
use acpipe_model::error::{Error, ErrorKind};
pub use file::ReadOnly;
use file::{LockedLog, LogResources};
pub use leftovers::{Swept, archived, sweep};
pub use memory::MemorySessions;
pub use names::escaped;
use pool::Pool;
use speed::Speed;
use std::fs;
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
pub use worker::StoreEvents;
use worker::Worker;

/// Subdirectories of the state directory.
const SESSIONS: &str = "sessions";
const ARCHIVE: &str = "archive";

/// When written data must be synced to the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the summary of its turn is sent.
    Turn,
    /// Never explicitly: the data survives the end of acpipe, but maybe not a crash of the machine.
    None,
}

/// Sessions of a state directory.
#[derive(Debug)]
pub struct DiskSessions {
    sessions: PathBuf,
    means: LogResources,
}

/// Returns the default state directory: `acpipe` in the platform's directory for program state.
///
/// # Errors
/// The user has no home directory.
pub fn state_dir() -> Result<PathBuf, Error> {
    let base = dirs::state_dir().or_else(dirs::data_local_dir);
    let base = base.ok_or_else(|| {
        let message =
            "cannot find the state directory: no home directory is known; set one with --state-dir";
        Error::new(ErrorKind::Internal, message)
    })?;
    Ok(base.join("acpipe"))
}

impl DiskSessions {
    /// Opens the store under `state` and creates its directories.
    ///
    /// # Errors
    /// The directories cannot be created.
    pub fn open(state: &Path, durability: Durability) -> io::Result<(Self, StoreEvents)> {
        let (store, events) = Self::begin(state, durability)?;
        store.make_directories()?;
        Ok((store, events))
    }

    /// Opens the store without creating its directories. If they cannot be created later, opening a session
    /// fails.
    ///
    /// # Errors
    /// The store's thread could not be started.
    pub fn begin(state: &Path, durability: Durability) -> io::Result<(Self, StoreEvents)> {
        let (worker, events) = Worker::start()?;
        let means = LogResources {
            archive: state.join(ARCHIVE),
            durability,
            worker,
            pool: Pool::new(),
            speed: Speed::new(),
        };
        let sessions = state.join(SESSIONS);
        Ok((Self { sessions, means }, events))
    }

    fn make_directories(&self) -> io::Result<()> {
        make_private(&self.sessions)?;
        make_private(&self.means.archive)
    }

    /// Opens a log. Directories that were removed meanwhile are created again; a log that is not writable is
    /// opened for reading.
    fn open_log(&self, log: &Path) -> io::Result<Box<dyn LogFile>> {
        let open = || LockedLog::open(log.to_owned(), self.means.clone());
        let opened = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.make_directories().and_then(|()| open())
            }
            opened => opened,
        };
        match opened {
            Ok(file) => Ok(Box::new(file)),
            Err(e) if is_read_only(&e) && !is_foreign(&e) => match ReadOnly::open(log) {
                Ok(file) => Ok(Box::new(file)),
                Err(_) => Err(e),
            },
            Err(e) => Err(e),
        }
    }
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Checks that sessions can be stored in a state directory, without creating it.
///
/// # Errors
/// The directory, or the nearest one above it that exists, is not writable.
pub fn check_writable(state: &Path) -> io::Result<()> {
    let existing = state.ancestors().find(|dir| dir.exists());
    let dir = existing.unwrap_or(Path::new("/"));
    if !dir.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    Ok(rustix::fs::access(dir, access)?)
}

impl Store for DiskSessions {
    fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(names::log(&self.sessions, id)?.exists())
    }

    fn holder(&self, id: &str) -> Result<IdHolder, Error> {
        let log = names::log(&self.sessions, id)?;
        Ok(match directory(&log) {
            Ok(Some(cwd)) => IdHolder::Directory(cwd),
            Err(e) if e.kind() == io::ErrorKind::NotFound => IdHolder::Free,
            // Opening the session reports the actual error.
            Ok(None) | Err(_) => IdHolder::Unknown,
        })
    }

    fn real_path(&self, path: &str) -> String {
        real_path(path)
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        let path = names::log(&self.sessions, id)?;
        match self.open_log(&path) {
            Ok(file) => Ok(file),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                let message = format!(
                    "session {id:?} is in use by another process; close it there (session/close), use --daemon if the \
                         daemon has it (`acpipe daemon status`), or use another session; if its program was just killed, try again \
                         in a few seconds"
                );
                Err(Error::new(ErrorKind::SessionLocked, message).with("sessionId", id))
            }
            Err(e) => {
                let message = format!(
                    "cannot open session {id:?} in {}: {e}; choose another directory with --state-dir, or use \
                         --persist never",
                    self.sessions.display()
                );
                Err(Error::new(ErrorKind::Storage, message))
            }
        }
    }

    fn end_claims(&mut self, session: &str, created: &AgentSessionRecord) {
        let worker = &self.means.worker;
        worker.end_claims(self.sessions.clone(), session, created);
    }

    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        let sessions = self.sessions.clone();
        self.means.worker.list(sessions, ticket, query);
        true
    }
}

/// Opens the log of a session for reading, even if another process has the session.
///
/// # Errors
/// The session does not exist, or its log cannot be read.
pub fn read_only(state: &Path, id: &str) -> Result<ReadOnly, Error> {
    let log = names::log(&state.join(SESSIONS), id)?;
    ReadOnly::open(&log).map_err(|e| {
        if e.kind() == io::ErrorKind::NotFound {
            let message = format!(
                "session {id:?} not found in {}; list the sessions with acpipe sessions list",
                state.display()
            );
            return Error::new(ErrorKind::SessionNotFound, message);
        }
        let message = format!("cannot read session {id:?} from {}: {e}", log.display());
        Error::new(ErrorKind::Storage, message)
    })
}

/// Returns `true` if the log of a session must not be used because of its owner or mode.
#[must_use]
pub fn is_refused(state: &Path, id: &str) -> bool {
    let log = names::log(&state.join(SESSIONS), id);
    log.is_ok_and(|log| {
        let opened = regular::open_to_read(&log);
        opened.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    })
}

/// Maximum length of a log's first line that is read for the directory, in bytes.
const FIRST_LINE: u64 = 256 << 10;

/// Returns the directory of a log's session, from its first line or else its card.
fn directory(log: &Path) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut file = io::BufReader::new(regular::open_to_read(log)?.take(FIRST_LINE));
    file.read_until(b'\n', &mut line)?;
    let first = read_bytes::<Card>(&line).map(|card| card.cwd);
    match first {
        Ok(cwd) if !cwd.is_empty() => Ok(Some(cwd)),
        _ => Ok(card(log)?.map(|card| card.cwd)),
    }
}

/// Returns the canonical form by which directories are compared: absolute, with links resolved as far as the
/// path exists.
#[must_use]
pub fn real_path(path: &str) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let real = path.ancestors().find_map(|existing| {
        let real = fs::canonicalize(existing).ok()?;
        Some(real.join(path.strip_prefix(existing).ok()?))
    });
    lexical(&real.unwrap_or(path).to_string_lossy())
}

/// Returns the card of a session; `None` if it is not stored.
///
/// # Errors
/// The id is not valid as a file name, or the log cannot be read.
pub fn stored(state: &Path, id: &str) -> Result<Option<Card>, Error> {
    let log = names::log(&state.join(SESSIONS), id)?;
    card(&log).map_err(|e| {
        let message = format!("cannot read session {id:?} from {}: {e}", log.display());
        Error::new(ErrorKind::Storage, message)
    })
}

/// Returns the cards of all sessions in a state directory, unsorted.
///
/// # Errors
/// The directory cannot be read.
pub fn cards(state: &Path) -> io::Result<Vec<Card>> {
    let all = cards::list(&state.join(SESSIONS), &[CardQuery::default()])?;
    Ok(all.into_iter().flatten().collect())
}

/// Returns the card of a log. If the card does not cover the whole log, it is computed from the log.
fn card(log: &Path) -> io::Result<Option<Card>> {
    if let Some(card) = whole_card(log) {
        return Ok(Some(card));
    }
    let read = ReadOnly::open(log).map(|file| Log::open(Box::new(file)));
    Ok(match read {
        Ok(Ok(log)) if log.identity().is_some() => Some(log.card()),
        Ok(_) => None,
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    })
}

/// Returns the card of a log if it covers the whole log.
fn whole_card(log: &Path) -> Option<Card> {
    let len = fs::metadata(log).ok()?.len();
    card::read(log).filter(|card| card.bytes == len)
}

/// Returns the milliseconds since 1970, for file names.
fn stamp() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}
