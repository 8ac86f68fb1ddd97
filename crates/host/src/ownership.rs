//! Owners of the files that decide what acpipe does: the state directory, and configuration files.
//!
//! A file of another user in a place where acpipe looks would let that user choose agents, trust a project or read a
//! conversation. Files of the user who runs acpipe and of root are used, and under `sudo` those of the user who called
//! it; all others are refused. Systems without such owners have no check.
//!
//! A file is opened first and checked afterwards (`regular.rs`), so that no other user can exchange it in between.

use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Bit of a mode that lets every user write.
#[cfg(unix)]
const OTHERS_WRITE: u32 = 0o002;

/// Reason why a file or directory is refused: its owner.
#[derive(Debug)]
struct ForeignOwner {
    owner: u32,
    user: u32,
}

impl fmt::Display for ForeignOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { owner, user } = self;
        write!(f, "belongs to user {owner}, but acpipe runs as user {user}")
    }
}

impl std::error::Error for ForeignOwner {}

/// Returns `true` if a file or directory was refused because of its owner.
#[must_use]
pub fn is_foreign(error: &io::Error) -> bool {
    let reason = error.get_ref().and_then(|reason| reason.downcast_ref());
    reason.is_some_and(|ForeignOwner { .. }| true)
}

/// Creates a directory, with its parents, that only the owner can access, or checks the owner of an existing one.
///
/// # Errors
/// The directory cannot be created, or belongs to another user.
pub fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(dir)
        .map_err(|error| obstructed(dir, error))?;
    check(dir)
}

/// Returns the reason why a directory cannot be created if something else is in its place.
fn obstructed(dir: &Path, error: io::Error) -> io::Error {
    let found = match fs::symlink_metadata(dir) {
        Ok(found) if error.kind() == ErrorKind::AlreadyExists => found,
        _ => return error,
    };
    let what = if found.is_symlink() {
        "is a symbolic link that leads to no directory"
    } else {
        "is not a directory"
    };
    io::Error::new(
        ErrorKind::NotADirectory,
        format!("{} {what}", dir.display()),
    )
}

/// Checks the owner of a file or directory, and that of the link if the path is one.
///
/// # Errors
/// It belongs to another user, or cannot be examined.
pub fn check(path: &Path) -> io::Result<()> {
    check_link(path)?;
    check_metadata(&fs::metadata(path)?)
}

/// Checks the owner of what has this name; a link is not followed.
///
/// # Errors
/// It belongs to another user, or cannot be examined.
pub fn check_link(path: &Path) -> io::Result<()> {
    check_metadata(&fs::symlink_metadata(path)?)
}

/// Checks the owner of an open file.
///
/// # Errors
/// It belongs to another user, or cannot be examined.
pub fn check_file(file: &File) -> io::Result<()> {
    check_metadata(&file.metadata()?)
}

/// Checks that not every user can write an open file: its content would be that of any user.
///
/// # Errors
/// Every user can write it, or it cannot be examined.
pub fn check_mode(file: &File) -> io::Result<()> {
    if !others_write(&file.metadata()?) {
        return Ok(());
    }
    let why =
        "can be written by every user of this machine; check its content, then run chmod o-w on it";
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

/// Checks the owners of a state directory and of its entries. A directory that does not exist passes.
///
/// # Errors
/// One of them belongs to another user: the message has its path.
pub fn check_state(state: &Path) -> io::Result<()> {
    if let Err(error) = check(state) {
        return match error.kind() {
            ErrorKind::NotFound => Ok(()),
            _ => Err(named(state, &error)),
        };
    }
    // Its user of the entries reports a directory that cannot be read.
    for entry in fs::read_dir(state).into_iter().flatten().flatten() {
        match check(&entry.path()) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(named(&entry.path(), &error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the directories of a state directory, and itself, in which every user can create files.
#[must_use]
pub fn open_to_others(state: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(state).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let all = std::iter::once(state.to_owned()).chain(paths);
    all.filter(|path| fs::metadata(path).is_ok_and(|m| m.is_dir() && others_write(&m)))
        .collect()
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(unix)]
fn others_write(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(metadata) & OTHERS_WRITE != 0
}

#[cfg(not(unix))]
fn others_write(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn check_metadata(metadata: &Metadata) -> io::Result<()> {
    let owner = std::os::unix::fs::MetadataExt::uid(metadata);
    let user = rustix::process::geteuid().as_raw();
    if is_trusted(owner, user, sudo_user()) {
        return Ok(());
    }
    let why = ForeignOwner { owner, user };
    Err(io::Error::new(ErrorKind::PermissionDenied, why))
}

#[cfg(not(unix))]
fn check_metadata(_: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Returns the user who called `sudo`.
#[cfg(unix)]
fn sudo_user() -> Option<u32> {
    std::env::var("SUDO_UID").ok()?.parse().ok()
}

/// Returns `true` if files of `owner` may decide what acpipe does as `user`. Root can change everything anyway.
#[cfg(unix)]
fn is_trusted(owner: u32, user: u32, sudo_user: Option<u32>) -> bool {
    owner == user || owner == 0 || (user == 0 && sudo_user == Some(owner))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn link_or_file_in_place_of_a_directory_is_named() {
        let parent = std::env::temp_dir().join(format!("acpipe-obstructed-{}", std::process::id()));
        fs::create_dir_all(&parent).unwrap();
        let dir = parent.join("archive");
        std::os::unix::fs::symlink(parent.join("missing"), &dir).unwrap();
        let error = make_private(&dir).unwrap_err();
        let want = format!(
            "{} is a symbolic link that leads to no directory",
            dir.display()
        );
        assert_eq!(error.to_string(), want);
        fs::remove_file(&dir).unwrap();
        File::create(&dir).unwrap();
        let error = make_private(&dir).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{} is not a directory", dir.display())
        );
        fs::remove_dir_all(&parent).unwrap();
    }

    #[test]
    fn files_of_the_user_of_root_and_of_the_caller_of_sudo_are_trusted() {
        for (owner, user, sudo, want) in [
            (1000, 1000, None, true),
            (0, 1000, None, true),
            (1001, 1000, None, false),
            (1001, 1000, Some(1001), false),
            (1000, 0, None, false),
            (1000, 0, Some(1000), true),
            (1001, 0, Some(1000), false),
        ] {
            assert_eq!(
                is_trusted(owner, user, sudo),
                want,
                "{owner} {user} {sudo:?}"
            );
        }
    }
}
