//! The demo's one tool: the names in a directory. It reads and changes nothing.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// How many names are told.
pub const SHOWN: usize = 20;

/// How many names are read, so that an enormous directory cannot hold the turn up.
const READ: usize = 10_000;

/// What a directory holds.
#[derive(Debug, PartialEq)]
pub struct Listing {
    /// The first names in alphabetical order; those of directories end in a slash.
    pub names: Vec<String>,
    /// How many there are.
    pub total: usize,
}

impl Listing {
    /// A name a line.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.names.iter().map(|name| format!("- {name}")).collect();
        let more = self.total.saturating_sub(self.names.len());
        if more > 0 {
            lines.push(format!("- … and {more} more"));
        }
        lines.join("\n")
    }

    /// The tool's result for programs.
    pub fn json(&self) -> Value {
        json!({ "names": self.names, "total": self.total })
    }
}

/// Lists `dir`, on a thread for blocking work since the directory may lie on a slow network.
pub async fn list(dir: PathBuf) -> io::Result<Listing> {
    let done = tokio::task::spawn_blocking(move || read(&dir)).await;
    done.unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn read(dir: &Path) -> io::Result<Listing> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(READ) {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        // A file name may hold anything, a terminal's control sequences too.
        let name = entry
            .file_name()
            .to_string_lossy()
            .replace(char::is_control, "?");
        names.push(name + slash);
    }
    names.sort();
    let total = names.len();
    names.truncate(SHOWN);
    Ok(Listing { names, total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::harness::Scratch;

    #[test]
    fn names_are_sorted_bounded_and_counted() {
        let scratch = Scratch::new();
        for number in 0..23 {
            std::fs::write(scratch.path().join(format!("f{number:02}")), "").unwrap();
        }
        std::fs::create_dir(scratch.path().join("a")).unwrap();
        let listing = read(scratch.path()).unwrap();
        assert_eq!(listing.total, 24);
        assert_eq!(listing.names.len(), SHOWN);
        assert_eq!(listing.names[..2], ["a/", "f00"]);
        assert!(listing.text().ends_with("- f18\n- … and 4 more"));
        assert_eq!(listing.json()["total"], 24);
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let scratch = Scratch::new();
        assert!(read(&scratch.path().join("none")).is_err());
    }
}
