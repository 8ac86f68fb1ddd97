//! The first line in each direction on the daemon's socket. After them, the connection carries the client's own
//! protocol.

use super::start_options::StartVariables;
use crate::cli::agent_choice::StoredAgent;
use crate::cli::args::read_files::ReadFiles;
use acpipe_model::secret::{shown_arguments, shown_line};
use serde::{Deserialize, Serialize};

/// Version of these lines. Both sides must have the same.
pub const SOCKET_VERSION: u32 = 2;

/// Maximum length of the client's line in bytes: it has the texts of three files of at most 1 MiB, with escapes.
pub const LONGEST_HELLO: usize = 16 << 20;

/// First line of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// Version of this line.
    pub socket_version: u32,
    /// Version of the client's acpipe.
    pub acpipe: String,
    /// Purpose of the connection.
    pub purpose: Purpose,
    /// Working directory of the client, an absolute path.
    pub cwd: String,
    /// Command line of the client, without the name of the program: its first word is `serve`, `acp` or `run`. Empty for
    /// the purpose `control`.
    #[serde(default)]
    pub args: Vec<String>,
    /// Files that the command line and the environment of the client name, which the client has read. `None` for the
    /// purpose `control`.
    #[serde(default)]
    pub files: Option<ReadFiles>,
    /// Session that `acpipe run` continues.
    #[serde(default)]
    pub session: SessionOrigin,
}

/// Directory and agent of the stored session that a run continues. Empty for a new session.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionOrigin {
    /// Directory of the session.
    pub cwd: Option<String>,
    /// Agent of the session; used if the command line names no agent.
    pub agent: Option<StoredAgent>,
}

/// Purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Purpose {
    /// A client with the settings of its command line.
    Client,
    /// The commands that manage the daemon: the neutral protocol with the settings of the daemon.
    Control,
}

/// First line of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Welcome {
    /// The connection is open.
    Accepted(DaemonInfo),
    /// The connection is closed.
    Refused {
        /// Reason.
        message: String,
        /// Exit code of the client.
        exit_code: u8,
        /// Version of the daemon's acpipe.
        acpipe: String,
    },
}

/// Facts about a daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DaemonInfo {
    /// Version of the daemon's acpipe.
    pub acpipe: String,
    /// Process id of the daemon.
    pub pid: u32,
    /// Time of the daemon's start, RFC 3339.
    pub started_at: String,
    /// Working directory of the daemon.
    pub cwd: String,
    /// Options with which the daemon was started.
    pub args: Vec<String>,
    /// Variables with which it was started.
    #[serde(default)]
    pub variables: StartVariables,
    /// Configuration file in the usual place, as its environment has it. It may not exist.
    #[serde(default)]
    pub user_file: Option<String>,
    /// Addresses of its HTTP server. Empty without one.
    #[serde(default)]
    pub listening: Vec<String>,
    /// Address of the page of its HTTP server, with the token in the fragment. `null` without one.
    #[serde(default)]
    pub page: Option<String>,
}

impl DaemonInfo {
    /// Returns the facts as a command may print them: with the names of variables, and without their values.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        shown.args = shown_arguments(&self.args);
        shown.variables.agent = self.variables.agent.as_deref().map(shown_line);
        shown
    }
}
