//! Setup of the loop: everything besides the hub and its clients.

use crate::discover::LoginShell;
use crate::in_process::InProcessAgents;
use crate::launches::Launch;
use crate::process_settings::Supervision;
use crate::recorder::Recorder;
use crate::store::StoreEvents;
use acpipe_core::report::Report;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Setup of the loop: everything besides the hub and its clients.
pub struct LoopSetup<I> {
    /// Messages of the clients; `None` if there are none.
    pub input: Option<mpsc::Receiver<I>>,
    /// Later events of the store.
    pub stored: StoreEvents,
    /// Maximum length of an agent's line in bytes; longer lines are dropped.
    pub max_line: usize,
    /// Login shell, which is queried for programs that are not in `PATH`.
    pub login: LoginShell,
    /// Launch whose mark the processes carry.
    pub launch: Arc<Launch>,
    /// Agents inside this program.
    pub in_process: InProcessAgents,
    /// Recorder of the agents' frames; `None` if nothing is recorded.
    pub recorder: Option<Recorder>,
    /// Receiver of the hub's reports; called only if the hub reports.
    pub reports: ReportSink,
    /// Owner of the process that the loop runs in.
    pub owner: LoopOwner,
}

/// Receiver of the hub's reports, which must not block.
pub type ReportSink = Box<dyn FnMut(Report) + Send + Sync>;

/// Owner of the process that the loop runs in.
#[derive(Debug, Clone)]
pub enum LoopOwner {
    /// acpipe: stdout belongs to the client, signals end the loop, and the limit of open files is raised.
    Program,
    /// The daemon: like a program, but stdout belongs to no client.
    Daemon,
    /// A program that uses acpipe as a library. The loop leaves its streams, signals and limits alone.
    Host(Supervision),
}

impl LoopOwner {
    /// Returns how agents are supervised.
    pub(super) fn supervision(self) -> Supervision {
        match self {
            Self::Program | Self::Daemon => Supervision::OwnProgram,
            Self::Host(supervision) => supervision,
        }
    }
}
