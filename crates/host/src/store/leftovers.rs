//! Leftovers of crashes next to the logs, and the archive.

use super::{ARCHIVE, SESSIONS, names};
use crate::regular;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Result of [`sweep`].
#[derive(Debug, Default)]
pub struct Swept {
    /// Files that were removed, or would be.
    pub removed: Vec<PathBuf>,
    /// Logs that are not acpipe's because of their owner or mode, and directories in place of files, each with the reason.
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
        if is_directory(&path) {
            let why = io::Error::new(io::ErrorKind::IsADirectory, "is a directory");
            swept.refused.push((path, why));
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
    let logs = logs.filter(|path| !is_directory(path));
    Ok(logs.filter_map(since).collect())
}

fn is_directory(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_in_place_of_files_are_left_alone() {
        let name = format!("acpipe-directories-{}", std::process::id());
        let state = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&state);
        let card = state.join(SESSIONS).join("a.json");
        let log = state.join(ARCHIVE).join("a.1.jsonl");
        for dir in [&card, &log] {
            fs::create_dir_all(dir).unwrap();
        }
        let swept = sweep(&state, false).unwrap();
        assert!(swept.failed.is_empty() && swept.removed.is_empty());
        let (path, why) = &swept.refused[0];
        assert_eq!((path, why.to_string().as_str()), (&card, "is a directory"));
        assert!(archived(&state).unwrap().is_empty());
        fs::remove_dir_all(&state).unwrap();
    }
}
