//! One log on the disk.

use super::worker::Worker;
use super::{Durability, names, stamp};
use crate::core::store::{Card, Count, LogFile, Write};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A log that this program has for itself.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    archive: PathBuf,
    handle: Arc<fs::File>,
    len: u64,
    /// Whether a part of what could not be written is still there, after `len`.
    torn: bool,
    /// What is still said then goes nowhere.
    removed: bool,
    durability: Durability,
    worker: Worker,
}

impl File {
    /// Opens a log; `WouldBlock` where another program has it.
    pub fn open(
        path: PathBuf,
        archive: PathBuf,
        durability: Durability,
        worker: Worker,
    ) -> io::Result<Self> {
        let file = lock(&path)?;
        let len = file.metadata()?.len();
        Ok(Self {
            path,
            archive,
            handle: Arc::new(file),
            len,
            torn: false,
            removed: false,
            durability,
            worker,
        })
    }

    /// Where the log goes that is kept apart.
    fn apart(&self) -> PathBuf {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.archive
            .join(format!("{name}.{}.{}", stamp(), names::LOG))
    }

    fn card(&self) -> PathBuf {
        self.path.with_extension(names::CARD)
    }
}

/// Opens and locks the file of this name; another may have taken its place meanwhile.
fn lock(path: &Path) -> io::Result<fs::File> {
    loop {
        let file = private().create(true).open(path)?;
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
    /// Others may have it at once, even while it still reaches the disk.
    fn drop(&mut self) {
        let _ = self.handle.unlock();
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
        if self.torn {
            self.handle.set_len(self.len)?;
            self.torn = false;
        }
        let mut lines = Counted(&self.handle, Count::default());
        let Err(e) = write(&mut lines) else {
            self.len += lines.1.0;
            return Ok(());
        };
        self.torn = self.handle.set_len(self.len).is_err();
        Err(e)
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&self.handle, range)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.handle.set_len(len)?;
        self.len = len;
        Ok(())
    }

    fn sync(&mut self, ticket: u64) -> bool {
        if self.durability == Durability::None {
            return false;
        }
        self.worker.sync(self.handle.clone(), ticket);
        true
    }

    fn describe(&mut self, card: &Card) {
        if self.removed {
            return;
        }
        let json = serde_json::to_vec(card).unwrap_or_default();
        self.worker.describe(self.card(), json);
    }

    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let _ = fs::remove_file(&new);
        let file = private().create_new(true).open(&new)?;
        file.try_lock().map_err(io::Error::from)?;
        (&file).write_all(lines)?;
        file.sync_all()?;
        if archive {
            fs::hard_link(&self.path, self.apart())?;
        }
        fs::rename(&new, &self.path)?;
        self.handle = Arc::new(file);
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
        self.worker.remove(self.card());
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
    file: fs::File,
    len: u64,
}

impl ReadOnly {
    /// Opens a log as far as it is written now.
    ///
    /// # Errors
    /// It is not there, or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = fs::File::open(path)?;
        let len = file.metadata()?.len();
        Ok(Self { file, len })
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

    #[test]
    fn a_log_that_is_let_go_while_it_is_synced_can_be_had() {
        let dir = std::env::temp_dir().join(format!("acpipe-let-go-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (worker, _events) = Worker::start().unwrap();
        let path = dir.join("a.jsonl");
        let open = || File::open(path.clone(), dir.clone(), Durability::Turn, worker.clone());
        let first = open().unwrap();
        let synced = Arc::clone(&first.handle);
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
        let mut log = File::open(path, dir.clone(), Durability::None, worker).unwrap();
        log.describe(&Card::default());
        log.remove(false).unwrap();
        log.describe(&Card::default());
        // The thread ends when it has done everything.
        drop((log, events));
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        fs::remove_dir_all(&dir).unwrap();
    }
}
