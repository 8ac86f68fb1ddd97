//! The program of an agent on the wire, and how it was found.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// File that an agent's command resolved to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// Absolute path of the executed file.
    pub file: String,
    /// Path with symbolic links resolved.
    pub real_file: String,
    /// How the file was found.
    pub found_by: FoundBy,
    /// Files of the same name that come earlier in the search but cannot be executed.
    pub passed_over: Vec<PassedOver>,
    /// Directories of the login shell's `PATH` that acpipe appended to the agent's `PATH`, because the agent
    /// could not be started without them. Empty otherwise.
    pub added_path: Vec<String>,
}

/// How the program of an agent was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum FoundBy {
    /// The command is a path.
    GivenPath,
    /// The environment variable `CLAUDE_CLI_PATH` contains the path.
    Variable,
    /// In a directory of the agent's `PATH`.
    Path,
    /// In a directory that only the login shell's `PATH` contains.
    LoginShell,
    /// In a directory where installers of the Claude Code CLI put it.
    KnownPlace,
    /// The program is not installed: this is the package runner (`npx`, `uvx`) that downloads and runs it.
    PackageRunner,
}

/// A file that was skipped in the search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PassedOver {
    /// Path of the file.
    pub file: String,
    /// Why the file cannot be executed.
    pub reason: String,
}
