//! What a policy is asked about, in words that all agents share.

use serde_json::value::RawValue;

/// Something that an agent wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The kind of tool, by ACP's names: `read`, `edit`, `execute` … `other` where it is not known.
    pub kind: String,
    /// The tool's name, where the agent tells it.
    pub name: Option<String>,
    /// What it is about, for people.
    pub title: Option<String>,
    /// Where it works: absolute paths.
    pub paths: Vec<String>,
    /// The command line that it runs.
    pub command: Option<String>,
    /// The working directory that patterns of paths are relative to.
    pub cwd: String,
}

/// What is known of a tool call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tool<'a> {
    pub name: Option<&'a str>,
    pub title: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub input: Option<&'a RawValue>,
    /// Array of places in files, as ACP has them.
    pub locations: Option<&'a RawValue>,
}

impl Subject {
    /// A tool call of a session that works in `cwd`.
    #[must_use]
    pub fn of_tool(tool: &Tool<'_>, cwd: &str) -> Self {
        Self {
            kind: tool.kind.unwrap_or("other").to_owned(),
            name: tool.name.map(str::to_owned),
            title: tool.title.map(str::to_owned),
            cwd: cwd.to_owned(),
            ..Self::default()
        }
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        matches!(self.kind.as_str(), "read" | "search" | "think")
    }
}
