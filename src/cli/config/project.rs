//! Search for the configuration file of a project.

use crate::shell::check_owner;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file.
pub const NAME: &str = ".acpipe.toml";

/// Result of the search for a project's file.
#[derive(Debug)]
pub enum Found {
    /// The file may be read.
    File(PathBuf),
    /// The file is not used because of its owner.
    Foreign(PathBuf, io::Error),
}

/// Returns the project's file: in the first directory, from `cwd` upwards, that has the file or `.git`.
///
/// Directories above `home`, of another user or of another file system are not searched: their owners could choose the
/// agent of each project below them. git has the same rule for repositories.
#[must_use]
pub fn find(cwd: &Path, home: Option<&Path>) -> Option<Found> {
    let file_system = cwd.metadata().ok().as_ref().and_then(device);
    for dir in cwd.ancestors() {
        let is_searched = dir == cwd
            || check_owner(dir).is_ok()
                && dir.metadata().ok().as_ref().and_then(device) == file_system;
        if !is_searched {
            return None;
        }
        let file = dir.join(NAME);
        if file.symlink_metadata().is_ok() {
            return Some(match check_owner(&file) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Found::Foreign(file, error)
                }
                _ => Found::File(file),
            });
        }
        if dir.join(".git").symlink_metadata().is_ok() || Some(dir) == home {
            return None;
        }
    }
    None
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
            let found = find(&root.join(cwd), Some(&home)).map(|found| match found {
                Found::File(file) => file,
                Found::Foreign(file, error) => panic!("{file:?}: {error}"),
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
        assert!(find(Path::new("/proc/self"), None).is_none());
        assert!(find(dir.path(), None).is_some());
    }
}
