//! Tokens of the HTTP server: one for full access, one for observers.

use crate::cli::connections::ClientAccess;
use acpipe_host::{make_private, open_state_file_to_read};
use acpipe_model::secret::Secrets;
use anyhow::{Context as _, bail, ensure};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use subtle::ConstantTimeEq as _;

/// Number of random bytes in a token.
const RANDOM_BYTES: usize = 32;

/// Permissions of everybody but the owner.
const OTHERS: u32 = 0o077;

/// Number of characters of a token: its bytes in hexadecimal, which a WebSocket subprotocol can carry.
const LENGTH: usize = RANDOM_BYTES * 2;

/// Tokens that clients present. They are never logged.
pub struct Tokens {
    full: String,
    observer: String,
}

impl Tokens {
    /// Reads the tokens from the state directory, and creates those that do not exist. An agent can read the files
    /// and repeat them, so they become known secrets.
    pub fn load(state_dir: &Path, secrets: &Secrets) -> anyhow::Result<Self> {
        let tokens = Self {
            full: load_token(&state_dir.join("token"))?,
            observer: load_token(&state_dir.join("token.observer"))?,
        };
        secrets.add_values([tokens.full.as_str(), tokens.observer.as_str()]);
        Ok(tokens)
    }

    /// Returns the token for full access.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// Returns what a client with this token may do; `None` if the token is wrong. Compares in constant time.
    pub fn access_of(&self, presented: &str) -> Option<ClientAccess> {
        let presented = presented.as_bytes();
        let is_full = bool::from(presented.ct_eq(self.full.as_bytes()));
        let is_observer = bool::from(presented.ct_eq(self.observer.as_bytes()));
        match (is_full, is_observer) {
            (true, _) => Some(ClientAccess::Full),
            (false, true) => Some(ClientAccess::Observer),
            (false, false) => None,
        }
    }
}

fn load_token(path: &Path) -> anyhow::Result<String> {
    if let Some(token) = read_token(path)? {
        return Ok(token);
    }
    create_token(path).with_context(|| format!("cannot create the token {}", path.display()))?;
    // Another process may have created it first.
    match read_token(path)? {
        Some(token) => Ok(token),
        None => bail!(
            "cannot read the token {}: it was removed meanwhile; start again",
            path.display()
        ),
    }
}

/// Reads a token. `None` if the file does not exist.
fn read_token(path: &Path) -> anyhow::Result<Option<String>> {
    let shown = path.display();
    let file = match open_state_file_to_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(error).with_context(|| {
                format!("cannot open the token {shown}; remove it, then a new one is created")
            });
        }
    };
    ensure!(
        file.metadata()?.mode() & OTHERS == 0,
        "cannot use the token {shown}: other users can read it; remove it, then a new one is created"
    );
    let mut text = String::new();
    file.take(LENGTH as u64 + 2).read_to_string(&mut text)?;
    let token = text.trim_end();
    ensure!(
        token.len() == LENGTH && token.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "cannot use the token {shown}: it is not {LENGTH} hexadecimal digits; remove it, then a new one is created"
    );
    Ok(Some(token.to_owned()))
}

/// Creates a token. The file appears complete, and an existing one is not replaced.
fn create_token(path: &Path) -> anyhow::Result<()> {
    if let Some(dir) = path.parent() {
        make_private(dir)?;
    }
    let token = random_hex::<RANDOM_BYTES>()?;
    let name = format!(".token.{}", random_hex::<8>()?);
    let new = path.with_file_name(name);
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let written = writeln!(file, "{token}").and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&new, path));
    std::fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns random bytes in hexadecimal.
pub fn random_hex<const N: usize>() -> anyhow::Result<String> {
    use std::fmt::Write as _;
    let mut bytes = [0; N];
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(&mut bytes);
    filled
        .ok()
        .context("cannot get random bytes from the operating system")?;
    let mut text = String::with_capacity(N * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn scratch() -> std::path::PathBuf {
        let name = format!("acpipe-token-{}", random_hex::<8>().unwrap());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir(&dir).unwrap();
        dir
    }

    #[test]
    fn tokens_are_created_once_and_only_for_their_owner() {
        let dir = scratch();
        let tokens = Tokens::load(&dir, &Secrets::default()).unwrap();
        let again = Tokens::load(&dir, &Secrets::default()).unwrap();
        assert_eq!(tokens.full, again.full);
        assert_ne!(tokens.full, tokens.observer);
        let mode = std::fs::metadata(dir.join("token")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2);
        assert_eq!(tokens.access_of(&tokens.full), Some(ClientAccess::Full));
        assert_eq!(
            tokens.access_of(&tokens.observer),
            Some(ClientAccess::Observer)
        );
        for wrong in ["", &tokens.full[1..], &format!("{}0", tokens.full)] {
            assert_eq!(tokens.access_of(wrong), None);
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn tokens_that_others_may_know_are_refused() {
        let dir = scratch();
        let path = dir.join("token");
        Tokens::load(&dir, &Secrets::default()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let error = Tokens::load(&dir, &Secrets::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("other users can read it"), "{error}");
        std::fs::rename(&path, dir.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.join("elsewhere"), &path).unwrap();
        let error = Tokens::load(&dir, &Secrets::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("cannot open the token"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "guess").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = Tokens::load(&dir, &Secrets::default())
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("hexadecimal digits"), "{error}");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
