//! Files that a command writes because an option names them.

use crate::core::error::{Error, ErrorKind};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file.
///
/// # Errors
/// `storage`: the file cannot be written.
pub fn save(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let written = File::create(file).and_then(|file| {
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
