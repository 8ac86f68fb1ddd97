//! Requests from acpipe to a client that serves files and terminals to agents. acpipe sends them only if the
//! client declared the capability.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// File requests that the client answers: `initialize.capabilities.fs`.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase", expecting = "{readTextFile, writeTextFile}")]
pub struct FileCapabilities {
    /// Whether the client answers `fs/readTextFile`. Default: `false`.
    #[serde(default)]
    pub read_text_file: bool,
    /// Whether the client answers `fs/writeTextFile`. Default: `false`.
    #[serde(default)]
    pub write_text_file: bool,
}

/// Parameters of the request `fs/readTextFile`, sent to the client to read a text file, including unsaved
/// changes.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReadTextFileParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Absolute path of the file, as the agent sent it.
    pub path: String,
    /// First line to read, counted from 1. Absent: the first line of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Maximum number of lines to read. Absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The client's response to `fs/readTextFile`. If the file does not exist, the client responds with an error
/// of code -32002 or -32031.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TextFile {
    /// Text of the file, or of the requested lines.
    pub content: String,
}

/// Parameters of the request `fs/writeTextFile`, sent to the client to create a text file or replace its
/// content.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteTextFileParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Absolute path of the file, as the agent sent it.
    pub path: String,
    /// New content of the file.
    pub content: String,
}

/// Parameters of the request `terminal/create`, sent to the client to run a command.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreateTerminalParams {
    /// The client's id of the session.
    pub session_id: String,
    /// Program; or, if `args` is empty, possibly a whole command line for the shell.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables to set.
    pub env: Vec<EnvVariable>,
    /// Absolute path of the working directory. Absent: that of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Maximum number of bytes of output to keep: the last ones, starting at a character boundary. Where
    /// absent, the client decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_byte_limit: Option<u64>,
}

/// Environment variable to set.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvVariable {
    /// Name of the variable.
    pub name: String,
    /// Value of the variable.
    pub value: String,
}

/// The client's response to `terminal/create`, sent once the command runs.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CreatedTerminal {
    /// The client's id of the terminal.
    pub terminal_id: String,
}

/// Parameters of the requests `terminal/output`, `terminal/waitForExit`, `terminal/kill` and
/// `terminal/release`, sent to the client. The output of a killed terminal must stay readable. The client
/// kills a released terminal if it still runs, and forgets it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TerminalParams {
    /// The client's id of the session.
    pub session_id: String,
    /// The client's id of the terminal.
    pub terminal_id: String,
}

/// The client's response to `terminal/output`.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TerminalSaid {
    /// Output of the command: stdout and stderr, interleaved.
    pub output: String,
    /// Whether earlier output was dropped. Default: `false`.
    #[serde(default)]
    pub truncated: bool,
    /// Exit status of the command. Absent or `null` while it runs.
    #[serde(default)]
    pub exit_status: Option<TerminalExited>,
}

/// Exit status of a terminal's command; the client's response to `terminal/waitForExit`, which may take long.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TerminalExited {
    /// Exit code. Absent or `null` if a signal ended the command.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the command, such as `SIGTERM`. Absent or `null` if it exited by itself.
    #[serde(default)]
    pub signal: Option<String>,
}

/// The client's response to requests without a result: an empty object.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DoneByClient {}
