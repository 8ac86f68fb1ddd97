//! A session's log on disk.

use super::locked::{lock, private};
use super::pool::{LogSlot, Pool};
use super::replaced::{Inode, inode};
use super::speed::Speed;
use super::tail::LogEnd;
use super::worker::Worker;
use super::writer::LogWriter;
use super::{Durability, card, names, stamp};
use crate::{make_private, regular};
use acpipe_core::store::{AppendProgress, Card, LogFile, Write};
use rustix::io::Errno;
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes by which a log grows before its index is stored again: they are read in a few milliseconds.
const INDEX_INTERVAL: u64 = 4 << 20;

/// Maximum size of an index in bytes; for a larger one the log is read instead.
const MAX_INDEX_BYTES: u64 = 16 << 20;

/// Log that this process has locked. Its file may be closed temporarily because too many are open.
#[derive(Debug)]
pub struct LockedLog {
    path: PathBuf,
    archive: PathBuf,
    slot: Arc<LogSlot>,
    pool: Pool,
    /// Identity of the file, by which a replacement of it is detected.
    inode: Inode,
    tail: LogEnd,
    /// Set after removal: nothing more is written.
    removed: bool,
    durability: Durability,
    worker: Worker,
    speed: Speed,
    /// Thread that appends while the disk is slow; `None` until it is first needed.
    writer: Option<LogWriter>,
    /// The append in progress on the writer thread, if any.
    awaited: Option<Awaited>,
}

/// Append in progress on the writer thread.
#[derive(Debug)]
struct Awaited {
    since: Instant,
    /// Tickets of syncs to start after the append.
    tickets: Vec<u64>,
}

/// Resources shared by all logs of a store.
#[derive(Debug, Clone)]
pub struct LogResources {
    pub archive: PathBuf,
    pub durability: Durability,
    pub worker: Worker,
    pub pool: Pool,
    pub speed: Speed,
}

impl LockedLog {
    /// Opens and locks a log; fails with `WouldBlock` if another process has it.
    pub fn open(path: PathBuf, means: LogResources) -> io::Result<Self> {
        let pool = means.pool;
        let file = with_descriptor(&pool, || lock(&path, true))?;
        let metadata = file.metadata()?;
        means.speed.note_place(&file);
        let tail = LogEnd {
            len: metadata.len(),
            torn: false,
            seen: true,
        };
        Ok(Self {
            path,
            archive: means.archive,
            slot: pool.slot(file),
            pool,
            inode: inode(&metadata),
            tail,
            removed: false,
            durability: means.durability,
            worker: means.worker,
            speed: means.speed,
            writer: None,
            awaited: None,
        })
    }

    /// Returns the file handle, reopening the file if it was closed.
    fn handle(&self) -> io::Result<Arc<fs::File>> {
        if let Some(handle) = self.pool.get(&self.slot) {
            return Ok(handle);
        }
        let file = with_descriptor(&self.pool, || lock(&self.path, false))?;
        let metadata = file.metadata()?;
        if inode(&metadata) != self.inode || (metadata.len() != self.tail.len && !self.tail.torn) {
            let message = "another process changed the file";
            return Err(io::Error::new(
                io::ErrorKind::StaleNetworkFileHandle,
                message,
            ));
        }
        self.pool.put(&self.slot, file);
        self.pool
            .get(&self.slot)
            .ok_or_else(|| io::Error::other("the file was closed"))
    }

    /// Fails if nothing can be appended.
    fn check_writable(&self) -> io::Result<()> {
        if self.removed {
            return Err(io::Error::other("the session was removed"));
        }
        self.check_idle()
    }

    /// Fails while an append is in progress on the writer thread.
    fn check_idle(&self) -> io::Result<()> {
        if self.awaited.is_some() {
            let message = "the disk does not respond";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }

    /// Returns the writer thread, starting it if necessary.
    fn writer(&mut self) -> io::Result<&LogWriter> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(LogWriter::start(self.worker.clone())?)),
        }
    }

    /// Starts a sync. Returns `true` if the ticket is answered later.
    fn sync_now(&self, ticket: u64) -> bool {
        if self.durability == Durability::None {
            return false;
        }
        // If the file cannot be reopened, the next append reports that.
        let Ok(handle) = self.handle() else {
            return false;
        };
        self.worker.sync(handle, ticket);
        true
    }

    /// Returns the path for archiving the log.
    /// Returns the path of a copy in the archive, whose directory may have been removed.
    fn archive_path(&self) -> io::Result<PathBuf> {
        make_private(&self.archive)?;
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        let name = format!("{name}.{}.{}", stamp(), names::LOG);
        Ok(self.archive.join(name))
    }

    fn card_path(&self) -> PathBuf {
        self.path.with_extension(names::CARD)
    }

    fn index_path(&self) -> PathBuf {
        self.path.with_extension(names::INDEX)
    }
}

/// Reads the index of a log; `None` if it is missing or too large.
fn index_of(log: &Path) -> Option<Vec<u8>> {
    regular::read(&log.with_extension(names::INDEX), MAX_INDEX_BYTES).ok()
}

/// Opens a file, closing others if too many are open.
fn with_descriptor(pool: &Pool, open: impl Fn() -> io::Result<fs::File>) -> io::Result<fs::File> {
    pool.make_room();
    let too_many = |e: &io::Error| {
        let errno = Errno::from_io_error(e);
        matches!(errno, Some(Errno::MFILE | Errno::NFILE))
    };
    match open() {
        Err(e) if too_many(&e) && pool.close_half() => open(),
        opened => opened,
    }
}

