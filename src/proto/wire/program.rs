//! Which program an agent is, and why that one.

use schemars::JsonSchema;
use serde::Serialize;

/// The program that an agent's command was found to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Program {
    /// The file that is run, absolute.
    pub file: String,
    /// The same without symbolic links.
    pub real_file: String,
    /// How it was found.
    pub found_by: FoundBy,
    /// Files of that name that come before it and cannot be run.
    pub passed_over: Vec<PassedOver>,
    /// Directories of the login shell's `PATH` that the agent got behind its own, since it was not to be started
    /// without them.
    pub added_path: Vec<String>,
}

/// How a program was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FoundBy {
    /// The command is a path.
    GivenPath,
    /// `CLAUDE_CLI_PATH` names it.
    Variable,
    /// In a directory of the agent's `PATH`.
    Path,
    /// In a directory that only the login shell has in its `PATH`.
    LoginShell,
    /// Where installers of the Claude Code CLI put it.
    KnownPlace,
}

/// A file that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PassedOver {
    /// The file.
    pub file: String,
    /// Why it cannot be run.
    pub reason: String,
}
