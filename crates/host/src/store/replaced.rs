//! Files that are replaced as a whole.

use crate::{ownership, regular};
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// Device and inode number of a file; zeros on systems without them.
pub type Inode = (u64, u64);

#[cfg(unix)]
pub fn inode(metadata: &fs::Metadata) -> Inode {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub fn inode(_: &fs::Metadata) -> Inode {
    (0, 0)
}

/// Replaces a file atomically: readers see the old or the new content. The new content is first written under
/// another extension. Nothing is written in a directory of another user.
pub fn put(path: &Path, extension: &str, bytes: &[u8]) -> io::Result<()> {
    ownership::check(path.parent().unwrap_or(Path::new(".")))?;
    let new = path.with_extension(extension);
    regular::create(&new)?.write_all(bytes)?;
    fs::rename(new, path)
}
