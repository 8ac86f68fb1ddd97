//! Session ids: how a name and a directory become the id of a session.
//!
//! Ids are unique in a store; names are unique in a directory. The id of a session is its name, or, where a session
//! of another directory has that id, the name with a hash of the directory: `work@1a2b3c4d`. `@` has no meaning to a
//! shell inside of a word.

use std::path::{Component, Path, PathBuf};

/// Separates a name from the hash of its directory.
const SEPARATOR: char = '@';

/// Begins the ids that `acpipe run` makes for runs without a name.
const UNNAMED: &str = "run-";

/// The fewest hexadecimal digits of such an id: milliseconds since 1970, and a process id.
const UNNAMED_DIGITS: usize = 12;

/// Whether an id is in use, and by a session of which directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// No session has this id.
    Free,
    /// A session has this id; its directory is not known without opening it.
    Unknown,
    /// A session of this directory has this id.
    Directory(String),
}

/// The session of a name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub id: String,
    /// Whether the session exists; otherwise the id is free.
    pub exists: bool,
}

/// Finds the session of this name in this directory, or the id that a new one gets. `dir` and the directories of
/// `holder` are normalised.
///
/// # Errors
/// Those of `holder`.
pub fn resolve<E>(
    name: &str,
    dir: &str,
    mut holder: impl FnMut(&str) -> Result<Holder, E>,
) -> Result<Resolved, E> {
    let mut free = None;
    let candidates = candidates(name, dir);
    for id in &candidates {
        match holder(id)? {
            Holder::Directory(holder) if holder != dir => {}
            Holder::Directory(_) | Holder::Unknown => {
                let id = id.clone();
                return Ok(Resolved { id, exists: true });
            }
            Holder::Free => free = free.or(Some(id)),
        }
    }
    // Where even the long hash is taken the client is refused, since the directories differ.
    let [.., last] = &candidates;
    Ok(Resolved {
        id: free.unwrap_or(last).clone(),
        exists: false,
    })
}

/// The ids that a session of this name can have in this directory. The longer hash is for directories whose short
/// hashes are equal.
fn candidates(name: &str, dir: &str) -> [String; 3] {
    let hash = fnv1a(dir.as_bytes());
    let short = (hash >> 32) ^ (hash & 0xffff_ffff);
    [
        name.to_owned(),
        format!("{name}{SEPARATOR}{short:08x}"),
        format!("{name}{SEPARATOR}{hash:016x}"),
    ]
}

/// FNV-1a with 64 bits: small, and the same on every platform and in every version.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Splits an id into the name and the hash of a directory, if it has one.
fn split(id: &str) -> Option<(&str, &str)> {
    let (name, hash) = id.rsplit_once(SEPARATOR)?;
    let is_hash = matches!(hash.len(), 8 | 16) && is_hex(hash) && !name.is_empty();
    is_hash.then_some((name, hash))
}

fn is_hex(text: &str) -> bool {
    text.bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The name in an id: without the hash of a directory.
#[must_use]
pub fn name_of(id: &str) -> &str {
    split(id).map_or(id, |(name, _)| name)
}

/// Whether this is the id of a run without a name.
#[must_use]
pub fn is_unnamed(id: &str) -> bool {
    let digits = id.strip_prefix(UNNAMED).unwrap_or_default();
    digits.len() >= UNNAMED_DIGITS && is_hex(digits)
}

/// The id of a run without a name.
#[must_use]
pub fn unnamed(unique: &str) -> String {
    format!("{UNNAMED}{unique}")
}

/// Whether an id means one session wherever it is used: acpipe made it, by a directory's hash or for a run without
/// a name.
#[must_use]
pub fn is_full(id: &str) -> bool {
    split(id).is_some() || is_unnamed(id)
}

/// A path without `.`, `..` and slashes that change nothing. Links are left as they are.
#[must_use]
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
                None => Holder::Free,
                Some((_, "?")) => Holder::Unknown,
                Some((_, dir)) => Holder::Directory((*dir).to_owned()),
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
        // The session keeps its id when the other one is deleted.
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
    fn ids_that_acpipe_made_are_told_from_names() {
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
