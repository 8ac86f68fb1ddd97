//! Locked files: a log has one writer.

use crate::regular;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Opens and locks the file at a path, retrying if another file has replaced it meanwhile.
pub fn lock(path: &Path, create: bool) -> io::Result<fs::File> {
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
