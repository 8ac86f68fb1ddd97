//! Leftovers of crashes next to the logs, and the archive.

use super::{ARCHIVE, SESSIONS, names};
use crate::shell::regular;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Result of [`sweep`].
#[derive(Debug, Default)]
pub struct Swept {
    /// Files that were removed, or would be.
    pub removed: Vec<PathBuf>,
    /// Logs that are not acpipe's because of their owner or mode, each with the reason.
    pub refused: Vec<(PathBuf, io::Error)>,
    /// Files that cannot be read or removed.
    pub failed: Vec<(PathBuf, io::Error)>,
}

/// Removes cards and indexes without a log, incomplete replacement files and empty logs; with `dry`, only returns them.
///
/// # Errors
/// The directory cannot be read.
pub fn sweep(state: &Path, dry: bool) -> io::Result<Swept> {
    let mut swept = Swept::default();
    for path in files(&state.join(SESSIONS))? {
        let log = path.with_extension(names::LOG);
        let opened = match regular::open_to_read(&log) {
            Ok(opened) => Some(opened),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            // Not a log, so its files are left alone.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => continue,
            Err(e) => {
                let all = match e.kind() {
                    io::ErrorKind::PermissionDenied => &mut swept.refused,
                    _ => &mut swept.failed,
                };
                // Its card and index come next to it.
                if all.last().is_none_or(|(last, _)| *last != log) {
                    all.push((log, e));
                }
                continue;
            }
        };
        // The process that has the session may need these files. The lock also prevents opening the session
        // during the check.
        if opened.as_ref().is_some_and(|log| log.try_lock().is_err()) {
            continue;
        }
        let left = match path.extension().and_then(|e| e.to_str()) {
            Some(names::LOG) => {
                opened.is_some_and(|log| log.metadata().is_ok_and(|m| m.len() == 0))
            }
            Some(names::CARD | names::INDEX) => opened.is_none(),
            Some("card" | "new" | names::NEW_INDEX) => true,
            _ => false,
        };
        if !left {
            continue;
        }
        if !dry && let Err(e) = fs::remove_file(&path) {
            swept.failed.push((path, e));
            continue;
        }
        swept.removed.push(path);
    }
    Ok(swept)
}

/// Returns the archived logs, each with the time of archiving in milliseconds since 1970.
///
/// # Errors
/// The directory cannot be read.
pub fn archived(state: &Path) -> io::Result<Vec<(PathBuf, i64)>> {
    let since = |path: PathBuf| {
        let (_, stamp) = path.file_stem()?.to_str()?.rsplit_once('.')?;
        let stamp = stamp.parse().ok()?;
        Some((path, stamp))
    };
    let files = files(&state.join(ARCHIVE))?.into_iter();
    let logs = files.filter(|path| path.extension().is_some_and(|e| e == names::LOG));
    Ok(logs.filter_map(since).collect())
}

/// Returns the files of a directory, sorted by name; empty if it does not exist.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
