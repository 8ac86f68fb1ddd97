//! The configuration: a TOML file of the user's. Whatever is wrong in it is told before anything is started.

mod permissions;
mod table;

use super::Mistake;
use super::args::PermissionArgs;
use crate::core::policy::Policy;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use table::{Fault, Table};

/// The policy: that of the configuration, with what the command line says.
///
/// # Errors
/// The configuration cannot be read, or something in it is wrong.
pub fn policy(args: &PermissionArgs) -> anyhow::Result<Policy> {
    let home = dirs::home_dir().and_then(|home| home.to_str().map(str::to_owned));
    let mut policy = match find(args.config.as_deref())? {
        Some((file, text)) => {
            policy_of(&text, home).map_err(|why| Mistake(format!("{}:{why}", file.display())))?
        }
        None => Policy::at_home(home),
    };
    if let Some(permissions) = args.permissions {
        policy.set_mode(permissions.into());
    }
    Ok(policy)
}

/// The file and what is in it: the one that is named, or else the user's own, if there is one.
fn find(named: Option<&Path>) -> anyhow::Result<Option<(PathBuf, String)>> {
    let usual = || Some(dirs::config_dir()?.join("acpipe").join("config.toml"));
    // A variable that is empty says nothing.
    let variable = std::env::var_os("ACPIPE_CONFIG").filter(|file| !file.is_empty());
    let named = named.map(Path::to_owned).or(variable.map(PathBuf::from));
    let Some(file) = named.clone().or_else(usual) else {
        return Ok(None);
    };
    match text_of(&file) {
        Ok(text) => Ok(Some((file, text))),
        Err(error) if named.is_none() && error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!(
                "the configuration {} cannot be read: {error}",
                file.display()
            );
            Err(Mistake(message).into())
        }
    }
}

/// How large a file of settings may be: what is larger is another file, or a device without an end.
const LARGEST: u64 = 1 << 20;

/// The text of a file of settings, without the mark that some editors begin it with.
///
/// # Errors
/// It cannot be read, is no text, or is too large to be settings.
pub fn text_of(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut content = std::fs::File::open(file)?.take(LARGEST + 1);
    content.read_to_end(&mut bytes)?;
    let wrong = |why: &str| Err(io::Error::new(ErrorKind::InvalidData, why));
    if bytes.len() as u64 > LARGEST {
        return wrong("it has more than 1 MiB: is it another file?");
    }
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.starts_with('\u{feff}') {
                text.remove(0);
            }
            Ok(text)
        }
        Err(_) => wrong("it is not UTF-8 text"),
    }
}

/// The policy of a configuration, with rules for a user of this home directory.
///
/// # Errors
/// Something in it is wrong: in which line, what, and what to do about it.
pub fn policy_of(text: &str, home: Option<String>) -> Result<Policy, String> {
    let mut policy = Policy::at_home(home);
    read(text, &mut policy).map_err(|fault| {
        let line = 1 + text[..fault.at].matches('\n').count();
        format!("{line}: {}", fault.why)
    })?;
    Ok(policy)
}

fn read(text: &str, policy: &mut Policy) -> Result<(), Fault> {
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
