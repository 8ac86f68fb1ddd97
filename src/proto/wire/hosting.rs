//! Files and terminals that a client serves to the agent: requests of acpipe to it, only where it declared them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `initialize.capabilities.fs`: which files the client serves.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", expecting = "{readTextFile, writeTextFile}")]
pub struct FileCapabilities {
    /// The client answers `fs/readTextFile`.
    #[serde(default)]
    pub read_text_file: bool,
    /// The client answers `fs/writeTextFile`.
    #[serde(default)]
    pub write_text_file: bool,
}

/// `fs/readTextFile`, to the client: the text of a file, with changes that are not saved yet.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadTextFileParams {
    /// The client's session.
    pub session_id: String,
    /// Absolute, as the agent gives it.
    pub path: String,
    /// The first line that is wanted, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// How many lines are wanted; all where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The answer to `fs/readTextFile`. A file that is not there is an error with the code -32002 or -32031.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextFile {
    /// The text.
    pub content: String,
}

/// `fs/writeTextFile`, to the client: it makes the file, or changes it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WriteTextFileParams {
    /// The client's session.
    pub session_id: String,
    /// Absolute, as the agent gives it.
    pub path: String,
    /// What the file is to hold.
    pub content: String,
}

/// `terminal/create`, to the client: it runs a command.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalParams {
    /// The client's session.
    pub session_id: String,
    /// A program; without arguments it may be a whole line for the shell.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables to be set.
    pub env: Vec<EnvVariable>,
    /// Absolute; the session's own where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How many bytes of output are to be kept: the last, from a character on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_byte_limit: Option<u64>,
}

/// A variable to be set.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVariable {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The answer to `terminal/create`, given once the command runs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreatedTerminal {
    /// The name of the terminal.
    pub terminal_id: String,
}

/// `terminal/output`, `terminal/waitForExit`, `terminal/kill` and `terminal/release`, to the client. A killed
/// terminal can still be read; a released one is forgotten, and killed if it runs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalParams {
    /// The client's session.
    pub session_id: String,
    /// The name of the terminal.
    pub terminal_id: String,
}

/// The answer to `terminal/output`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalSaid {
    /// What it said, stdout and stderr in one.
    pub output: String,
    /// Whether what came before that was dropped.
    #[serde(default)]
    pub truncated: bool,
    /// How the command ended, if it has.
    #[serde(default)]
    pub exit_status: Option<TerminalExited>,
}

/// How a terminal's command ended; the answer to `terminal/waitForExit`, which may take long.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TerminalExited {
    /// Its exit code.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The name of the signal that ended it, such as `SIGTERM`.
    #[serde(default)]
    pub signal: Option<String>,
}

/// The answer to requests that only say that it was done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub struct DoneByClient {}
