//! The seam to the disk: what the bridge asks of whatever keeps sessions.
//!
//! The calls answer at once, as a local disk does; only what takes long (reaching the disk for sure, looking
//! through all sessions, an append to a disk that does not answer) is answered later, as a [`StoreEvent`]. [`Volatile`]
//! keeps sessions in memory.

mod volatile;

use super::agent_command::AgentCommand;
use super::error::Error;
use super::session_id::{Holder, lexical};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::time::Duration;
pub use volatile::Volatile;

/// Keeps the logs of sessions.
pub trait Store: Debug {
    /// Whether there is something under this id.
    ///
    /// # Errors
    /// The id cannot be the name of a file.
    fn has(&self, id: &str) -> Result<bool, Error>;

    /// Whether this id is in use, and by a session of which directory; the log is not opened, so that another
    /// program may have it.
    ///
    /// # Errors
    /// The id cannot be the name of a file.
    fn holder(&self, id: &str) -> Result<Holder, Error> {
        Ok(if self.has(id)? {
            Holder::Unknown
        } else {
            Holder::Free
        })
    }

    /// The path of a directory by which it is compared with others: normalised and, where the store is on a disk,
    /// with links resolved.
    fn real_path(&self, path: &str) -> String {
        lexical(path)
    }

    /// Opens the log of a session for this program alone; made where it is not there.
    ///
    /// # Errors
    /// Another program has it, it cannot be made or read, or the id cannot be the name of a file.
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error>;

    /// Asks for the cards of all sessions; true where [`StoreEvent::Listed`] will answer, false where there is
    /// none that is not open.
    fn list(&mut self, ticket: u64) -> bool;
}

/// How far an append got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// All lines are in the file.
    Written,
    /// The disk has not answered yet. [`StoreEvent::Appended`] follows when it has.
    Waiting,
}

/// Writes something large; may be asked to more than once.
pub type Write<'a> = dyn Fn(&mut dyn io::Write) -> io::Result<()> + 'a;

/// Takes note of how much is written, and of nothing else.
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

/// The bytes of one log. Dropping it lets other programs have it.
pub trait LogFile: Debug {
    /// Where it ends: how many bytes there are, those included that were given up at the beginning.
    fn end(&self) -> u64;

    /// How many bytes at the beginning were given up.
    fn begin(&self) -> u64 {
        0
    }

    /// Appends all of it or nothing.
    ///
    /// # Errors
    /// The disk is full or fails; what was there before is as it was.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;

    /// Appends all of it or nothing, and waits no longer than `patience` for a disk that does not answer. After
    /// [`Progress::Waiting`] the lines are still being written: nothing may be appended until [`LogFile::appended`] returns
    /// something else.
    ///
    /// # Errors
    /// As [`LogFile::append`].
    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<Progress> {
        let _ = patience;
        self.append(lines).map(|()| Progress::Written)
    }

    /// What became of the lines of the last [`LogFile::append_within`].
    ///
    /// # Errors
    /// As [`LogFile::append`]; reported once.
    fn appended(&mut self, patience: Duration) -> io::Result<Progress> {
        let _ = patience;
        Ok(Progress::Written)
    }

    /// Whether the disk may take long: [`LogFile::append_from`] must not be called then.
    fn is_slow(&self) -> bool {
        false
    }

    /// Appends all of what `write` writes or nothing; that is too large to be in memory once more.
    ///
    /// # Errors
    /// As [`LogFile::append`].
    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        let mut lines = Vec::new();
        write(&mut lines)?;
        self.append(&lines)
    }

    /// Reads a part that is there.
    ///
    /// # Errors
    /// The disk fails.
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>>;

    /// Cuts off what a crash left unfinished at the end.
    ///
    /// # Errors
    /// The disk fails.
    fn cut(&mut self, len: u64) -> io::Result<()>;

    /// Sees to it that everything outlasts a crash of the machine; true where [`StoreEvent::Synced`] will
    /// answer, false where nobody has to wait for it.
    fn sync(&mut self, ticket: u64) -> bool;

    /// Keeps what lists show of the session.
    fn describe(&mut self, card: &Card);

    /// What lists show of the session, as it was kept last.
    fn card(&self) -> Option<Card> {
        None
    }

    /// Begins the log anew with these lines; what was in it is kept apart with `archive`, else it is gone.
    ///
    /// # Errors
    /// The disk fails; the log is as it was.
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()>;

    /// Removes the log, or with `archive` keeps it apart under another name.
    ///
    /// # Errors
    /// The disk fails.
    fn remove(&mut self, archive: bool) -> io::Result<()>;
}

/// What a store answers later.
#[derive(Debug)]
pub enum StoreEvent {
    /// What was appended before the call is on the disk for sure, or cannot be.
    Synced {
        ticket: u64,
        outcome: Result<(), Error>,
    },
    /// The disk has answered an append that returned [`Progress::Waiting`], of any session.
    Appended,
    /// The cards of all sessions, in no order.
    Listed {
        ticket: u64,
        outcome: Result<Vec<Card>, Error>,
    },
}

/// What lists show of a session: a file of its own beside each log, so that nobody has to read the logs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Card {
    /// The client's id.
    pub session_id: String,
    /// The agent's command line.
    #[serde(default)]
    pub agent: Option<String>,
    /// The agent's id.
    #[serde(default)]
    pub agent_session_id: Option<String>,
    /// Name of the agent; absent for the default agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// How the agent is started again; absent where an earlier version stored the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_command: Option<AgentCommand>,
    /// Working directory.
    #[serde(default)]
    pub cwd: String,
    /// What it is about.
    #[serde(default)]
    pub title: Option<String>,
    /// The mode it is in.
    #[serde(default)]
    pub mode: Option<String>,
    /// The model it uses.
    #[serde(default)]
    pub model: Option<String>,
    /// When it was made, RFC 3339.
    #[serde(default)]
    pub created_at: String,
    /// When something last happened in it, RFC 3339.
    #[serde(default)]
    pub updated_at: String,
    /// How many messages it has.
    #[serde(default)]
    pub messages: u64,
    /// The number of its last chunk.
    #[serde(default)]
    pub seq: u64,
    /// Length of the log when this was written: one that is longer knows more.
    #[serde(default)]
    pub bytes: u64,
}
