//! Atomic writing of files for agents: a new file replaces the old one.

use super::read::names_a_directory;
use super::{Roots, explain, nonblocking_options, not_a_file};
use acpipe_model::error::Error;
use cap_std::fs::{Dir, OpenOptionsExt as _, Permissions, PermissionsExt as _};
use std::ffi::OsString;
use std::io::{self, ErrorKind::NotFound, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum length of a chain of links.
const MAX_LINKS: usize = 40;

/// Mode bits that are kept: read, write and execute permissions. Set-user-id and set-group-id are dropped, as
/// the system does when a file is written.
const KEPT_MODE: u32 = 0o777;

/// Writes `content` to a file; missing directories are created.
pub fn write(path: &str, roots: &Roots, content: &str) -> Result<(), Error> {
    if names_a_directory(path) {
        return Err(not_a_file(path, true));
    }
    let place = roots.find(path)?;
    let is_dir = || {
        let about = place.root.metadata(&place.path);
        about.is_ok_and(|about| about.is_dir())
    };
    let written = target(place.root, place.path.clone()).and_then(|target| match target {
        Some((dir, name)) => replace(&dir, &name, content.as_bytes()),
        None => Ok(false),
    });
    match written {
        Ok(true) => Ok(()),
        Ok(false) => Err(not_a_file(path, is_dir())),
        Err(error) => Err(explain(path, roots, "write", &error)),
    }
}

/// Follows links and returns the target's directory and its name there. `None` if the target is not a regular
/// file.
fn target(root: &Dir, mut path: PathBuf) -> io::Result<Option<(Dir, OsString)>> {
    for _ in 0..MAX_LINKS {
        let Some(name) = path.file_name().map(OsString::from) else {
            return Ok(None);
        };
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        let dir = parent_dir(root, &parent)?;
        let about = match dir.symlink_metadata(&name) {
            Err(error) if error.kind() == NotFound => return Ok(Some((dir, name))),
            about => about?,
        };
        if !about.is_symlink() {
            return Ok(about.is_file().then_some((dir, name)));
        }
        let to = dir.read_link_contents(&name)?;
        if to.is_absolute() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the link has an absolute target",
            ));
        }
        path = parent.join(to);
    }
    Err(rustix::io::Errno::LOOP.into())
}

fn parent_dir(root: &Dir, parent: &Path) -> io::Result<Dir> {
    if parent.as_os_str().is_empty() {
        return root.try_clone();
    }
    // A missing directory followed by `..` is an error: creating it would leave an unwanted directory.
    let goes_back = parent.components().any(|c| c == Component::ParentDir);
    match root.open_dir(parent) {
        Err(error) if error.kind() == NotFound && !goes_back => {
            root.create_dir_all(parent)?;
            root.open_dir(parent)
        }
        opened => opened,
    }
}

/// Replaces a file by a new one; returns `false` if it is not a regular file.
fn replace(dir: &Dir, name: &OsString, content: &[u8]) -> io::Result<bool> {
    // Opening also checks that the file is writable; renaming does not.
    let mode = match dir.open_with(name, nonblocking_options().write(true)) {
        Err(error) if error.kind() == NotFound => None,
        old => {
            let about = old?.metadata()?;
            if !about.is_file() {
                return Ok(false);
            }
            Some(about.permissions().mode() & KEPT_MODE)
        }
    };
    let (new, file) = create(dir, mode)?;
    let written = fill(file, content, mode).and_then(|()| dir.rename(&new, dir, name));
    if written.is_err() {
        // The first error is the one to report.
        let _ = dir.remove_file(&new);
    }
    written.map(|()| true)
}

/// Creates a file with an unused name. If its mode is set later, only the owner can read it until then.
fn create(dir: &Dir, mode: Option<u32>) -> io::Result<(String, cap_std::fs::File)> {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let mut options = nonblocking_options();
    options.write(true).create_new(true);
    if mode.is_some() {
        options.mode(0o600);
    }
    loop {
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!(".acpipe-{}-{number}.tmp", std::process::id());
        match dir.open_with(&name, &options) {
            // Left behind by a process with the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            file => return Ok((name, file?)),
        }
    }
}

fn fill(mut file: cap_std::fs::File, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}
