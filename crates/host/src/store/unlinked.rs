//! Detection of an open log whose file was removed from the disk: data written to it is lost.

use std::fs::File;
use std::io;

/// Checks that an open file still has a name.
///
/// # Errors
/// `NotFound` if the file was removed.
pub fn check(file: &File) -> io::Result<()> {
    if is_unlinked(file) {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "the file was deleted while the session was open",
        ));
    }
    Ok(())
}

#[cfg(unix)]
fn is_unlinked(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
}

// On systems without links, an open file cannot be removed.
#[cfg(not(unix))]
fn is_unlinked(_: &File) -> bool {
    false
}
