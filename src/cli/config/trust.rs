//! Projects' files that the user trusts: the state directory has a copy of each trusted text, and a file is
//! trusted exactly as long as its text equals the copy.

use super::read::MAX_FILE_BYTES;
use super::write;
use acpipe_host::{make_private, read_state_file};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Returns `true` if the user trusts the file with this text.
#[must_use]
pub fn is_trusted(state: &Path, file: &Path, text: &str) -> bool {
    let copy = copy_of(state, file).and_then(|copy| read_state_file(&copy, MAX_FILE_BYTES));
    copy.is_ok_and(|copy| copy == text.as_bytes())
}

/// Trusts a file with this text.
///
/// # Errors
/// The copy cannot be written.
pub fn trust(state: &Path, file: &Path, text: &str) -> io::Result<()> {
    let copy = copy_of(state, file)?;
    if let Some(dir) = copy.parent() {
        make_private(dir)?;
    }
    // The mode of a file in its place would be kept.
    untrust(state, file)?;
    write::replace(&copy, text)
}

/// Ends the trust in a file. Returns `false` if the file was not trusted with any text.
///
/// # Errors
/// The copy cannot be removed.
pub fn untrust(state: &Path, file: &Path) -> io::Result<bool> {
    match fs::remove_file(copy_of(state, file)?) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Maximum length of an escaped path, so that the name of its copy is valid.
const MAX_NAME: usize = 240;

/// Returns the path of a file's copy. Its name is the real path of the directory with the name of the file, in which all bytes except
/// letters, digits, `.`, `_` and `-` are escaped.
fn copy_of(state: &Path, file: &Path) -> io::Result<PathBuf> {
    // A symbolic link is not followed: its agents run in another project than those of its target.
    let real = match (file.parent(), file.file_name()) {
        (Some(dir), Some(name)) => fs::canonicalize(dir)?.join(name),
        _ => return Err(ErrorKind::InvalidInput.into()),
    };
    let mut escaped = String::new();
    for byte in real.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-') {
            escaped.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    if escaped.len() > MAX_NAME {
        let why = "the path of the file is too long to be trusted; move the project";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    Ok(state.join("trusted").join(format!("{escaped}.toml")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::test_dir::TestDir;

    #[test]
    fn file_is_trusted_as_long_as_its_text_is_unchanged() {
        let dir = TestDir::new("trust");
        let state = dir.path().join("state");
        let project = dir.path().join("a b");
        fs::create_dir(&project).unwrap();
        let file = project.join(".acpipe.toml");
        let other = dir.path().join(".acpipe.toml");
        for file in [&file, &other] {
            fs::write(file, "x = 1").unwrap();
        }
        assert!(!is_trusted(&state, &file, "x = 1"));
        assert!(!untrust(&state, &file).unwrap());
        trust(&state, &file, "x = 1").unwrap();
        for (file, text, want) in [
            (&file, "x = 1", true),
            (&file, "x = 1\n", false),
            (&file, "", false),
            (&other, "x = 1", false),
        ] {
            assert_eq!(is_trusted(&state, file, text), want, "{file:?} {text:?}");
        }
        trust(&state, &file, "x = 2").unwrap();
        assert!(is_trusted(&state, &file, "x = 2") && !is_trusted(&state, &file, "x = 1"));
        let copy = copy_of(&state, &file).unwrap();
        assert!(
            copy.to_string_lossy()
                .ends_with("%2Fa%20b%2F.acpipe.toml.toml"),
            "{copy:?}"
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(&copy).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        fs::remove_file(&file).unwrap();
        assert!(untrust(&state, &file).unwrap() && !untrust(&state, &file).unwrap());
        assert!(!is_trusted(&state, &file, "x = 2"));
    }

    #[test]
    fn file_with_a_path_that_is_too_long_is_not_trusted() {
        let dir = TestDir::new("trust-long");
        let deep = dir.path().join("d".repeat(200)).join("e".repeat(100));
        fs::create_dir_all(&deep).unwrap();
        let error = trust(dir.path(), &deep.join(".acpipe.toml"), "").unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
