//! The user's TOML configuration file. Every error in it is reported before anything is started.

mod permissions;
mod table;

use super::UsageError;
use super::args::PermissionArgs;
use crate::core::policy::Policy;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use table::{ConfigError, Table};

/// Returns the policy of the configuration, with the mode of the command line applied.
///
/// # Errors
/// The configuration cannot be read or is not valid.
pub fn policy(args: &PermissionArgs) -> anyhow::Result<Policy> {
    let home = dirs::home_dir().and_then(|home| home.to_str().map(str::to_owned));
    let mut policy = match find(args.config.as_deref())? {
        Some((file, text)) => {
            policy_of(&text, home).map_err(|why| UsageError(format!("{}:{why}", file.display())))?
        }
        None => Policy::at_home(home),
    };
    if let Some(permissions) = args.permissions {
        policy.set_mode(permissions.into());
    }
    Ok(policy)
}

/// Returns the path of the configuration file; `None` if there is none.
///
/// # Errors
/// The file cannot be read.
pub fn file(args: &PermissionArgs) -> anyhow::Result<Option<PathBuf>> {
    Ok(find(args.config.as_deref())?.map(|(file, _)| file))
}

/// Returns path and content of the named file, or else of the user's default file if it exists.
fn find(named: Option<&Path>) -> anyhow::Result<Option<(PathBuf, String)>> {
    let usual = || Some(dirs::config_dir()?.join("acpipe").join("config.toml"));
    // An empty variable counts as unset.
    let variable = std::env::var_os("ACPIPE_CONFIG").filter(|file| !file.is_empty());
    let named = named.map(Path::to_owned).or(variable.map(PathBuf::from));
    let Some(file) = named.clone().or_else(usual) else {
        return Ok(None);
    };
    match text_of(&file) {
        Ok(text) => Ok(Some((file, text))),
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("cannot read the configuration {}: {error}", file.display());
            Err(UsageError(message).into())
        }
    }
}

/// Maximum size of a configuration file in bytes. A larger file is a mistake, or an endless device.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Reads a configuration file, without a leading byte order mark.
///
/// # Errors
/// The file cannot be read, is not UTF-8, or exceeds 1 MiB.
pub fn text_of(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut content = std::fs::File::open(file)?.take(MAX_FILE_BYTES + 1);
    content.read_to_end(&mut bytes)?;
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

/// Parses a configuration into a policy; `home` expands paths in rules.
///
/// # Errors
/// The configuration is not valid: line number, reason and remedy.
pub fn policy_of(text: &str, home: Option<String>) -> Result<Policy, String> {
    let mut policy = Policy::at_home(home);
    read(text, &mut policy).map_err(|fault| {
        let line = 1 + text[..fault.at].matches('\n').count();
        format!("{line}: {}", fault.why)
    })?;
    Ok(policy)
}

fn read(text: &str, policy: &mut Policy) -> Result<(), ConfigError> {
    let root = table::parse(text)?;
    let root = Table::new("", &root, &["permissions"])?;
    if let Some(permissions) = root.table("permissions", permissions::KEYS)? {
        permissions::read(&permissions, policy)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_page;
