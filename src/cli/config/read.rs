//! Reading of configuration files. A file in its usual place is used only if another user could not write it.

use super::UsageError;
use acpipe_host::{check_mode, check_owner, open_input, open_own};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum size of a configuration file in bytes. A larger file is a mistake, or an endless device.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum size of a project's file in bytes: it is read in every directory, also of projects of others.
const MAX_PROJECT_BYTES: u64 = 64 << 10;

/// The user's configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserFile {
    pub path: PathBuf,
    /// `true` if the user names the file: it may then belong to another user, as in a container.
    is_named: bool,
}

impl UserFile {
    /// Returns the named file, or else that of `ACPIPE_CONFIG` unless it is ignored, or else the usual one; `None` if the
    /// platform has no configuration directory.
    pub fn of(named: Option<&Path>, ignores_variable: bool) -> Option<Self> {
        // An empty variable counts as unset.
        let variable =
            std::env::var_os("ACPIPE_CONFIG").filter(|file| !file.is_empty() && !ignores_variable);
        let named = named.map(Path::to_owned).or(variable.map(PathBuf::from));
        if let Some(path) = named {
            return Some(Self::named(path));
        }
        Some(Self {
            path: Self::usual()?,
            is_named: false,
        })
    }

    /// Returns the path in the usual place; `None` if the platform has no configuration directory.
    #[must_use]
    pub fn usual() -> Option<PathBuf> {
        Some(dirs::config_dir()?.join("acpipe").join("config.toml"))
    }

    /// Returns a file that the user names.
    #[must_use]
    pub fn named(path: PathBuf) -> Self {
        Self {
            path,
            is_named: true,
        }
    }

    /// Returns `true` if this path means the user's file.
    #[must_use]
    pub fn is(&self, file: &Path) -> bool {
        let real = std::fs::canonicalize(&self.path);
        real.is_ok_and(|own| std::fs::canonicalize(file).is_ok_and(|other| own == other))
    }

    /// Reads the file; `None` if it is not named and does not exist.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn text(&self) -> anyhow::Result<Option<String>> {
        match self.read() {
            Ok((_, text)) => Ok(Some(text)),
            Err(error) if !self.is_named && error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&self.path, &error)),
        }
    }

    /// Reads the file. Returns its path behind links, too.
    ///
    /// # Errors
    /// The file cannot be read, or is in its usual place and another user could have written it.
    pub fn read(&self) -> io::Result<(PathBuf, String)> {
        if self.is_named {
            let text = text_of(&self.path)?;
            let real = std::fs::canonicalize(&self.path);
            return Ok((real.unwrap_or_else(|_| self.path.clone()), text));
        }
        if let Some(dir) = self.path.parent() {
            check_owner(dir)?;
        }
        let followed = open_own(&self.path)?;
        check_mode(&followed.file)?;
        Ok((followed.path, text_in(followed.file)?))
    }
}

/// Reads a project's file.
///
/// # Errors
/// The file is not open, or is not a text of at most 64 KiB.
pub fn project_text(path: &Path, opened: io::Result<File>) -> anyhow::Result<String> {
    let read = opened.and_then(|file| {
        if file.metadata()?.len() > MAX_PROJECT_BYTES {
            let why = "the file of a project must not be larger than 64 KiB; check the file";
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        text_in(file)
    });
    read.map_err(|error| unreadable(path, &error))
}

fn unreadable(file: &Path, error: &io::Error) -> anyhow::Error {
    let message = format!("cannot read the configuration {}: {error}", file.display());
    UsageError(message).into()
}

/// Texts of the pipes that were read: a command reads its configuration more than once, and a pipe would be empty then.
static PIPES: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Reads a file that the user names, without a leading byte order mark.
///
/// # Errors
/// The file cannot be read, is not UTF-8, or exceeds 1 MiB.
pub fn text_of(file: &Path) -> io::Result<String> {
    if !std::fs::metadata(file)?.file_type().is_fifo() {
        return text_in(open_input(file)?);
    }
    let mut pipes = PIPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = pipes.get(file) {
        return Ok(text.clone());
    }
    let text = text_in(open_input(file)?)?;
    pipes.insert(file.to_owned(), text.clone());
    Ok(text)
}

fn text_in(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    let wrong = |why: &str| Err(io::Error::new(ErrorKind::InvalidData, why));
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return wrong("the file is larger than 1 MiB; check the path");
    }
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.starts_with('\u{feff}') {
                text.remove(0);
            }
            Ok(text)
        }
        Err(_) => wrong("the file is not UTF-8 text"),
    }
}
