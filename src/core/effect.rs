//! What the core and the shell exchange: effects that the shell performs, and inputs from agents.

use super::agent_spec::AgentSpec;
use super::error::Error;
use super::event::Exit;
use super::host::HostEffect;
use super::process_health::HealthChange;
use crate::proto::frame::Batch;
use crate::proto::wire::Program;

/// Identifies a process of an agent, or a file that is read in the place of one. Numbers are not used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentId(pub u64);

/// What the shell has to do, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start the process.
    Spawn(AgentId, Box<AgentSpec>),
    /// Send the lines of this file as if a process had written them.
    ReadFile(AgentId, String),
    /// Send the real path of this directory as if a process had written it.
    ResolvePath(AgentId, String),
    /// Send a line for each `.jsonl` file of this directory as if a process had written them.
    ListFiles(AgentId, String),
    /// Write to the process's stdin.
    Send(AgentId, Vec<u8>),
    /// Close the process's stdin behind what was sent: no more will come, and the process goes on.
    FinishInput(AgentId),
    /// Close the process's stdin, as the first step of its end: one that was not started yet is not started.
    CloseInput(AgentId),
    /// Send SIGTERM to the process group.
    Terminate(AgentId),
    /// Send SIGKILL to the process and everything below it.
    Kill(AgentId),
    /// Measure the process tree: count and resident memory.
    Measure(AgentId),
    /// Read or write a file, or use a terminal, for an agent.
    Host(HostEffect),
    /// Shut down, as when the client disconnects, once this process has exited.
    Watch(u32),
    /// Everything has ended: the program may exit.
    Finished,
}

/// What the shell reports about an agent's process.
#[derive(Debug)]
pub enum AgentInput {
    /// The process runs.
    Started { pid: u32, program: Box<Program> },
    /// Its health changed. It is reported before every other input, so that it need not keep its place among them.
    Health(HealthChange),
    /// The process could not be started.
    StartFailed(Error),
    /// Lines from its stdout.
    Batch(Batch),
    /// Its stdout was closed, but the process runs.
    OutputClosed,
    /// Its stdin was closed, but the process runs.
    InputClosed,
    /// It does not read its stdin, and the queue for it is full.
    InputStuck,
    /// Result of [`Effect::Measure`].
    Measured(Measure),
    /// The process and everything below it has exited.
    Exited(Exit),
}

/// Size of an agent's process tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    pub processes: u32,
    /// Resident memory in bytes; memory that processes share counts for each.
    pub rss: u64,
}
