//! Session ids: derives the id of a session from a name and a directory.
//!
//! An id is unique in a store; a name is unique in a directory. The id of a session is its name. If a session
//! of another directory already has that id, it is the name with a hash of the directory: `work@1a2b3c4d`.
//! Shells give `@` no meaning inside a word.

use std::path::{Component, Path, PathBuf};

/// Separates the name from the directory hash.
const SEPARATOR: char = '@';

/// Prefix of the ids that `acpipe run` generates for runs without a name.
const UNNAMED: &str = "run-";

/// Minimum number of hexadecimal digits after [`UNNAMED`]: milliseconds since 1970, and a process id.
const UNNAMED_DIGITS: usize = 12;

/// Use of an id in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdHolder {
    Free,
    /// A session has the id. Its directory is unknown until it is opened.
    Unknown,
    Directory(String),
}

/// Id of the session with a given name in a given directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedSession {
    pub id: String,
    /// `true` if the session exists; `false` if the id is free.
    pub exists: bool,
}

/// Finds the session with this name in this directory, or the id for a new one. `dir` and the directories
/// that `holder` returns must be normalised.
///
/// # Errors
/// Errors of `holder`.
pub fn resolve<E>(
    name: &str,
    dir: &str,
    mut holder: impl FnMut(&str) -> Result<IdHolder, E>,
) -> Result<ResolvedSession, E> {
    let mut free = None;
    let candidates = candidates(name, dir);
    for id in &candidates {
        match holder(id)? {
            IdHolder::Directory(holder) if holder != dir => {}
            IdHolder::Directory(_) | IdHolder::Unknown => {
                let id = id.clone();
                return Ok(ResolvedSession { id, exists: true });
            }
            IdHolder::Free => free = free.or(Some(id)),
        }
    }
    // If even the longer hash is taken, the client's call fails later because the directories differ.
    let [.., last] = &candidates;
    Ok(ResolvedSession {
        id: free.unwrap_or(last).clone(),
        exists: false,
    })
}

/// Returns the possible ids of a session with this name in this directory. The longer hash is for directories
/// with equal short hashes.
fn candidates(name: &str, dir: &str) -> [String; 3] {
    let hash = fnv1a(dir.as_bytes());
    let short = (hash >> 32) ^ (hash & 0xffff_ffff);
    [
        name.to_owned(),
        format!("{name}{SEPARATOR}{short:08x}"),
        format!("{name}{SEPARATOR}{hash:016x}"),
    ]
}

/// 64-bit FNV-1a hash: small, and stable over platforms and versions.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Splits an id into name and directory hash; `None` if the id has no hash.
fn split(id: &str) -> Option<(&str, &str)> {
    let (name, hash) = id.rsplit_once(SEPARATOR)?;
    let is_hash = matches!(hash.len(), 8 | 16) && is_hex(hash) && !name.is_empty();
    is_hash.then_some((name, hash))
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the name in an id, without the directory hash.
pub fn name_of(id: &str) -> &str {
    split(id).map_or(id, |(name, _)| name)
}

pub fn is_unnamed(id: &str) -> bool {
    let digits = id.strip_prefix(UNNAMED).unwrap_or_default();
    digits.len() >= UNNAMED_DIGITS && is_hex(digits)
}

/// Returns the id of a run without a name; `unique` is hexadecimal.
pub fn unnamed(unique: &str) -> String {
    format!("{UNNAMED}{unique}")
}

/// Returns `true` if acpipe generated the id, by a directory hash or for a run without a name. Such an id
/// means the same session in every directory.
pub fn is_full(id: &str) -> bool {
    split(id).is_some() || is_unnamed(id)
}

/// Normalises a path without access to the disk: removes `.`, `..` and redundant slashes. Symbolic links are
/// not resolved.
pub fn lexical(path: &str) -> String {
    let mut normal = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(name: &str, dir: &str, stored: &[(&str, &str)]) -> (String, bool) {
        let holder = |id: &str| {
            let dir = stored.iter().find(|(known, _)| *known == id);
            let holder = match dir {
                None => IdHolder::Free,
                Some((_, "?")) => IdHolder::Unknown,
                Some((_, dir)) => IdHolder::Directory((*dir).to_owned()),
            };
            Ok::<_, Infallible>(holder)
        };
        let Ok(found) = resolve(name, dir, holder);
        (found.id, found.exists)
    }

    #[test]
    fn a_name_means_another_session_in_each_directory() {
        let [_, in_a, long_in_a] = candidates("work", "/a");
        assert_eq!(
            in_a, "work@b34abe2a",
            "ids are stored: the hash must not change"
        );
        assert_eq!(long_in_a, "work@07d66707b49cd92d");
        let other = [("work", "/b")];
        assert_eq!(found("work", "/a", &[]), ("work".to_owned(), false));
        assert_eq!(found("work", "/b", &other), ("work".to_owned(), true));
        assert_eq!(found("work", "/a", &other), (in_a.clone(), false));
        let both = [("work", "/b"), (in_a.as_str(), "/a")];
        assert_eq!(found("work", "/a", &both), (in_a.clone(), true));
        // The session keeps its id after the other session is deleted.
        let rest = [(in_a.as_str(), "/a")];
        assert_eq!(found("work", "/a", &rest), (in_a.clone(), true));
        assert_eq!(found("work", "/b", &rest), ("work".to_owned(), false));
        let equal_hashes = [("work", "/b"), (in_a.as_str(), "/c")];
        assert_eq!(found("work", "/a", &equal_hashes), (long_in_a, false));
        assert_eq!(
            found("work", "/a", &[("work", "?")]),
            ("work".to_owned(), true)
        );
    }

    #[test]
    fn generated_ids_are_distinguished_from_names() {
        for full in [
            "work@85dabbbb",
            "a@b@089c6e078d46d5bc",
            "run-19a3c5d7e9f1234",
        ] {
            assert!(is_full(full), "{full}");
        }
        for name in [
            "work",
            "work@home",
            "@85dabbbb",
            "work@85DABBBB",
            "run-1",
            "run-tests",
        ] {
            assert!(!is_full(name), "{name}");
        }
        assert_eq!(name_of("work@85dabbbb"), "work");
        assert_eq!(name_of("me@home"), "me@home");
    }

    #[test]
    fn paths_are_normalised_without_a_disk() {
        let cases = [
            ("/p/", "/p"),
            ("/p/./q/../", "/p"),
            ("//p//q", "/p/q"),
            ("/..", "/"),
            ("/", "/"),
        ];
        for (path, want) in cases {
            assert_eq!(lexical(path), want, "{path}");
        }
    }
}
