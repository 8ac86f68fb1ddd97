//! File of a tape.

use crate::named_file::open_output;
use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Beginning of every tape that a recorder wrote.
const BEGINNING: &[u8] = b"{\"tape\":";

/// Creates the file of a tape, which only its owner can read. An older tape is replaced; any other file is left
/// alone.
///
/// # Errors
/// The file cannot be created, has other content, belongs to another user, or another acpipe records to it.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = open_output(options.mode(0o600), path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if file.try_lock().is_err() {
        return Err(io::Error::other("another acpipe records to it"));
    }
    let mut begin = [0; BEGINNING.len()];
    let mut read = 0;
    while read < begin.len() {
        match file.read(&mut begin[read..])? {
            0 => break,
            n => read += n,
        }
    }
    if read > 0 && begin[..read] != *BEGINNING {
        return Err(io::Error::other("the file exists and is not a tape"));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    io::Seek::rewind(&mut file)?;
    Ok(file)
}
