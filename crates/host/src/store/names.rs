//! File names of session ids: every valid id has a name that stays within the directory.

use acpipe_model::error::{Error, ErrorKind};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// File extensions of logs, of their cards and of their indexes.
pub const LOG: &str = "jsonl";
pub const CARD: &str = "json";
pub const INDEX: &str = "index";

/// File extension of an index that is being written.
pub const NEW_INDEX: &str = "index-new";

/// Returns the path of the copies of all cards in a directory of logs.
pub fn card_cache(sessions: &Path) -> PathBuf {
    sessions.with_file_name("cards.cache")
}

/// Maximum length of a name in bytes: file systems allow 255, including the timestamp in the archive.
const MAX_NAME_BYTES: usize = 200;

/// Returns the path of a session's log.
///
/// # Errors
/// The id is empty or too long.
pub fn log(dir: &Path, id: &str) -> Result<PathBuf, Error> {
    let name = escaped(id);
    let wrong = match name.len() {
        0 => "must not be empty",
        1..=MAX_NAME_BYTES => return Ok(dir.join(format!("{name}.{LOG}"))),
        _ => {
            "too long; use at most 200 characters of a-z, 0-9, - and _ (each byte of others counts three times)"
        }
    };
    let error = Error::new(ErrorKind::InvalidParams, format!("sessionId: {wrong}"));
    Err(error.with("field", "sessionId"))
}

/// Escapes an id as a file name. Lower case letters, digits, `-`, `_` and dots that are not leading stay; all
/// other bytes become `%XX`, including upper case letters because some file systems ignore case.
pub fn escaped(id: &str) -> String {
    let mut name = String::new();
    for (n, byte) in id.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            b'.' if n > 0 => name.push('.'),
            _ => {
                // Writing to memory cannot fail.
                let _ = write!(name, "%{byte:02X}");
            }
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_names_that_stay_in_the_directory() {
        let cases = [
            ("default", "default.jsonl"),
            ("0195-ab_c.d", "0195-ab_c.d.jsonl"),
            ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.jsonl"),
            ("..", "%2E..jsonl"),
            ("A b", "%41%20b.jsonl"),
            ("é\0\n", "%C3%A9%00%0A.jsonl"),
            ("a%41", "a%2541.jsonl"),
        ];
        for (id, want) in cases {
            let path = log(Path::new("/s"), id).unwrap();
            assert_eq!(path, Path::new("/s").join(want), "{id:?}");
            assert_eq!(path.parent(), Some(Path::new("/s")), "{id:?}");
        }
        assert!(log(Path::new("/s"), "").is_err());
        assert!(log(Path::new("/s"), &"x".repeat(201)).is_err());
        assert!(log(Path::new("/s"), &"x".repeat(200)).is_ok());
    }
}
