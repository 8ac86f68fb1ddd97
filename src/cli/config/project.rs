//! Search for the configuration file of a project.

use std::path::{Path, PathBuf};

/// Name of the file.
pub const NAME: &str = ".acpipe.toml";

/// Returns the path of the project's file: in the first directory, from `cwd` upwards, that has the file or
/// `.git`. Directories above `home` are not searched.
#[must_use]
pub fn find(cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    for dir in cwd.ancestors() {
        let file = dir.join(NAME);
        if file.symlink_metadata().is_ok() {
            return Some(file);
        }
        if dir.join(".git").symlink_metadata().is_ok() || Some(dir) == home {
            return None;
        }
    }
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
            let found = find(&root.join(cwd), Some(&home));
            let want = want.map(|dir| root.join(dir).join(NAME));
            assert_eq!(found, want, "{cwd}");
        }
    }
}
