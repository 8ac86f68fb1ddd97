//! Temporary directory for the sessions of a checked agent.

use anyhow::Context as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Directory in which the agent opens its sessions.
#[derive(Debug)]
pub struct SessionDirectory {
    path: PathBuf,
    /// Whether the directory was created for the check, and is removed after it.
    is_temporary: bool,
}

impl SessionDirectory {
    /// Uses the given directory, or creates a temporary one that only the user can access.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn new(given: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(given) = given {
            let path = std::path::absolute(given).context("cannot read the working directory")?;
            return Ok(Self {
                path,
                is_temporary: false,
            });
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_micros());
        let name = format!("acpipe-doctor-{:x}-{now:x}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut builder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let created = builder.create(&path);
        created.with_context(|| format!("cannot create the directory {}", path.display()))?;
        Ok(Self {
            // Some agents report the path without symbolic links.
            path: fs::canonicalize(&path).unwrap_or(path),
            is_temporary: true,
        })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl Drop for SessionDirectory {
    fn drop(&mut self) {
        if self.is_temporary {
            // A directory that cannot be removed is left to the system.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
