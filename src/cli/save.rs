//! Files that a command writes because an option names them.

use acpipe_host::open_output;
use acpipe_model::error::{Error, ErrorKind};
use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Users who can read a file after it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// Only its owner, also if the file exists: it has the messages of a session.
    Owner,
    /// Those that the process allows for its files.
    Usual,
}

/// Writes a file.
///
/// # Errors
/// `storage`: the file cannot be written.
pub fn save(
    file: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    if readers == Readers::Owner {
        options.mode(0o600);
    }
    let written = open_output(&mut options, file).and_then(|file| {
        if file.metadata()?.is_file() {
            if readers == Readers::Owner {
                file.set_permissions(Permissions::from_mode(0o600))?;
            }
            file.set_len(0)?;
        }
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(|error| failed("write", file, &error))
}

/// Creates a directory and its parents.
///
/// # Errors
/// `storage`: the directory cannot be created.
pub fn create_dir(dir: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(dir).map_err(|error| failed("create", dir, &error))
}

fn failed(what: &str, path: &Path, why: &io::Error) -> Error {
    let path = path.display();
    let message = format!("cannot {what} {path}: {why}; choose another place");
    Error::new(ErrorKind::Storage, message)
}
