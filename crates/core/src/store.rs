//! Storage interface: what the core needs to store sessions.
//!
//! The calls return at once, as on a local disk. Operations that may take long (a sync, listing all sessions,
//! an append to a disk that does not answer) are answered later, as a [`StoreEvent`]. [`MemoryStore`] stores
//! sessions in memory.

mod optional;
mod volatile;

use super::agent_command::{AgentCommand, shown_line};
use super::agent_session_record::AgentSessionRecord;
use super::session_id::{IdHolder, lexical};
use acpipe_model::error::Error;
pub use optional::OptionalStore;
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::time::Duration;
pub use volatile::MemoryStore;

pub trait Store: Debug + Send {
    /// Returns `true` if a session is stored under this id.
    ///
    /// # Errors
    /// The id cannot be the name of a file.
    fn has(&self, id: &str) -> Result<bool, Error>;

    /// Returns whether this id is in use, and the directory of the session that uses it. The log is not
    /// opened: another program may have it open.
    ///
    /// # Errors
    /// The id cannot be the name of a file.
    fn holder(&self, id: &str) -> Result<IdHolder, Error> {
        Ok(if self.has(id)? {
            IdHolder::Unknown
        } else {
            IdHolder::Free
        })
    }

    /// Converts the path of a directory to the form in which paths are compared: normalised and, if the store
    /// is on a disk, with links resolved.
    fn real_path(&self, path: &str) -> String {
        lexical(path)
    }

    /// Opens the log of a session for this program exclusively; creates it if it does not exist.
    ///
    /// # Errors
    /// Another program has the log open, the log cannot be created or read, or the id cannot be the name of a
    /// file.
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error>;

    /// Requests cards; those of more sessions than the query selects may be returned. Returns `true` if a
    /// [`StoreEvent::Listed`] will follow, `false` if there is no session apart from open ones.
    fn list(&mut self, ticket: u64, query: CardQuery) -> bool;

    /// Ends the claims of stored sessions, apart from `session` and open ones, on the id of a record: the agent created a
    /// session under it for `session`, which itself need not be stored.
    fn end_claims(&mut self, session: &str, created: &AgentSessionRecord) {
        let _ = (session, created);
    }
}

/// Selection of cards for a list; by default all of them.
#[derive(Debug, Clone, Default)]
pub struct CardQuery {
    /// Selects sessions that follow this one in the list: time of the last activity, and id.
    pub before: Option<(String, String)>,
    pub cwd: Option<String>,
    /// Selects sessions to which an agent gave this id.
    pub agent_session: Option<String>,
    /// Leaves out sessions without messages and title: they were opened, and never used.
    pub used: bool,
    /// Selects at most this number of sessions: those with the latest activity. Among equal times the larger
    /// id is first.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendProgress {
    /// All lines are in the file.
    Written,
    /// The disk has not answered yet; a [`StoreEvent::Appended`] follows when it has.
    Waiting,
}

/// Function that writes a large record; may be called more than once.
pub type Write<'a> = dyn Fn(&mut dyn io::Write) -> io::Result<()> + 'a;

