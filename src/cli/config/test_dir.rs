//! Temporary directory of a test.

use std::fs;
use std::path::{Path, PathBuf};

/// Directory that is removed at the end of the test.
pub struct TestDir(PathBuf);

impl TestDir {
    /// Creates an empty directory; the name is unique among the tests.
    pub fn new(name: &str) -> Self {
        let name = format!("acpipe-config-{name}-{}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Self(fs::canonicalize(dir).unwrap())
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
