//! Atomic replacement of small files.

use acpipe_host::{create_file, make_private};
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Writes a file by replacing it as a whole, and creates its directory if that is missing. A new file or
/// directory can be read only by the user; an existing file keeps its mode. A link is replaced, too.
///
/// # Errors
/// The file cannot be written.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else {
        let why = "the path has no file name; give the path of a file";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    };
    if !dir.exists() {
        make_private(dir)?;
    }
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = dir.join(temporary);
    let written = write_new(&temporary, text, file).and_then(|()| fs::rename(&temporary, file));
    if written.is_err() {
        // The error of the write is reported, not that of the cleanup.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(file: &Path, text: &str, old: &Path) -> io::Result<()> {
    // An acpipe with the same process id may have been killed while it wrote: its file is replaced.
    let mut new = create_file(file)?;
    new.write_all(text.as_bytes())?;
    if let Ok(old) = fs::symlink_metadata(old)
        && old.is_file()
    {
        new.set_permissions(old.permissions())?;
    }
    new.sync_all()
}