impl Drop for LockedLog {
    fn drop(&mut self) {
        if self.awaited.is_some() {
            // The lock is released when the writer thread is done.
            self.slot.detach();
        } else {
            self.slot.close();
        }
    }
}

impl LogFile for LockedLog {
    fn end(&self) -> u64 {
        self.tail.len
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.append_from(&|out| out.write_all(lines))
    }

    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<AppendProgress> {
        if !self.is_slow() {
            return self.append(lines).map(|()| AppendProgress::Written);
        }
        self.check_writable()?;
        let (file, tail) = (self.handle()?, self.tail);
        self.writer()?.append(file, tail, lines.to_vec());
        self.awaited = Some(Awaited {
            since: Instant::now(),
            tickets: Vec::new(),
        });
        self.appended(patience)
    }

    fn appended(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        let (Some(writer), Some(awaited)) = (&self.writer, &self.awaited) else {
            return Ok(AppendProgress::Written);
        };
        let Some((tail, written)) = writer.outcome(self.speed.patience(patience)) else {
            self.speed.note_waiting(awaited.since.elapsed());
            return Ok(AppendProgress::Waiting);
        };
        self.speed.record_answer();
        self.tail = tail;
        let tickets = self.awaited.take().map(|awaited| awaited.tickets);
        for ticket in tickets.unwrap_or_default() {
            self.tail.seen = false;
            if !self.sync_now(ticket) {
                self.worker.answer(ticket);
            }
        }
        written.map(|()| AppendProgress::Written)
    }

    fn is_slow(&self) -> bool {
        self.awaited.is_some() || self.speed.is_slow(&self.worker)
    }

    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        self.check_writable()?;
        let handle = self.handle()?;
        let (speed, tail) = (&self.speed, &mut self.tail);
        speed.measure(|| tail.append(&handle, write))
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&*self.handle()?, range)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.check_idle()?;
        self.handle()?.set_len(len)?;
        self.tail.len = len;
        Ok(())
    }

    fn sync(&mut self, ticket: u64) -> bool {
        if let Some(awaited) = &mut self.awaited {
            awaited.tickets.push(ticket);
            return true;
        }
        self.tail.seen = false;
        self.sync_now(ticket)
    }

    fn card(&self) -> Option<Card> {
        card::read(&self.path)
    }

    fn describe(&mut self, card: &Card) {
        if self.removed {
            return;
        }
        let json = serde_json::to_vec(card).unwrap_or_default();
        self.worker.describe(self.card_path(), json);
    }

    fn index(&self) -> Option<Vec<u8>> {
        index_of(&self.path)
    }

    fn index_interval(&self) -> Option<u64> {
        (!self.removed).then_some(INDEX_INTERVAL)
    }

    fn store_index(&mut self, index: Vec<u8>) {
        self.worker.store_index(self.index_path(), index);
    }

    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.check_idle()?;
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let file = with_descriptor(&self.pool, || private().create_new(true).open(&new))?;
        file.try_lock().map_err(io::Error::from)?;
        (&file).write_all(lines)?;
        file.sync_all()?;
        if archive {
            fs::hard_link(&self.path, self.archive_path()?)?;
        }
        fs::rename(&new, &self.path)?;
        self.inode = inode(&file.metadata()?);
        self.slot.close();
        self.pool.put(&self.slot, file);
        self.tail.len = lines.len() as u64;
        self.tail.torn = false;
        self.worker.remove(self.index_path());
        Ok(())
    }

    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.check_idle()?;
        if archive {
            fs::rename(&self.path, self.archive_path()?)?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.worker.remove(self.card_path());
        self.worker.remove(self.index_path());
        if let Some(sessions) = self.path.parent() {
            // It has a copy of the card.
            self.worker.remove(names::card_cache(sessions));
        }
        self.removed = true;
        Ok(())
    }
}

/// Log opened for reading only, even if another process has the session.
#[derive(Debug)]
pub struct ReadOnly {
    path: PathBuf,
    file: fs::File,
    len: u64,
}

impl ReadOnly {
    /// Opens a log up to its current end.
    ///
    /// # Errors
    /// The log does not exist, or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = regular::open_to_read(path)?;
        let len = file.metadata()?.len();
        let path = path.to_owned();
        Ok(Self { path, file, len })
    }
}

impl LogFile for ReadOnly {
    fn end(&self) -> u64 {
        self.len
    }

    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&self.file, range)
    }

    /// Ignores an incomplete last line; the process that writes the log completes it.
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.len = len;
        Ok(())
    }

    fn sync(&mut self, _: u64) -> bool {
        false
    }

    fn describe(&mut self, _: &Card) {}

    fn card(&self) -> Option<Card> {
        card::read(&self.path)
    }

    fn index(&self) -> Option<Vec<u8>> {
        index_of(&self.path)
    }

    fn replace(&mut self, _: &[u8], _: bool) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&mut self, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

#[cfg(unix)]
fn read(file: &fs::File, range: Range<u64>) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt as _;
    let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; len];
    let mut filled = 0;
    while filled < len {
        match file.read_at(&mut bytes[filled..], range.start + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(not(unix))]
fn read(file: &fs::File, range: Range<u64>) -> io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::Start(range.start))?;
    let mut bytes = Vec::new();
    file.take(range.end.saturating_sub(range.start))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
