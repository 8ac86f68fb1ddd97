//! Opening of state files. A pipe, device or directory in place of one is an error and never blocks; a link and a
//! file of another user are errors too.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file with the given options.
///
/// # Errors
/// The file cannot be opened, is a link or not regular, or belongs to another user.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Opening a pipe without a writer would block. A link could lead to a file that is not acpipe's.
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
    }
    let file = options.open(path)?;
    super::ownership::check_file(&file)?;
    if !file.metadata()?.is_file() {
        let message = "not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(file)
}

/// Opens a regular file for reading.
///
/// # Errors
/// The file cannot be opened, or is not regular.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is not regular, or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
