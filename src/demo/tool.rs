//! Tools of the demo agent: one that reads, and one that changes something, so that apps can show both kinds of permission
//! requests.

use super::words;
use serde_json::{Value, json};
use std::io;
use std::path::Path;

/// Maximum number of names of a directory that are shown.
const SHOWN: usize = 20;

/// Maximum number of names that are read, so that a huge directory cannot block the turn.
const READ: usize = 10_000;

/// File that the demo agent names in an edit. It is not written.
const FILE: &str = "demo.txt";

/// Content for the file.
const CONTENT: &str = "Hello from acpipe's demo agent.\n";

/// Tool of the demo agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoTool {
    /// Lists the working directory.
    List,
    /// Proposes the content of a file, and writes nothing.
    Edit,
}

/// Result of a tool.
pub struct DemoToolResult {
    /// Status of the call.
    pub status: &'static str,
    /// Fields of its last update.
    pub fields: Value,
    /// Text about it in the answer.
    pub text: String,
}

impl DemoTool {
    /// Returns the bit of the tool in a set.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Returns the name of the tool's step in a plan.
    pub fn step(self) -> &'static str {
        match self {
            Self::List => "List the working directory",
            Self::Edit => "Propose an edit",
        }
    }

    /// Returns the tool call as it is announced, without its id.
    pub fn call(self, cwd: &str) -> Value {
        let path = Path::new(cwd).join(FILE);
        match self {
            Self::List => json!({
                "title": format!("List files in {cwd}"),
                "kind": "read",
                "locations": [{ "path": cwd }],
                "rawInput": { "path": cwd, "limit": SHOWN },
            }),
            Self::Edit => json!({
                "title": format!("Edit {FILE}"),
                "kind": "edit",
                "locations": [{ "path": path }],
                "content": [{ "type": "diff", "path": path, "oldText": null, "newText": CONTENT }],
                "rawInput": { "path": path, "content": CONTENT },
            }),
        }
    }

    /// Runs the tool.
    pub fn run(self, cwd: &str) -> DemoToolResult {
        match self {
            Self::List => match list(Path::new(cwd)) {
                Ok(listing) => {
                    let mut fields = content(&listing.text());
                    fields["rawOutput"] = json!({ "names": listing.names, "total": listing.total });
                    DemoToolResult {
                        status: "completed",
                        fields,
                        text: words::found(cwd, listing.total, &listing.text()),
                    }
                }
                Err(error) => {
                    let error = error.to_string();
                    let mut fields = content(&error);
                    fields["rawOutput"] = json!({ "error": error });
                    DemoToolResult {
                        status: "failed",
                        fields,
                        text: words::failed(cwd, &error),
                    }
                }
            },
            Self::Edit => DemoToolResult {
                status: "completed",
                // The diff of the announcement stays.
                fields: json!({ "rawOutput": { "written": false } }),
                text: words::not_written(FILE),
            },
        }
    }
}

/// Formats a text as content of a tool call.
pub fn content(text: &str) -> Value {
    json!({ "content": [{ "type": "content", "content": { "type": "text", "text": text } }] })
}

/// Names in a directory.
#[derive(Debug)]
struct DirectoryListing {
    /// First names in alphabetical order; directories end in a slash.
    names: Vec<String>,
    /// Number of all names read.
    total: usize,
}

impl DirectoryListing {
    /// Formats the listing with one name per line.
    fn text(&self) -> String {
        let mut lines: Vec<String> = self.names.iter().map(|name| format!("- {name}")).collect();
        let more = self.total - self.names.len();
        if more > 0 {
            lines.push(format!("- … and {more} more"));
        }
        lines.join("\n")
    }
}

fn list(dir: &Path) -> io::Result<DirectoryListing> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir)?.take(READ) {
        let entry = entry?;
        let slash = if entry.file_type()?.is_dir() { "/" } else { "" };
        // A file name may contain any characters, including control sequences of a terminal.
        let name = entry
            .file_name()
            .to_string_lossy()
            .replace(char::is_control, "?");
        names.push(name + slash);
    }
    names.sort();
    let total = names.len();
    names.truncate(SHOWN);
    Ok(DirectoryListing { names, total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tests::Scratch;

    #[test]
    fn listed_names_are_sorted_limited_and_counted() {
        let scratch = Scratch::new();
        for number in 0..23 {
            std::fs::write(scratch.0.join(format!("f{number:02}")), "").unwrap();
        }
        std::fs::create_dir(scratch.0.join("a")).unwrap();
        let listing = list(&scratch.0).unwrap();
        assert_eq!((listing.total, listing.names.len()), (24, SHOWN));
        assert_eq!(listing.names[..2], ["a/", "f00"]);
        assert!(listing.text().ends_with("- f18\n- … and 4 more"));
        assert!(list(&scratch.0.join("none")).is_err());
    }
}
