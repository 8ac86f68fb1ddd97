//! Locked files: a log has one writer.

use crate::regular;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// Number and length of the pauses before a locked file counts as in use.
const PAUSES: (u32, Duration) = (20, Duration::from_millis(1));

/// Opens and locks the file at a path, retrying if another file has replaced it meanwhile, and while it may be locked for a
/// moment only: a search for leftovers or a list of sessions looks whether a log is in use, and a process that is being
/// started has all files of its parent until it runs its program.
pub fn lock(path: &Path, create: bool) -> io::Result<fs::File> {
    let (mut left, length) = PAUSES;
    lock_after(path, create, || {
        thread::sleep(length);
        left -= 1;
        left > 0
    })
}

/// As [`lock`]. `pause` is called while the file is locked, and returns `false` if that is no longer brief.
fn lock_after(path: &Path, create: bool, mut pause: impl FnMut() -> bool) -> io::Result<fs::File> {
    loop {
        let file = regular::open(private().create(create), path)?;
        match file.try_lock() {
            Ok(()) if is_same(&file, path) => return Ok(file),
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) if pause() => {}
            Err(fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Returns options for appending to a file that only its owner can access.
pub fn private() -> OpenOptions {
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

/// On these systems an open file cannot be replaced.
#[cfg(not(unix))]
fn is_same(_: &fs::File, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_that_is_locked_for_a_moment_is_not_in_use() {
        let dir = std::env::temp_dir().join(format!("acpipe-locked-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("s.jsonl");
        let mut held = Some(lock_after(&path, true, || false).unwrap());
        let busy = lock_after(&path, true, || false).unwrap_err();
        assert_eq!(busy.kind(), io::ErrorKind::WouldBlock);
        let free = lock_after(&path, true, || held.take().is_some());
        assert!(free.is_ok());
        fs::remove_dir_all(&dir).unwrap();
    }
}
