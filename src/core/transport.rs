//! Transports: what a dialect opens to exchange lines with its agent.
//!
//! A dialect orders transports by numbers of its own ([`Child`]), writes lines to them and reads lines from them. The shell
//! opens and drives them (`shell/drive/transports.rs`). The section "The seam" of `ARCHITECTURE.md` has the steps to add one.
//!
//! Every transport delivers to the dialect, in this order:
//!
//! 1. lines ([`AgentInput::Batch`](super::effect::AgentInput::Batch)), in the order in which the agent wrote them. A protocol
//!    that is not made of lines needs a framing in the shell that makes lines of it;
//! 2. exactly one end: [`AgentInput::Exited`](super::effect::AgentInput::Exited) after all lines, or
//!    [`AgentInput::StartFailed`](super::effect::AgentInput::StartFailed) where it could not be opened or read. Nothing follows
//!    the end.
//!
//! What a transport accepts depends on [`Transport::is_read_only`]. One that is not read-only accepts
//!
//! - lines ([`Effect::Send`](super::effect::Effect::Send)), also before it is open;
//! - the end of its input ([`Effect::FinishInput`](super::effect::Effect::FinishInput)): no line follows, and the transport goes
//!   on until it ends by itself;
//! - a stop in three steps: [`Effect::CloseInput`](super::effect::Effect::CloseInput), `Terminate` and `Kill`. After `Kill` its
//!   end must follow.

use crate::proto::wire::{Protocol, Variables};

/// Number of a transport, given by the dialect. A number is not used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Child(pub u64);

impl Child {
    /// The only process of an agent that has one for all sessions.
    pub const MAIN: Self = Self(0);
}

/// What a dialect opens.
#[derive(Debug, PartialEq, Eq)]
pub enum Transport {
    /// A process: takes lines at its stdin and delivers the lines of its stdout.
    Process(ProcessSpec),
    /// Delivers the lines of this file.
    File(String),
    /// Delivers a line of JSON for each `.jsonl` file of this directory, the newest first.
    Directory(String),
    /// Delivers one line: the path of this directory without symbolic links, as a JSON string.
    RealPath(String),
}

/// Program of an agent, its arguments and its surroundings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessSpec {
    /// The program, as the user or client named it.
    pub command: String,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: String,
    /// Set, or with `None` unset, on top of acpipe's own environment. A dialect leaves the client's variables out: they are
    /// added when the process is started, and override the dialect's.
    pub env: Variables,
    /// Decides where the program is searched.
    pub protocol: Protocol,
}

impl Transport {
    /// Whether it only delivers lines: it takes none, ends by itself, and is not stopped. An agent that ends does not wait for
    /// it.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Process(_) => false,
            Self::File(_) | Self::Directory(_) | Self::RealPath(_) => true,
        }
    }
}
