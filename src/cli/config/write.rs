//! Atomic replacement of small files.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

/// Writes a file by replacing it as a whole, and creates its directory if that is missing. A new file can be
/// read only by the user; an existing file keeps its mode, and a link its target.
///
/// # Errors
/// The file cannot be written.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let target = match fs::canonicalize(file) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => file.to_owned(),
        Err(error) => return Err(error),
    };
    let (Some(dir), Some(name)) = (target.parent(), target.file_name()) else {
        let why = "the path has no file name; give the path of a file";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    };
    fs::create_dir_all(dir)?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}", std::process::id()));
    let temporary = dir.join(temporary);
    let written =
        write_new(&temporary, text, &target).and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // The error of the write is reported, not that of the cleanup.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write_new(file: &Path, text: &str, old: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // An acpipe with the same process id may have been killed while it wrote.
    if let Err(error) = fs::remove_file(file)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut new = options.open(file)?;
    new.write_all(text.as_bytes())?;
    if let Ok(old) = fs::metadata(old) {
        new.set_permissions(old.permissions())?;
    }
    new.sync_all()
}
