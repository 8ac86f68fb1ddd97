//! Search for the configuration file of a project.

use acpipe_host::{check_link_owner, check_owner, is_foreign, open_own};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Name of the file.
pub const NAME: &str = ".acpipe.toml";

/// Result of the search for a project's file.
#[derive(Debug, Default)]
pub struct ProjectFileSearch {
    /// Path of the file, and the open file or the reason why it cannot be read.
    pub found: Option<(PathBuf, io::Result<File>)>,
    /// Files that have no effect because of their owners.
    pub foreign: Vec<(PathBuf, io::Error)>,
}

/// Searches for the project's file: in the first directory, from `cwd` without links upwards, that has the file or `.git`.
///
/// Directories above `home` or in another file system are not searched. What belongs to another user is passed over:
/// directories, files and `.git` above or in a directory that all can write. It must neither choose the agent of the
/// projects below it, nor hide the user's own file.
#[must_use]
pub fn find(cwd: &Path, home: Option<&Path>) -> ProjectFileSearch {
    let mut search = ProjectFileSearch::default();
    // Behind links, as after `cd`: the project is the one whose files the agent changes. A directory that does not exist
    // has no links.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (cwd, home) = (&*real(cwd), home.map(real));
    let home = home.as_deref();
    let file_system = cwd.metadata().ok().as_ref().and_then(device);
    for dir in cwd.ancestors() {
        if dir.metadata().ok().as_ref().and_then(device) != file_system {
            break;
        }
        if dir == cwd || check_owner(dir).is_ok() {
            let file = dir.join(NAME);
            match open_own(&file) {
                Err(error) if is_foreign(&error) => search.foreign.push((file, error)),
                Err(error)
                    if error.kind() == ErrorKind::NotFound && file.symlink_metadata().is_err() => {}
                opened => {
                    search.found = Some((file, opened.map(|followed| followed.file)));
                    break;
                }
            }
            if check_link_owner(&dir.join(".git")).is_ok() {
                break;
            }
        }
        if Some(dir) == home {
            break;
        }
    }
    search
}

/// Returns the number of the file system.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no number")]
fn device(metadata: &Metadata) -> Option<u64> {
    Some(std::os::unix::fs::MetadataExt::dev(metadata))
}

#[cfg(not(unix))]
fn device(_: &Metadata) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::test_dir::TestDir;
    use std::fs;

    #[test]
    fn file_is_found_up_to_the_repository_and_the_home_directory() {
        let dir = TestDir::new("project");
        let root = dir.path();
        let home = root.join("home");
        for below in ["repo/.git", "repo/src", "plain/src", "other/.git"] {
            fs::create_dir_all(home.join(below)).unwrap();
        }
        for file in ["", "home/repo", "home/plain"] {
            fs::write(root.join(file).join(NAME), "").unwrap();
        }
        for (cwd, want) in [
            ("home/repo/src", Some("home/repo")),
            ("home/repo", Some("home/repo")),
            ("home/plain/src", Some("home/plain")),
            ("home/other", None),
            ("home", None),
            ("", Some("")),
        ] {
            let search = find(&root.join(cwd), Some(&home));
            assert!(search.foreign.is_empty(), "{cwd}: {search:?}");
            let found = search.found.map(|(file, opened)| {
                opened.unwrap();
                file
            });
            let want = want.map(|dir| root.join(dir).join(NAME));
            assert_eq!(found, want, "{cwd}");
        }
    }

    /// `/proc` is a file system of its own in every directory of which the search begins.
    #[cfg(target_os = "linux")]
    #[test]
    fn search_stops_at_another_file_system() {
        let dir = TestDir::new("project-file-system");
        fs::write(dir.path().join(NAME), "").unwrap();
        assert!(find(Path::new("/proc/self"), None).found.is_none());
        assert!(find(dir.path(), None).found.is_some());
    }

    /// The text is that of the checked file, even if the file is exchanged in between.
    #[test]
    fn found_file_is_the_one_that_was_checked() {
        let dir = TestDir::new("project-exchanged");
        let file = dir.path().join(NAME);
        fs::write(&file, "own").unwrap();
        let (path, opened) = find(dir.path(), None).found.unwrap();
        fs::write(dir.path().join("other"), "other").unwrap();
        fs::rename(dir.path().join("other"), &path).unwrap();
        let text = super::super::read::project_text(&path, opened).unwrap();
        assert_eq!(text, "own");
    }
}
