//! Locked files: a log has one writer, in a directory of the user. Another user who can write to the state directory may
//! exchange that directory at any time.

use crate::regular;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::ffi::OsStr;
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
    let parent = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    loop {
        let directory = regular::open_directory(parent)?;
        let file = regular::open(private().create(create), path)?;
        match file.try_lock() {
            Ok(()) if is_in(&directory, name, &file)? => return Ok(file),
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

/// Returns `true` if a file has this name in an open directory.
fn is_in(directory: &fs::File, name: &OsStr, file: &fs::File) -> io::Result<bool> {
    let opened = rustix::fs::fstat(file)?;
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok((named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::replaced::put;
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

    #[test]
    fn file_in_a_directory_of_another_user_is_not_created() {
        let dir = std::env::temp_dir().join(format!("acpipe-foreign-{}", std::process::id()));
        let (own, link) = (dir.join("own"), dir.join("link"));
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let through = lock_after(&link.join("a.jsonl"), true, || false);
        assert!(through.is_ok() && own.join("a.jsonl").exists());
        drop(through);
        if std::os::unix::fs::lchown(&link, Some(65534), None).is_ok() {
            std::os::unix::fs::chown(&own, Some(65534), None).unwrap();
            for place in [&link, &own] {
                let error = lock_after(&place.join("b.jsonl"), true, || false).unwrap_err();
                assert!(crate::is_foreign(&error), "{error}");
                let error = put(&place.join("b.json"), "new", b"{}").unwrap_err();
                assert!(crate::is_foreign(&error), "{error}");
            }
            assert_eq!(fs::read_dir(&own).unwrap().count(), 1);
        } else {
            eprintln!("SKIPPED: only root can give a directory to another user");
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}
