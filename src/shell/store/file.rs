//! One log on the disk.

use super::pool::{Pool, Slot};
use super::speed::Speed;
use super::tail::Tail;
use super::worker::Worker;
use super::writer::Writer;
use super::{Durability, card, names, stamp};
use crate::core::store::{Card, LogFile, Progress, Write};
use crate::shell::regular;
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A log that this program has for itself, unless it is closed because too many are open.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    archive: PathBuf,
    slot: Rc<Slot>,
    pool: Pool,
    /// Which file it is, so that another one in its place is noticed.
    inode: Inode,
    tail: Tail,
    /// What is still said then goes nowhere.
    removed: bool,
    durability: Durability,
    worker: Worker,
    speed: Speed,
    /// The thread that appends while the disk is slow; absent until it is.
    writer: Option<Writer>,
    /// What the thread appends; `None` while it appends nothing.
    awaited: Option<Awaited>,
}

/// Lines that the thread appends.
#[derive(Debug)]
struct Awaited {
    since: Instant,
    /// The tickets of syncs that come after them.
    tickets: Vec<u64>,
}

/// What all logs of a store share.
#[derive(Debug, Clone)]
pub struct Means {
    pub archive: PathBuf,
    pub durability: Durability,
    pub worker: Worker,
    pub pool: Pool,
    pub speed: Speed,
}

impl File {
    /// Opens a log; `WouldBlock` where another program has it.
    pub fn open(path: PathBuf, means: Means) -> io::Result<Self> {
        let pool = means.pool;
        let file = with_descriptor(&pool, || lock(&path, true))?;
        let metadata = file.metadata()?;
        means.speed.note_place(&file);
        let tail = Tail {
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

    /// The file, which is opened again where it was closed.
    fn handle(&self) -> io::Result<Arc<fs::File>> {
        if let Some(handle) = self.pool.get(&self.slot) {
            return Ok(handle);
        }
        let file = with_descriptor(&self.pool, || lock(&self.path, false))?;
        let metadata = file.metadata()?;
        if inode(&metadata) != self.inode || (metadata.len() != self.tail.len && !self.tail.torn) {
            let message = "another process changed it while it was closed here";
            return Err(io::Error::new(
                io::ErrorKind::StaleNetworkFileHandle,
                message,
            ));
        }
        self.pool.put(&self.slot, file);
        self.pool
            .get(&self.slot)
            .ok_or_else(|| io::Error::other("it was closed"))
    }

    /// Fails where nothing may be appended.
    fn must_take(&self) -> io::Result<()> {
        if self.removed {
            return Err(io::Error::other("the session was removed"));
        }
        self.must_be_idle()
    }

    /// Fails while the thread appends.
    fn must_be_idle(&self) -> io::Result<()> {
        if self.awaited.is_some() {
            let message = "the disk does not answer";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        Ok(())
    }

    /// The thread that appends.
    fn writer(&mut self) -> io::Result<&Writer> {
        match &mut self.writer {
            Some(writer) => Ok(writer),
            none => Ok(none.insert(Writer::start(self.worker.clone())?)),
        }
    }

    /// Syncs what is in the file; true where a ticket is answered later.
    fn sync_now(&self, ticket: u64) -> bool {
        if self.durability == Durability::None {
            return false;
        }
        // Where it cannot be opened again, that is told when it is written the next time.
        let Ok(handle) = self.handle() else {
            return false;
        };
        self.worker.sync(handle, ticket);
        true
    }

    /// Where the log goes that is kept apart.
    fn apart(&self) -> PathBuf {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.archive
            .join(format!("{name}.{}.{}", stamp(), names::LOG))
    }

    fn card_path(&self) -> PathBuf {
        self.path.with_extension(names::CARD)
    }
}

/// Opens a file, for which others are closed where there are too many.
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

/// Device and number of a file; all zero where files have none.
type Inode = (u64, u64);

#[cfg(unix)]
fn inode(metadata: &fs::Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &fs::Metadata) -> Inode {
    (0, 0)
}

/// Opens and locks the file of this name; another may have taken its place meanwhile.
fn lock(path: &Path, create: bool) -> io::Result<fs::File> {
    loop {
        let file = regular::open(private().create(create), path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
        if is_same(&file, path) {
            return Ok(file);
        }
    }
}

/// For files that nobody else may read.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn is_same(file: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Files that are open cannot be replaced there.
#[cfg(not(unix))]
fn is_same(_: &fs::File, _: &Path) -> bool {
    true
}

impl Drop for File {
    fn drop(&mut self) {
        if self.awaited.is_some() {
            // Others may have it when the thread is done with it.
            self.slot.leave();
        } else {
            self.slot.close();
        }
    }
}

impl LogFile for File {
    fn end(&self) -> u64 {
        self.tail.len
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.append_from(&|out| out.write_all(lines))
    }

    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<Progress> {
        if !self.is_slow() {
            return self.append(lines).map(|()| Progress::Written);
        }
        self.must_take()?;
        let (file, tail) = (self.handle()?, self.tail);
        self.writer()?.append(file, tail, lines.to_vec());
        self.awaited = Some(Awaited {
            since: Instant::now(),
            tickets: Vec::new(),
        });
        self.appended(patience)
    }

    fn appended(&mut self, patience: Duration) -> io::Result<Progress> {
        let (Some(writer), Some(awaited)) = (&self.writer, &self.awaited) else {
            return Ok(Progress::Written);
        };
        let Some((tail, written)) = writer.outcome(self.speed.patience(patience)) else {
            self.speed.note_waiting(awaited.since.elapsed());
            return Ok(Progress::Waiting);
        };
        self.speed.note_answer();
        self.tail = tail;
        let tickets = self.awaited.take().map(|awaited| awaited.tickets);
        for ticket in tickets.unwrap_or_default() {
            self.tail.seen = false;
            if !self.sync_now(ticket) {
                self.worker.answer(ticket);
            }
        }
        written.map(|()| Progress::Written)
    }

    fn is_slow(&self) -> bool {
        self.awaited.is_some() || self.speed.is_slow(&self.worker)
    }

    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        self.must_take()?;
        let handle = self.handle()?;
        let (speed, tail) = (&self.speed, &mut self.tail);
        speed.measure(|| tail.append(&handle, write))
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&*self.handle()?, range)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.must_be_idle()?;
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

    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.must_be_idle()?;
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let file = with_descriptor(&self.pool, || private().create_new(true).open(&new))?;
        file.try_lock().map_err(io::Error::from)?;
        (&file).write_all(lines)?;
        file.sync_all()?;
        if archive {
            fs::hard_link(&self.path, self.apart())?;
        }
        fs::rename(&new, &self.path)?;
        self.inode = inode(&file.metadata()?);
        self.slot.close();
        self.pool.put(&self.slot, file);
        self.tail.len = lines.len() as u64;
        self.tail.torn = false;
        Ok(())
    }

    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.must_be_idle()?;
        if archive {
            fs::rename(&self.path, self.apart())?;
        } else {
            fs::remove_file(&self.path)?;
        }
        self.worker.remove(self.card_path());
        self.removed = true;
        Ok(())
    }
}

/// A log that is only read, whoever has it.
#[derive(Debug)]
pub struct ReadOnly {
    path: PathBuf,
    file: fs::File,
    len: u64,
}

impl ReadOnly {
    /// Opens a log as far as it is written now.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
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

    /// A line that is not whole yet is left to its writer.
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
