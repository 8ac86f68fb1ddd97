//! Sessions on the disk: one log each in one directory, for one program at a time.
//!
//! ```text
//! <state directory>/sessions/<id>.jsonl    the log, locked while a program has the session
//!                            <id>.json     its card: what lists show
//!                    archive/<id>.<time>.jsonl
//! ```

mod card;
mod file;
mod jobs;
mod leftovers;
mod memory;
mod names;
mod pool;
mod speed;
mod tail;
mod unlinked;
mod worker;
mod writer;

use crate::core::error::{Error, ErrorKind};
use crate::core::log::Log;
use crate::core::session_id::{Holder, lexical};
use crate::core::store::{Card, LogFile, Store};
use crate::shell::regular;
use anyhow::Context as _;
pub use file::ReadOnly;
use file::{File, Means};
pub use leftovers::{archived, sweep};
pub use memory::Memory;
use pool::Pool;
use speed::Speed;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tracing::warn;
pub use worker::Events;
use worker::Worker;

/// Where logs and their cards are.
const SESSIONS: &str = "sessions";
const ARCHIVE: &str = "archive";

/// When what was written must be on the disk for sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before the summary of its turn is given.
    Turn,
    /// Whenever the system likes: it outlasts acpipe, not a crash of the machine.
    None,
}

/// The sessions of a state directory.
#[derive(Debug)]
pub struct Files {
    sessions: PathBuf,
    means: Means,
}

/// The directory where the platform keeps the state of programs, `acpipe` in it.
///
/// # Errors
/// The user has no home directory.
pub fn state_dir() -> anyhow::Result<PathBuf> {
    let base = dirs::state_dir().or_else(dirs::data_local_dir);
    let base = base.context("there is no home directory: name a place with --state-dir")?;
    Ok(base.join("acpipe"))
}

impl Files {
    /// The sessions under `state`, whose directories are made where they are not there.
    ///
    /// # Errors
    /// They cannot be made.
    pub fn open(state: &Path, durability: Durability) -> io::Result<(Self, Events)> {
        let (store, events) = Self::begin(state, durability)?;
        store.make_directories()?;
        Ok((store, events))
    }

    /// The same without making the directories: where they cannot be made, each session that is opened is an error.
    ///
    /// # Errors
    /// There is no thread.
    pub fn begin(state: &Path, durability: Durability) -> io::Result<(Self, Events)> {
        let (worker, events) = Worker::start()?;
        let means = Means {
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

    /// Opens a log. The directories may have been removed meanwhile; of a log that cannot be written what is there can
    /// be read.
    fn open_log(&self, log: &Path) -> io::Result<Box<dyn LogFile>> {
        let open = || File::open(log.to_owned(), self.means.clone());
        let opened = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.make_directories().and_then(|()| open())
            }
            opened => opened,
        };
        match opened {
            Ok(file) => Ok(Box::new(file)),
            Err(e) if is_read_only(&e) => match ReadOnly::open(log) {
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

/// Makes a directory that others cannot look into.
pub fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

impl Store for Files {
    fn has(&self, id: &str) -> Result<bool, Error> {
        Ok(names::log(&self.sessions, id)?.exists())
    }

    fn holder(&self, id: &str) -> Result<Holder, Error> {
        let log = names::log(&self.sessions, id)?;
        Ok(match directory(&log) {
            Ok(Some(cwd)) => Holder::Directory(cwd),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Holder::Free,
            // Opening it shows what is wrong with it.
            Ok(None) | Err(_) => Holder::Unknown,
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
                    "another process has session {id:?}: end it there (session/close), or use another session"
                );
                Err(Error::new(ErrorKind::SessionLocked, message).with("sessionId", id))
            }
            Err(e) => {
                let message = format!(
                    "session {id:?} cannot be opened in {}: {e}; see --state-dir and --persist never",
                    self.sessions.display()
                );
                Err(Error::new(ErrorKind::Storage, message))
            }
        }
    }

    fn list(&mut self, ticket: u64) -> bool {
        self.means.worker.list(self.sessions.clone(), ticket);
        true
    }
}

/// The log of a session, to be read whoever has it.
///
/// # Errors
/// There is none, or it cannot be read.
pub fn read_only(state: &Path, id: &str) -> Result<ReadOnly, Error> {
    let log = names::log(&state.join(SESSIONS), id)?;
    ReadOnly::open(&log).map_err(|e| {
        if e.kind() == io::ErrorKind::NotFound {
            let message = format!(
                "there is no session {id:?} in {}: acpipe sessions list shows what there is",
                state.display()
            );
            return Error::new(ErrorKind::SessionNotFound, message);
        }
        let message = format!("session {id:?} cannot be read from {}: {e}", log.display());
        Error::new(ErrorKind::Storage, message)
    })
}

/// The longest first line of a log that is read for its directory alone, in bytes.
const FIRST_LINE: u64 = 256 << 10;

/// The directory of a log's session, of which the first line tells.
fn directory(log: &Path) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut file = io::BufReader::new(regular::open_to_read(log)?.take(FIRST_LINE));
    file.read_until(b'\n', &mut line)?;
    let first = serde_json::from_slice::<Card>(&line).map(|card| card.cwd);
    match first {
        Ok(cwd) if !cwd.is_empty() => Ok(Some(cwd)),
        _ => Ok(card(log)?.map(|card| card.cwd)),
    }
}

/// A path by which directories are compared: absolute, with links resolved as far as the path exists.
#[must_use]
pub fn real_path(path: &str) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let real = path.ancestors().find_map(|existing| {
        let real = fs::canonicalize(existing).ok()?;
        Some(real.join(path.strip_prefix(existing).ok()?))
    });
    lexical(&real.unwrap_or(path).to_string_lossy())
}

/// The card of one session, if it is stored.
///
/// # Errors
/// The id cannot be the name of a file, or the log cannot be read.
pub fn stored(state: &Path, id: &str) -> Result<Option<Card>, Error> {
    let log = names::log(&state.join(SESSIONS), id)?;
    card(&log).map_err(|e| {
        let message = format!("session {id:?} cannot be read from {}: {e}", log.display());
        Error::new(ErrorKind::Storage, message)
    })
}

/// The cards of all sessions in a state directory, in no order.
///
/// # Errors
/// The directory cannot be read.
pub fn cards(state: &Path) -> io::Result<Vec<Card>> {
    cards_in(&state.join(SESSIONS))
}

fn cards_in(sessions: &Path) -> io::Result<Vec<Card>> {
    let entries = match fs::read_dir(sessions) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut cards = Vec::new();
    for entry in entries {
        let log = entry?.path();
        if log.extension().is_some_and(|e| e == names::LOG) {
            match card(&log) {
                Ok(card) => cards.extend(card),
                // One that cannot be read hides no other.
                Err(error) => warn!(log = %log.display(), %error, "a session is left out"),
            }
        }
    }
    Ok(cards)
}

/// The card of a log; where it does not tell of all of the log, that is read.
fn card(log: &Path) -> io::Result<Option<Card>> {
    let len = match fs::metadata(log) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?.len(),
    };
    if let Some(card) = card::read(log).filter(|card| card.bytes == len) {
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

/// Milliseconds since 1970, for names.
fn stamp() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}