/// Writer that counts bytes and discards them.
#[derive(Debug, Default)]
pub struct Count(pub u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// File of one log. Dropping it allows other programs to open it.
pub trait LogFile: Debug + Send {
    /// Returns the offset of the end, including bytes that were dropped at the beginning.
    fn end(&self) -> u64;

    /// Returns the number of bytes that were dropped at the beginning.
    fn begin(&self) -> u64 {
        0
    }

    /// Appends all lines or none.
    ///
    /// # Errors
    /// The disk is full or fails; the existing content is unchanged.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Appends all lines or none, and waits at most `patience` for a disk that does not answer. After
    /// [`AppendProgress::Waiting`] the lines are still being written: nothing may be appended until
    /// [`LogFile::appended`] returns something else.
    ///
    /// # Errors
    /// As [`LogFile::append`].
    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<AppendProgress> {
        let _ = patience;
        self.append(lines).map(|()| AppendProgress::Written)
    }

    /// Returns the progress of the last [`LogFile::append_within`], after waiting at most `patience`.
    ///
    /// # Errors
    /// As [`LogFile::append`]; reported once.
    fn appended(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        let _ = patience;
        Ok(AppendProgress::Written)
    }

    /// Returns `true` if the disk may take long: then [`LogFile::append_from`] must not be called.
    fn is_slow(&self) -> bool {
        false
    }

    /// Appends all that `write` writes, or nothing; for records that are too large to be copied in memory.
    ///
    /// # Errors
    /// As [`LogFile::append`].
    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        let mut lines = Vec::new();
        write(&mut lines)?;
        self.append(&lines)
    }

    /// Reads an existing range.
    ///
    /// # Errors
    /// The disk fails.
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Truncates the log to `len`, to remove an incomplete line left by a crash.
    ///
    /// # Errors
    /// The disk fails.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Makes everything written so far survive a crash of the machine. Returns `true` if a
    /// [`StoreEvent::Synced`] will follow, `false` if there is nothing to wait for.
    fn sync(&mut self, ticket: u64) -> bool;

    /// Returns `true` if a turn fails whose sync has failed with this error.
    fn needs_sync(&self, error: &Error) -> bool {
        let _ = error;
        true
    }

    /// Stores the session's card.
    fn describe(&mut self, card: &Card);

    fn card(&self) -> Option<Card> {
        None
    }

    /// Returns the stored index of the log, which may be damaged or belong to other content.
    fn index(&self) -> Option<Vec<u8>> {
        None
    }

    /// Returns the number of bytes by which the log grows before its index is stored again; `None` if no index
    /// is stored.
    fn index_interval(&self) -> Option<u64> {
        None
    }

    fn store_index(&mut self, index: Vec<u8>) {
        drop(index);
    }

    /// Replaces the content of the log with these lines; the old content is archived if `archive` is set,
    /// else deleted.
    ///
    /// # Errors
    /// The disk fails; the log is unchanged.
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()>;

    /// Removes the log, or archives it under another name if `archive` is set.
    ///
    /// # Errors
    /// The disk fails.
    fn remove(&mut self, archive: bool) -> io::Result<()>;
}

/// Deferred answer of a store.
#[derive(Debug)]
pub enum StoreEvent {
    /// Everything appended before the call to [`LogFile::sync`] is on the disk, or the sync failed.
    Synced {
        /// Ticket of the call to [`LogFile::sync`].
        ticket: u64,
        outcome: Result<(), Error>,
    },
    /// The disk has answered an append that returned [`AppendProgress::Waiting`], for any session.
    Appended,
    /// The requested cards, in no particular order.
    Listed {
        /// Ticket of the call to [`Store::list`].
        ticket: u64,
        outcome: Result<Vec<Card>, Error>,
    },
}

/// Summary of a session for lists: a file beside each log, so that lists need not read the logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// Session id of the client.
    pub session_id: String,
    /// Command line of the agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Session id of the agent.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// Name of the agent; absent for the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// Command with which the agent is started again; absent if an earlier version stored the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<AgentCommand>,
    /// Session ids of all agents that had the session, the current one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentSessionRecord>,
    /// Working directory.
    #[serde(default)]
    pub cwd: String,
    /// Title of the session.
    #[serde(default)]
    pub title: Option<String>,
    /// Current mode, by the agent's id.
    #[serde(default)]
    pub mode: Option<String>,
    /// Current model, by the agent's id.
    #[serde(default)]
    pub model: Option<String>,
    /// Time of the session's creation, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// Time of the last activity, RFC 3339.
    #[serde(default)]
    pub updated_at: String,
    /// Number of messages.
    #[serde(default)]
    pub messages: u64,
    /// Number of the last chunk.
    #[serde(default)]
    pub seq: u64,
    /// Length of the log in bytes when the card was written; a longer log is newer than its card.
    #[serde(default)]
    pub bytes: u64,
}

impl Card {
    /// Returns `false` for a session that was opened, and never used: it has neither messages nor a title.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.messages > 0 || self.title.is_some()
    }
}

impl Card {
    pub fn shown_agent(&self) -> Option<String> {
        shown_line(self.agent_command.as_ref(), self.agent.as_deref())
    }
}

pub fn is_same_directory(store: &dyn Store, a: &str, b: &str) -> bool {
    a == b || store.real_path(a) == store.real_path(b)
}
