//! One log on the disk.

use super::pool::{Pool, Slot};
use super::worker::Worker;
use super::{Durability, card, names, stamp, unlinked};
use crate::core::store::{Card, Count, LogFile, Write};
use crate::shell::regular;
use rustix::io::Errno;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// A log that this program has for itself, unless it is closed because too many are open.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    archive: PathBuf,
    slot: Rc<Slot>,
    pool: Pool,
    /// Which file it is, so that another one in its place is noticed.
    inode: Inode,
    len: u64,
    /// Whether a part of what could not be written is still there, after `len`.
    torn: bool,
    /// What is still said then goes nowhere.
    removed: bool,
    /// Whether the file was there when it was written last; looked at once a turn.
    seen: bool,
    durability: Durability,
    worker: Worker,
}

/// What all logs of a store share.
#[derive(Debug, Clone)]
pub struct Means {
    pub archive: PathBuf,
    pub durability: Durability,
    pub worker: Worker,
    pub pool: Pool,
}

impl File {
    /// Opens a log; `WouldBlock` where another program has it.
    pub fn open(path: PathBuf, means: Means) -> io::Result<Self> {
        let pool = means.pool;
        let file = with_descriptor(&pool, || lock(&path, true))?;
        let metadata = file.metadata()?;
        Ok(Self {
            path,
            archive: means.archive,
            slot: pool.slot(file),
            pool,
            inode: inode(&metadata),
            len: metadata.len(),
            torn: false,
            removed: false,
            seen: true,
            durability: means.durability,
            worker: means.worker,
        })
    }

    /// The file, which is opened again where it was closed.
    fn handle(&self) -> io::Result<Arc<fs::File>> {
        if let Some(handle) = self.pool.get(&self.slot) {
            return Ok(handle);
        }
        let file = with_descriptor(&self.pool, || lock(&self.path, false))?;
        let metadata = file.metadata()?;
        if inode(&metadata) != self.inode || (metadata.len() != self.len && !self.torn) {
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

    /// Fails where the file was removed from the disk: what is written then is lost.
    fn must_be_there(&mut self, handle: &fs::File) -> io::Result<()> {
        if !self.seen {
            unlinked::check(handle)?;
        }
        self.seen = true;
        Ok(())
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
        self.slot.close();
    }
}

impl LogFile for File {
    fn end(&self) -> u64 {
        self.len
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.append_from(&|out| out.write_all(lines))
    }

    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        if self.removed {
            return Err(io::Error::other("the session was removed"));
        }
        let handle = self.handle()?;
        self.must_be_there(&handle)?;
        if self.torn {
            handle.set_len(self.len)?;
            self.torn = false;
        }
        let mut lines = Counted(&handle, Count::default());
        let Err(e) = write(&mut lines) else {
            self.len += lines.1.0;
            return Ok(());
        };
        self.torn = handle.set_len(self.len).is_err();
        Err(e)
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&*self.handle()?, range)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.handle()?.set_len(len)?;
        self.len = len;
        Ok(())
    }

    fn sync(&mut self, ticket: u64) -> bool {
        self.seen = false;
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
        self.len = lines.len() as u64;
        self.torn = false;
        Ok(())
    }

    fn remove(&mut self, archive: bool) -> io::Result<()> {
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

/// What is written to a file, and how much that is.
struct Counted<'a>(&'a fs::File, Count);

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.0.write(bytes)?;
        self.1.write(&bytes[..n])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
mod tests {
    use super::*;

    fn means(dir: &Path, worker: Worker, pool: Pool) -> Means {
        Means {
            archive: dir.to_owned(),
            durability: Durability::Turn,
            worker,
            pool,
        }
    }

    #[test]
    fn logs_beyond_the_limit_are_closed_and_opened_again() {
        let dir = std::env::temp_dir().join(format!("acpipe-pool-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, _events) = Worker::start().unwrap();
        let means = means(&dir, worker, Pool::with_limit(4));
        let path = |n: usize| dir.join(format!("{n}.jsonl"));
        let mut logs: Vec<File> = (0..20)
            .map(|n| File::open(path(n), means.clone()).unwrap())
            .collect();
        let open = |logs: &[File]| {
            logs.iter()
                .filter(|log| log.pool.get(&log.slot).is_some())
                .count()
        };
        for round in 0..3 {
            for log in &mut logs {
                log.append(b"line\n").unwrap();
            }
            assert_eq!(open(&logs), 4);
            for log in &logs {
                assert_eq!(log.read(0..100).unwrap(), b"line\n".repeat(round + 1));
            }
        }
        // One that another process changed meanwhile is an error, for itself alone.
        let mut other = File::open(path(0), means.clone()).unwrap();
        other.append(b"another\n").unwrap();
        drop(other);
        let error = logs[0].append(b"line\n").unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
        logs[1].append(b"line\n").unwrap();
        // One that is open is locked.
        assert!(File::open(path(1), means.clone()).is_err());
        drop(logs);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn log_that_was_removed_from_the_disk_is_an_error_with_the_next_turn() {
        let dir = std::env::temp_dir().join(format!("acpipe-unlinked-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, _events) = Worker::start().unwrap();
        let mut log = File::open(dir.join("a.jsonl"), means(&dir, worker, Pool::new())).unwrap();
        log.append(b"line\n").unwrap();
        fs::remove_dir_all(&dir).unwrap();
        log.sync(1);
        assert_eq!(
            log.append(b"line\n").unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(log.read(0..100).unwrap(), b"line\n");
    }

    #[test]
    fn a_log_that_is_let_go_while_it_is_synced_can_be_had() {
        let dir = std::env::temp_dir().join(format!("acpipe-let-go-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, _events) = Worker::start().unwrap();
        let path = dir.join("a.jsonl");
        let means = means(&dir, worker, Pool::new());
        let open = || File::open(path.clone(), means.clone());
        let first = open().unwrap();
        let synced = first.handle().unwrap();
        assert!(open().is_err());
        drop(first);
        assert!(open().is_ok());
        drop(synced);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_log_that_was_removed_has_no_card_any_more() {
        let dir = std::env::temp_dir().join(format!("acpipe-removed-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, events) = Worker::start().unwrap();
        let path = dir.join("a.jsonl");
        let mut log = File::open(path, means(&dir, worker, Pool::new())).unwrap();
        log.describe(&Card::default());
        log.remove(false).unwrap();
        log.describe(&Card::default());
        // The thread ends when it has done everything.
        drop((log, events));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }
}
