//! Transports: the connections that a dialect opens to exchange lines with its agent.
//!
//! A dialect orders transports under numbers of its own ([`Child`]), writes lines to them and reads lines
//! from them. The shell opens and drives them (`crates/host/src/drive/transports.rs`). `docs/internals/agents.md`
//! has the steps to add one.
//!
//! Every transport delivers to the dialect, in this order:
//!
//! 1. lines (`AgentInput::Batch`), in the order in which the agent wrote
//!    them. A protocol that does not consist of lines needs a framing in the shell that creates lines;
//! 2. exactly one end: `AgentInput::Exited` after all lines, or
//!    `AgentInput::StartFailed` if it could not be opened or read.
//!    Nothing follows the end.
//!
//! [`Transport::is_read_only`] determines what a transport accepts. A transport that is not read-only accepts
//!
//! - lines (`Effect::Send`), also before it is open;
//! - the end of its input (`Effect::FinishInput`): no line follows, and
//!   the transport continues until it ends by itself;
//! - a stop in three steps: `Effect::CloseInput`, `Terminate` and
//!   `Kill`. After `Kill` its end must follow.

use super::http::HttpRequest;
use acpipe_protocol::wire::{Protocol, Variables};

/// Number of a transport, chosen by the dialect. Numbers are not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Child(pub u64);

impl Child {
    /// Process of an agent that has one process for all sessions.
    pub const MAIN: Self = Self(0);
}

/// Transport that a dialect opens.
#[derive(Debug, PartialEq, Eq)]
pub enum Transport {
    /// Process: accepts lines on its stdin and delivers the lines of its stdout.
    Process(ProcessSpec),
    /// Agent of this name inside the program that contains acpipe: a task that accepts and delivers lines. It
    /// has no process id.
    InProcess(String),
    /// File with this path: delivers its lines.
    File(String),
    /// Directory with this path: delivers a line of JSON for each of its `.jsonl` files, the newest first.
    Directory(String),
    /// Directory with this path: delivers one line, the path without symbolic links as a JSON string.
    RealPath(String),
    /// Loopback: delivers the lines that are written to it. A dialect without a permanent connection answers
    /// its calls through it, so that answers keep their place in the order of events.
    Loopback,
    /// Deletion of the file with this path below the directory `root`. Links that lead out of `root` are not
    /// followed, and only a regular file is deleted. A missing file is no error.
    Removal {
        /// Directory that contains the file.
        root: String,
        /// Path of the file, relative to `root`.
        path: String,
    },
    /// HTTP request: delivers the head of the response and its body as lines
    /// ([`HttpLine`](super::http::HttpLine)). Its input is in the request, so lines are not written to it.
    Http(Box<HttpRequest>),
}

/// Program of an agent, with its arguments, directory and environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Program, as the user or client named it.
    pub command: String,
    pub args: Vec<String>,
    /// Working directory, an absolute path.
    pub cwd: String,
    /// Variables set on top of acpipe's own environment; a variable with the value `None` is unset. A dialect
    /// leaves out the client's variables: they are added when the process is started, and override the
    /// dialect's.
    pub env: Variables,
    /// Protocol, which determines where the program is searched for.
    pub protocol: Protocol,
    /// Command line to start if the program is not found.
    pub fallback: Option<Fallback>,
}

/// Command line that is started in place of a program that is not found: a package runner that downloads and
/// runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// Name of the package runner.
    pub command: String,
    /// Its arguments: the package, and the arguments of the program.
    pub args: Vec<String>,
    /// Directory in which it runs. It must not be that of a project: a package runner prefers the packages and
    /// the settings that it finds there.
    pub cwd: String,
}

impl Transport {
    /// Returns `true` if the transport only delivers lines: it accepts none, ends by itself, and is not
    /// stopped. The end of an agent does not wait for it.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Process(_) | Self::InProcess(_) | Self::Loopback | Self::Http(_) => false,
            Self::File(_) | Self::Directory(_) | Self::RealPath(_) | Self::Removal { .. } => true,
        }
    }

    /// Returns `true` if the start of the transport is limited by
    /// [`Timeout::Spawn`](super::limits::Timeout::Spawn). An HTTP request has limits of its own.
    pub fn has_start_limit(&self) -> bool {
        matches!(self, Self::Process(_))
    }
}
