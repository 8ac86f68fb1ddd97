//! Purposes of the processes and file transports of the dialect.

use super::file_reads::{Path, ReadTarget};
use super::history::{Chain, History};
use super::session::CliSession;
use acpipe_model::dialect::Child;
use acpipe_model::event::{CallId, ListedSession};

/// Purpose of a process, or of a file transport.
#[derive(Debug)]
pub(super) enum ChildRole {
    /// Reports its version; `reported` is `true` once it has.
    Version {
        reported: bool,
    },
    Session(Box<CliSession>),
    /// Determines which records of a file are the history of the session of process `of`.
    Chain {
        of: Child,
        path: String,
        chain: Box<Chain>,
    },
    /// Reads the history of the session of process `of`.
    History {
        of: Child,
        history: Box<History>,
    },
    List {
        call: CallId,
        place: Path,
        found: Vec<ListedSession>,
    },
    /// Resolves the real path of a directory, from which the CLI derives the directory of its sessions.
    Path {
        path: Path,
        then: ReadTarget,
    },
}
