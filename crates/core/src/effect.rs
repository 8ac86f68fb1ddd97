//! Exchange between the core and the shell: effects that the shell performs, and inputs from agents.

use super::report::Report;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_model::event::Exit;
use acpipe_model::host::HostEffect;
use acpipe_model::process_health::HealthChange;
use acpipe_model::transport::{ProcessSpec, Transport};
use acpipe_protocol::wire::Program;

/// Id of an agent's transport in effects and inputs. Ids are not reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(pub u64);

/// Action for the shell. Effects are performed in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    Open(AgentId, Transport),
    /// Write to the process's stdin.
    Send(AgentId, Vec<u8>),
    /// Close the process's stdin after everything that was sent. This does not stop the process: it is
    /// started even if its program is still being searched for, and it exits by itself.
    FinishInput(AgentId),
    /// Close the process's stdin as the first step of a stop: [`Effect::Terminate`] and [`Effect::Kill`]
    /// follow unless the process exits. A process that was not started yet is not started.
    CloseInput(AgentId),
    /// Send SIGTERM to the process group.
    Terminate(AgentId),
    /// Send SIGKILL to the process and all of its descendants.
    Kill(AgentId),
    /// Measure the process tree: count and resident memory.
    Measure(AgentId),
    /// Search for the programs of agents, without starting them. The result goes to `Hub::programs_found` with
    /// this ticket.
    FindPrograms(u64, Vec<ProcessSpec>),
    /// Read or write a file, or use a terminal, for an agent.
    Host(HostEffect),
    /// Shut down, as when the client disconnects, once the process with this id has exited.
    Watch(u32),
    /// Deliver a report. Only a hub that reports has this effect.
    Report(Report),
    /// Exit the program: everything has ended.
    Finished,
}

/// Input that the shell reports about an agent's transport. A read-only transport reports only `Batch`, then
/// `Exited` or `StartFailed`.
#[derive(Debug)]
pub enum AgentInput {
    Started {
        pid: u32,
        program: Box<Program>,
    },
    /// The health of the process changed. The shell reports it before every other input, so its position
    /// among the lines has no meaning.
    Health(HealthChange),
    /// The process could not be started, or the file could not be read.
    StartFailed(Error),
    /// Lines from the process's stdout.
    Batch(Batch),
    /// The process closed its stdout, but still runs.
    OutputClosed,
    /// The process closed its stdin, but still runs.
    InputClosed,
    /// The process does not read its stdin, and the queue for it is full.
    InputStuck,
    Measured(Measure),
    /// The process and all of its descendants have exited, or the file was read to its end.
    Exited(Exit),
}

/// Size of an agent's process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    pub processes: u32,
    /// Resident memory in bytes. Memory that several processes share is counted for each of them.
    pub rss: u64,
}
