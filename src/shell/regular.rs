//! Files of the state directory: a pipe, a device or a directory in the place of one is an error, and nothing to wait for.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file with these options.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // A pipe that nobody writes to would be waited for in the opening.
    #[cfg(unix)]
    {
        let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, at_once);
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        let message = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(file)
}

/// Opens a regular file to read it.
///
/// # Errors
/// It cannot be opened, or is not a regular file.
pub fn open_to_read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// It cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_to_read(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}
